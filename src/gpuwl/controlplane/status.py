"""What a local control plane is doing: as plain data, for people and for JSON."""

import contextlib
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from gpuwl.controlplane import components, presence, process, state, teardown
from gpuwl.controlplane.binaries import cache, inspection
from gpuwl.controlplane.boot import last_lines
from gpuwl.errors import SetupError


class Phase(StrEnum):
    """In which phase of its life a control plane is."""

    DOWN = "down"
    STARTING = "starting"
    UP = "up"
    ELSEWHERE = "elsewhere"
    """It is on another machine, or lives where its processes cannot be seen."""
    BROKEN = "broken"
    """It was up, and a component died or was suspended since, or its record was damaged."""
    FAILED = "failed"
    """It did not start; its logs are kept."""


@dataclass(frozen=True)
class ComponentStatus:
    """One component: version, pid, resident memory in bytes, age in seconds while it lives.

    Of one that is not alive, or is suspended, `reason` says how we know and `said` is the end
    of its log.
    """

    name: str
    alive: bool
    version: str | None
    pid: int | None
    memory: int | None
    uptime: float | None
    reason: str | None
    said: str | None
    log: str

    def why(self) -> str:
        """Say why it does not run, with the end of its log and where that is."""
        last = f"; last line: {self.said}" if self.said else ""
        return f"{self.reason}{last} (log: {self.log})"


@dataclass(frozen=True)
class Status:
    """One control plane. What is not known in its phase is None; memory is the sum in bytes.

    `nodes` is how many it was started with, and `dump` the file they came from. `uptime` is in
    seconds. `message` says why a start failed, or that its record cannot be read.
    """

    name: str
    phase: Phase
    folder: str
    kubeconfig: str
    version: str | None
    source: str | None
    port: int | None
    nodes: int | None
    dump: str | None
    memory: int | None
    uptime: float | None
    message: str | None
    components: tuple[ComponentStatus, ...]


def status(name: str) -> Status:
    """Describe the control plane `name`, whatever phase it is in.

    First cleans up after gpuwls that were killed, so that `starting` means that somebody is at it.
    """
    teardown.sweep()
    folder, record = state.folder(name), state.read(name)
    parts = _components(folder, record) if state.exists(name) else ()
    failure, unreadable, hidden = state.failure(name), _unreadable(name), _hidden(name)
    phase = Phase.BROKEN if unreadable else _phase(record, parts, failed=failure is not None)
    phase = Phase.ELSEWHERE if hidden else phase
    return Status(
        name=name,
        phase=phase,
        folder=str(folder),
        kubeconfig=str(folder / components.KUBECONFIG),
        version=record.version if record else None,
        source=record.source if record else None,
        port=record.port if record else None,
        nodes=record.nodes if record else None,
        dump=record.dump.path if record and record.dump else None,
        memory=sum(part.memory or 0 for part in parts) if record else None,
        uptime=time.time() - record.started if record and phase is Phase.UP else None,
        message=failure or hidden or unreadable,
        components=parts,
    )


def _phase(
    record: state.Record | None, parts: tuple[ComponentStatus, ...], *, failed: bool
) -> Phase:
    if record:
        return Phase.UP if all(part.alive for part in parts) else Phase.BROKEN
    if failed:
        return Phase.FAILED
    return Phase.STARTING if parts else Phase.DOWN


def _hidden(name: str) -> str | None:
    """Say that a control plane may be alive where its processes cannot be seen."""
    try:
        presence.check_in_sight(name)
    except SetupError as error:
        return error.message
    return None


def _unreadable(name: str) -> str | None:
    """Say that a record cannot be read: cut off by a crash, or written by another gpuwl."""
    path = state.folder(name) / state.RECORD
    if state.read(name) or not path.exists():
        return None
    return f"{path} cannot be read: `gpuwl local down` or `up` clears it away"


def _components(folder: Path, record: state.Record | None) -> tuple[ComponentStatus, ...]:
    versions = _versions(folder, Path(record.binaries)) if record else {}
    return tuple(_component(folder, name, versions.get(name)) for name in components.NAMES)


def _component(folder: Path, name: str, version: str | None) -> ComponentStatus:
    identity = process.read_record(process.record_path(folder, name))
    usage = process.usage(identity) if identity else None
    log = process.log_path(folder, name)
    works = process.works(identity)
    lines = [] if works else last_lines(log, 1)
    return ComponentStatus(
        name=name,
        alive=works,
        version=version,
        pid=identity.pid if identity and usage else None,
        memory=usage.memory if usage else None,
        uptime=usage.age if usage else None,
        reason=None if works else _reason(identity, log),
        said=lines[0] if lines else None,
        log=str(log),
    )


def _reason(identity: process.Identity | None, log: Path) -> str:
    if identity is None:
        return "ended with the start that failed" if log.exists() else "not started"
    if process.elsewhere(identity.boot_id, identity.machine):
        return f"process {identity.pid} of another machine, {identity.machine}"
    if identity.boot_id != process.boot_id():
        return "the machine was started again since"
    if not process.in_sight(identity):
        return f"process {identity.pid} of another container or pid namespace"
    if process.suspended(identity):
        return f"process {identity.pid} is suspended; kill -CONT {identity.pid} lets it go on"
    return f"process {identity.pid} is gone"


def _versions(folder: Path, programs: Path) -> dict[str, str]:
    """Return each binary's own version, as recorded beside it, else as it says itself.

    Where the binaries were removed since, as by `gpuwl local clean`, the processes' own are asked:
    the kernel keeps a file that runs.
    """
    try:
        return {name: entry.version for name, entry in cache.read(programs).files.items()}
    except (OSError, ValueError):
        pass
    try:
        return inspection.versions(programs)
    except SetupError:
        return _versions_of_processes(folder)


def _versions_of_processes(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in components.NAMES:
        identity = process.read_record(process.record_path(folder, name))
        if identity and process.alive(identity):
            with contextlib.suppress(SetupError):
                found[name] = inspection.ask(Path(f"/proc/{identity.pid}/exe"))
    return found
