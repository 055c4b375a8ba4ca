"""Whether a control plane that does not seem to run here lives all the same: asleep, or out of sight."""

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from gpuwl.controlplane import components, ports, process, state
from gpuwl.errors import SetupError
from gpuwl.system import waiting

MOMENT = 2.0
"""Seconds for which the sockets of a killed process may outlive it: its threads end one by one."""


def check_in_sight(name: str) -> None:
    """Raise SetupError where the control plane of that name is, or may be, alive where we cannot look.

    On another machine that shares this home, or in another container: there its processes have
    other pids, or none. Nobody but a command there can stop it, and clearing its folder would
    leave its processes orphaned.
    """
    known = _identities(name)
    places = [state.starter(name), *((who.boot_id, who.machine) for who in known.values())]
    for boot, machine in places:
        if process.elsewhere(boot, machine):
            raise _of_another_machine(name, machine)

    def gone() -> bool | None:
        unseen = [part for part in _SERVERS if not process.alive(known.get(part))]
        return None if any(_serves(name, part) for part in unseen) else True

    if waiting.until(gone, seconds=MOMENT) is None:
        raise SetupError(
            f"the local control plane {name!r} runs, but its processes cannot be seen from here",
            details=["it was started in another container, or in another pid namespace"],
            hint="use it from there, or choose another --name here",
        )


def check_awake(name: str) -> None:
    """Raise SetupError where a process was halted by SIGSTOP: it has everything, and answers nobody."""
    for part, who in _identities(name).items():
        if process.suspended(who):
            raise SetupError(
                f"{part} of the local control plane {name!r} is suspended (process {who.pid})",
                hint=f"let it go on: kill -CONT {who.pid}",
            )


def _identities(name: str) -> dict[str, process.Identity]:
    folder = state.folder(name)
    found = {
        part: process.read_record(process.record_path(folder, part)) for part in components.NAMES
    }
    return {part: who for part, who in found.items() if who}


def _of_another_machine(name: str, machine: str) -> SetupError:
    return SetupError(
        f"the local control plane {name!r} was started on another machine: {machine}",
        details=[f"if that machine is gone for good, remove {state.folder(name)} by hand"],
        hint="stop it there, or choose another --name here",
    )


_SERVERS = ("etcd", "kube-apiserver")


def _serves(name: str, component: str) -> bool:
    folder = state.folder(name)
    if component == "etcd":
        return _listens(folder, components.CLIENT_SOCKET)
    record = state.read(name)
    return record is not None and ports.serves(record.port, folder / components.CA_CERTIFICATE)


def _listens(folder: Path, name: str) -> bool:
    """Say whether something listens on a socket in a folder, whose path may be too long for one."""
    if not (folder / name).is_socket():
        return False
    with _short(folder) as short, socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(f"{short}/{name}")
        except (ConnectionError, FileNotFoundError):
            return False
        except OSError:  # its queue is full, as with a suspended one
            return True
        return True


@contextlib.contextmanager
def _short(folder: Path) -> Iterator[str]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)
