"""The life of local control planes, for the commands: up or not, starting, stopping, names."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from gpuwl.controlplane import components, passing, ports, presence, process, start, state, teardown
from gpuwl.controlplane.binaries import cache, lookup
from gpuwl.controlplane.boot import ComponentError
from gpuwl.errors import InputError, SetupError
from gpuwl.k8s.objects import Object
from gpuwl.system.progress import SILENCE, Listener


@dataclass(frozen=True)
class Plane:
    """A control plane that is up."""

    name: str
    version: str
    port: int
    folder: Path
    kubeconfig: Path


@dataclass(frozen=True)
class Up:
    """What `ensure_up` found or did, and how many seconds that took."""

    plane: Plane
    started: bool
    seconds: float


@dataclass(frozen=True)
class Down:
    """What `down` did: whether there was something to stop or remove, and the seconds it took."""

    name: str
    stopped: bool
    seconds: float


def ensure_up(  # noqa: PLR0913 - one keyword per option of the command
    name: str = state.DEFAULT_NAME,
    *,
    version: str | None = None,
    source: lookup.Source | None = None,
    nodes: Callable[[], list[Object]],
    dump: state.Dump | None = None,
    listener: Listener,
) -> Up:
    """Return the control plane `name`, started if it is not up; milliseconds if it is.

    `version` is a Kubernetes version (`1.37.2`), None for what runs. `nodes` returns the Nodes that
    it shall have where it has to be started; `dump` says which file they come from. `source` forces where binaries come from. One with
    a dead component is started again, empty. Two callers at once get the same one.

    Raises InputError where it runs with another version or other nodes, or where the dump cannot be
    used; SetupError where it does not start, with the last lines of the log.
    """
    began = time.monotonic()
    wanted = Wanted(name, version, dump)
    sweep()
    plane = wanted.running()
    if plane:
        return Up(plane, started=False, seconds=time.monotonic() - began)
    ports.check()  # not behind minutes of getting binaries
    objects = nodes()
    found = _binaries(version, source, listener)
    with state.locked(name, listener):
        plane = wanted.running()
        if plane is None:
            _clear(name, listener)
            with _blaming_binaries(found):
                start.start(start.Request(name, found, objects, dump), listener)
            return Up(_plane(name), started=True, seconds=time.monotonic() - began)
    return Up(plane, started=False, seconds=time.monotonic() - began)


@dataclass(frozen=True)
class Wanted:
    """What a caller of `ensure_up` asks for."""

    name: str
    version: str | None
    dump: state.Dump | None

    def running(self) -> Plane | None:
        """Return the control plane if it is up. Raises InputError if it is not what is wanted."""
        if not is_up(self.name):
            return None
        record = state.read(self.name)
        if record is None:
            return None
        hint = f"stop it first: gpuwl local down --name {self.name}"
        running = f"the local control plane {self.name!r} is already up"
        if self.version not in {None, record.version}:
            raise InputError(f"{running} with Kubernetes {record.version}", hint=hint)
        if self.dump not in {None, record.dump}:
            of = str(record.dump) if record.dump else "the lab"
            raise InputError(f"{running} with other nodes, those of {of}", hint=hint)
        return _plane(self.name)


def down(name: str = state.DEFAULT_NAME, listener: Listener = SILENCE) -> Down:
    """Stop a control plane and remove its state; nothing to stop is success.

    Waits for a start of the same name to end, and says so. Raises SetupError where a process does
    not end.
    """
    began = time.monotonic()
    state.folder(name)  # an unusable name is refused before anything is swept
    stopped = name in sweep()
    if state.exists(name):
        with state.locked(name, listener):
            stopped = state.exists(name)
            teardown.stop(name)
    return Down(name, stopped=stopped, seconds=time.monotonic() - began)


def down_unused(name: str) -> Down | None:
    """Stop a control plane that this command started and no other uses; None where that is not so."""
    began = time.monotonic()
    with state.locked(name, SILENCE):
        if not _started_here(name):
            return None
        with state.unused(name) as mine:
            if not mine:
                return None
            teardown.stop(name)
    return Down(name, stopped=True, seconds=time.monotonic() - began)


def _started_here(name: str) -> bool:
    """Say whether this command started it: by its processes, so that no moment of a start is missed."""
    record = process.record_path(state.folder(name), "etcd")
    return state.read(name) is not None and process.started_here(process.read_record(record))


def sweep() -> list[str]:
    """Clean up after gpuwls that were killed in a start or stop; return the names that needed it.

    For the beginning of every command that looks at control planes; `ensure_up`, `down`, `names`
    and `status` do it themselves.
    """
    passing.sweep()
    return teardown.sweep()


def names() -> list[str]:
    """Return the names that are up, failed to start or are being started."""
    sweep()
    return state.names()


def is_up(name: str = state.DEFAULT_NAME) -> bool:
    """Say whether the three processes live, by identity, and the API server's port answers.

    Raises SetupError where they live and cannot be used: suspended, or out of our sight.
    """
    record = state.read(name)
    if record is None:
        return False
    if not dead(name) and ports.answers(record.port):
        return True
    presence.check_in_sight(name)
    presence.check_awake(name)
    return False


def dead(name: str) -> list[str]:
    """Return the components of a name that do not run, or are suspended."""
    folder = state.folder(name)
    records = {part: process.record_path(folder, part) for part in components.NAMES}
    return [part for part, path in records.items() if not process.works(process.read_record(path))]


def running_from(folder: Path) -> list[str]:
    """Return the names whose programs are below a folder and run, or are just being started."""
    return [name for name in names() if _runs_from(name, folder)]


def _runs_from(name: str, folder: Path) -> bool:
    record = state.read(name)
    if record is None:
        return state.failure(name) is None  # somebody is starting it
    try:
        presence.check_in_sight(name)
    except SetupError:
        return Path(record.binaries).is_relative_to(folder)
    lives = len(dead(name)) < len(components.NAMES)
    return lives and Path(record.binaries).is_relative_to(folder)


def kubeconfig_path(name: str = state.DEFAULT_NAME) -> Path:
    """Return where the administrator's kubeconfig is while the control plane is up."""
    return state.folder(name) / components.KUBECONFIG


