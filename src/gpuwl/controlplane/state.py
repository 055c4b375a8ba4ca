"""What is known of each local control plane by name: its folder, its lock, its record.

Each has a folder of its name in `planes/` of the state folder, with a mark in it: what has none is
somebody else's and never touched. gpuwl 0.1.0 had them in the state folder itself; those that have
a record are still found. A folder is in one of these phases:

    starting    the gate is there: somebody holds the lock and starts it, or was killed doing so
    up          the record is there: everything was started and its nodes are loaded
    failed      the failure is there: no process, only the logs that the error named
    (none)      a start or a stop was killed: rubbish
"""

import contextlib
import dataclasses
import datetime as dt
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpuwl.controlplane import process
from gpuwl.errors import InputError, SetupError
from gpuwl.system import folders, locking, oserrors
from gpuwl.system.files import replace_file
from gpuwl.system.progress import Listener, Progress

DEFAULT_NAME = "default"

GATE = "starting"
RECORD = "plane.json"
FAILURE = "failed"
MARK = ".gpuwl-plane"
MARK_TEXT = "A local control plane of gpuwl. `gpuwl local down` stops it and removes this folder.\n"

_NAME = re.compile(r"[a-z0-9-]{1,40}")


@dataclass(frozen=True)
class Dump:
    """Which file the nodes came from, as it was then (size in bytes, mtime in nanoseconds)."""

    path: str
    size: int
    mtime: int
    anonymised: bool

    @classmethod
    def of(cls, path: Path, *, anonymised: bool) -> "Dump":
        """Describe a file. Raises InputError where it cannot be looked at."""
        try:
            found = path.stat()
        except OSError as error:
            raise InputError(f"cannot read {path}: {oserrors.words(error)}") from None
        return cls(str(path.resolve()), found.st_size, found.st_mtime_ns, anonymised)

    def __str__(self) -> str:
        """Say which nodes these are; of one file there may be two kinds, and several states."""
        when = dt.datetime.fromtimestamp(self.mtime / 1e9).astimezone()
        as_of = f"{self.path} as of {when:%Y-%m-%d %H:%M:%S}"
        return f"{as_of}, anonymised" if self.anonymised else as_of


@dataclass(frozen=True)
class Record:
    """A control plane that came up: Kubernetes version, where its binaries were, port, nodes.

    `dump` is None with the lab's own nodes. `started` is seconds since the epoch, `seconds` how
    long the start took.
    """

    version: str
    source: str
    binaries: str
    port: int
    nodes: int
    dump: Dump | None
    started: float
    seconds: float


def store() -> Path:
    """Return the folder of all control planes; not created here."""
    return folders.state() / "planes"


