"""What is known of each local control plane by name: its folder, its lock, its record.

A folder below `folders.state()` is in one of these phases:

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

from gpuwl.errors import InputError, SetupError
from gpuwl.system import folders, locking, oserrors
from gpuwl.system.files import replace_file
from gpuwl.system.progress import Listener, Progress

DEFAULT_NAME = "default"

GATE = "starting"
RECORD = "plane.json"
FAILURE = "failed"

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


def folder(name: str) -> Path:
    """Return the folder of the control plane `name`. Raises InputError for an unusable name."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} cannot name a local control plane",
            hint="use 1 to 40 of the characters a-z, 0-9 and -",
        )
    return folders.state() / name


def names() -> list[str]:
    """Return the names that have a folder, in whatever phase."""
    try:
        found = sorted(entry.name for entry in os.scandir(folders.state()) if entry.is_dir())
    except FileNotFoundError:
        return []
    return [name for name in found if _NAME.fullmatch(name)]


def read(name: str) -> Record | None:
    """Return the record of a control plane that came up, None where there is none."""
    try:
        fields = json.loads((folder(name) / RECORD).read_bytes())
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
    """Make the empty folder of a start, closed to others, with the gate in it.

    Raises SetupError where KUBECONFIG could not name what is in it, or where another user owns the
    folder above.
    """
    made = folder(name)
    if os.pathsep in str(made):
        raise SetupError(
            f"no control plane can be in {made}: a colon in its path ends the name of a kubeconfig",
            hint="set XDG_STATE_HOME to a folder without one",
        )
    folders.make(folders.state())
    _close(folders.state())
    made.mkdir(mode=0o700)
    (made / GATE).touch(mode=0o600)
    return made


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
    path = folder(name).with_name(f".{name}.lock")
    folders.make(path.parent)
    return path