def _binaries(
    version: str | None, source: lookup.Source | None, listener: Listener
) -> lookup.Binaries:
    if source is None and (found := lookup.find(version)):
        cache.check_may_run(found.folder)
        return found
    from gpuwl.controlplane.binaries import acquire

    return acquire.obtain(version, source=source, listener=listener)


@contextlib.contextmanager
def _blaming_binaries(found: lookup.Binaries) -> Iterator[None]:
    """Say of a start that failed that the binaries have changed since they were cached, if they have."""
    try:
        yield
    except ComponentError as error:
        from gpuwl.controlplane.binaries import inspection

        with contextlib.suppress(OSError, ValueError):  # a folder of somebody's own has no manifest
            if paths := inspection.damaged(found.folder):
                error.details += (f"{', '.join(map(str, paths))} has changed since it was cached",)
                version = f" --kubernetes-version {found.version}"
                error.hint = f"get the binaries again: gpuwl local fetch{version}"
        raise


def _plane(name: str) -> Plane:
    record = state.read(name)
    if record is None:
        raise SetupError(f"the local control plane {name!r} was stopped in the meantime")
    return Plane(name, record.version, record.port, state.folder(name), kubeconfig_path(name))


def _clear(name: str, listener: Listener) -> None:
    """Remove what is there of a control plane that is not up. The caller holds the lock."""
    if not state.exists(name):
        return
    if state.read(name) is not None:
        ended = ", ".join(dead(name)) or "the API server"
        listener.warn(f"{ended} of {name} no longer runs: starting again, empty")
    teardown.stop(name)