def folder(name: str) -> Path:
    """Return the folder of the control plane `name`. Raises InputError for an unusable name."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} cannot name a local control plane",
            hint="use 1 to 40 of the characters a-z, 0-9 and -",
        )
    old = folders.state() / name
    return old if _is_old(old) else store() / name


def exists(name: str) -> bool:
    """Say whether there is a folder of that name that gpuwl made, in whatever phase."""
    return _is_ours(folder(name))


def names() -> list[str]:
    """Return the names that have a folder that gpuwl made, in whatever phase."""
    found = {path.name for path in _entries(store()) if _is_ours(path)}
    found |= {path.name for path in _entries(folders.state()) if _is_old(path)}
    return sorted(name for name in found if _NAME.fullmatch(name))


def check_outside(path: Path) -> None:
    """Raise InputError for a path in the folder of a control plane, which goes with it."""
    for parent in path.resolve().parents:
        mine = parent.parent == store().resolve() and not parent.exists()
        if mine or _is_ours(parent):
            raise InputError(
                f"{path} belongs to the local control plane {parent.name!r} and goes with it",
                hint="choose another folder",
            )


def _entries(parent: Path) -> list[Path]:
    try:
        return [Path(entry.path) for entry in os.scandir(parent)]
    except FileNotFoundError:
        return []


def _is_ours(path: Path) -> bool:
    return (not path.is_symlink() and (path / MARK).is_file()) or _is_old(path)


def _is_old(path: Path) -> bool:
    """Say whether gpuwl 0.1.0 made a folder, as a record shows; a start or a removal may have begun."""
    if path.parent != folders.state() or path.is_symlink():
        return False
    first = process.record_path(path, "etcd")
    return (path / MARK).is_file() or bool(_read(path) or process.read_record(first))


def read(name: str) -> Record | None:
    """Return the record of a control plane that came up, None where there is none."""
    return _read(folder(name))


def _read(folder: Path) -> Record | None:
    try:
        fields = json.loads((folder / RECORD).read_bytes())
        dump = fields.pop("dump")
        return Record(**fields, dump=Dump(**dump) if dump else None)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def write(name: str, record: Record) -> None:
    """Put the record in place in one step: from then on the control plane counts as up."""
    text = json.dumps(dataclasses.asdict(record), indent=2) + "\n"
    replace_file(folder(name) / RECORD, text.encode(), 0o600, durable=False)
    (folder(name) / GATE).unlink(missing_ok=True)


def failure(name: str) -> str | None:
    """Return what a failed start said, None where none is on record."""
    try:
        return (folder(name) / FAILURE).read_text().strip()
    except OSError:
        return None


def create(name: str) -> Path:
    """Make the empty folder of a start, closed to others, with mark and gate in it.

    Raises SetupError where KUBECONFIG could not name what is in it, where another user owns the
    folder above, or where something that gpuwl did not make has that name.
    """
    made = folder(name)
    if os.pathsep in str(made):
        raise SetupError(
            f"no control plane can be in {made}: a colon in its path ends the name of a kubeconfig",
            hint="set XDG_STATE_HOME to a folder without one",
        )
    folders.make(folders.state())
    _close(folders.state())
    folders.make(made.parent)
    with contextlib.suppress(OSError):
        made.rmdir()  # an empty one: a start was killed before the mark
    try:
        made.mkdir(mode=0o700)
    except FileExistsError:
        raise SetupError(
            f"{made} is in the way: gpuwl did not make it",
            hint="move it away, or choose another --name",
        ) from None
    place = f"{process.boot_id()}\n{process.machine()}\n"
    for file, text in ((MARK, MARK_TEXT), (GATE, place)):
        (made / file).touch(mode=0o600)
        (made / file).write_text(text)
    return made


def starter(name: str) -> tuple[str, str]:
    """Return boot id and machine of the command that starts a control plane, empty where none does."""
    try:
        boot, machine, *_ = (folder(name) / GATE).read_text().splitlines()
    except (OSError, ValueError):
        return "", ""
    return boot, machine


def _close(parent: Path) -> None:
    """Close the folder of all control planes to others, who could put theirs in the place of ours."""
    found = parent.stat()
    if found.st_uid != os.geteuid():
        raise SetupError(
            f"{parent} belongs to another user (uid {found.st_uid})",
            hint="set XDG_STATE_HOME to a folder of your own",
        )
    if found.st_mode & 0o077:
        parent.chmod(0o700)


@contextlib.contextmanager
def locked(name: str, listener: Listener) -> Iterator[None]:
    """Hold the lock of a name, once nobody else does; says for whom it waits."""

    def waits(holder: str) -> None:
        listener.progress(Progress("waiting for another gpuwl", detail=holder))

    with locking.waited(_lock_path(name), waits):
        yield


@contextlib.contextmanager
def tried(name: str) -> Iterator[bool]:
    """Hold the lock of a name; yields False where somebody else has it."""
    with locking.tried(_lock_path(name)) as lock:
        yield lock is not None


def _lock_path(name: str) -> Path:
    folder(name)  # an unusable name makes no path
    folders.make(store())
    return store() / f".{name}.lock"


@contextlib.contextmanager
def used(name: str) -> Iterator[bool]:
    """Use a control plane for the body; yields False where it is gone, or is just being stopped."""
    mark = folder(name) / MARK
    with contextlib.ExitStack() as stack:
        try:
            if exists(name):
                mark.touch(mode=0o600)  # one of gpuwl 0.1.0 has none
            mine = stack.enter_context(locking.shared(mark))
        except FileNotFoundError:
            mine = False
        except OSError:  # a folder that cannot be written: nobody can stop it there
            mine = True
        yield mine


@contextlib.contextmanager
def unused(name: str) -> Iterator[bool]:
    """Keep others from using a control plane for the body; yields False where somebody does."""
    with locking.alone(folder(name) / MARK) as mine:
        yield mine
