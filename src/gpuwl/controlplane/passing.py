"""A control plane without a name, for one command: it goes when the command ends, however it ends.

Its folder is out of sight of the named ones, and locked by the command for as long as that lives. The
kernel kills the processes with the command (PR_SET_PDEATHSIG); the next command that looks at control
planes removes a folder that is not locked.
"""

import contextlib
import os
import secrets
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpuwl.controlplane import components, process, start, state, teardown
from gpuwl.controlplane.binaries.lookup import Binaries
from gpuwl.controlplane.boot import Boot, ComponentError, PortTakenError
from gpuwl.errors import SetupError
from gpuwl.k8s.objects import Object
from gpuwl.system import folders, locking
from gpuwl.system.progress import Listener

AT_ONCE = ((signal.SIGKILL, 5.0),)
"""Nothing in it is worth a longer goodbye."""


@dataclass(frozen=True)
class Passing:
    """A control plane that is up for the length of a block."""

    folder: Path
    version: str

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.folder / components.KUBECONFIG

    def signal_scheduler(self, number: signal.Signals) -> None:
        """Send the scheduler a signal. Raises SetupError where it does not run any more."""
        who = process.read_record(process.record_path(self.folder, "kube-scheduler"))
        if who is None or not process.alive(who):
            raise SetupError(
                "kube-scheduler ended", details=process_end(self.folder, "kube-scheduler")
            )
        os.kill(who.pid, number)

    @property
    def scheduler_log(self) -> Path:
        """What the scheduler writes."""
        return process.log_path(self.folder, "kube-scheduler")


def process_end(folder: Path, component: str) -> list[str]:
    """Return the last words of a component."""
    from gpuwl.controlplane.boot import last_lines

    return last_lines(process.log_path(folder, component))


def hidden() -> Path:
    """Return where the folders of all of them are; not created here."""
    return folders.state() / ".passing"


@contextlib.contextmanager
def up(
    binaries: Binaries, objects: list[Object], scheduler: Object, listener: Listener
) -> Iterator[Passing]:
    """Run a control plane with these objects and this configuration of the scheduler for a block.

    Raises as `start.start` does.
    """
    sweep()
    folders.make(folders.state())
    folders.make(hidden())
    name = f"{os.getpid()}-{secrets.token_hex(4)}"
    folder = hidden() / name
    with _owned(folder):
        request = start.Request("passing", binaries, objects, None, scheduler)
        _start(folder, request, listener)
        yield Passing(folder, binaries.version)


def sweep() -> None:
    """Remove what commands that were killed left."""
    if hidden().is_dir():
        for folder in hidden().iterdir():
            if folder.is_dir():
                _sweep(folder)


def _sweep(folder: Path) -> None:
    lock = folder.with_name(f"{folder.name}.lock")
    descriptor = locking.acquire(lock)
    if descriptor is not None:
        _remove(folder)
        locking.release(lock, descriptor)


@contextlib.contextmanager
def _owned(folder: Path) -> Iterator[None]:
    """Hold the folder's lock for the body; whatever is in the folder goes at the end."""
    lock = folder.with_name(f"{folder.name}.lock")
    descriptor = locking.acquire(lock)
    if descriptor is None:
        raise SetupError(f"somebody else holds {lock}")
    try:
        yield
    finally:
        with teardown.uninterrupted():
            _remove(folder)
            locking.release(lock, descriptor)


def _start(folder: Path, request: start.Request, listener: Listener) -> None:
    for _ in range(start.PORT_TRIES):
        folder.mkdir(mode=0o700)
        (folder / state.GATE).touch(mode=0o600)
        boot = Boot(folder, request.binaries.folder, components.environment(100), tied=True)
        try:
            start.components_of(boot, request, listener)
        except PortTakenError:
            _remove(folder)
        except ComponentError as error:
            error.hint = None  # its log goes with the folder
            raise
        else:
            return
        finally:
            boot.settle()
    raise SetupError("no port stayed free long enough to use it")


def _remove(folder: Path) -> None:
    (folder / state.GATE).unlink(missing_ok=True)
    for component in reversed(components.NAMES):
        who = process.read_record(process.record_path(folder, component))
        if who is not None:
            process.stop(who, AT_ONCE)
    shutil.rmtree(folder, ignore_errors=True)
