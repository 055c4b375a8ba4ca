"""Stopping a control plane and removing what it left, from whatever state it is in."""

import contextlib
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType

from gpuwl.controlplane import components, presence, process, state
from gpuwl.errors import SetupError
from gpuwl.system import waiting

KILL = (signal.SIGKILL, 1.0)
SIGNALS = {
    # The scheduler has nothing to save. Its open watches would delay the API server's end.
    "kube-scheduler": ((signal.SIGTERM, 0.2), KILL),
    # The first TERM gives open watches one second to end, the second asks to end at once.
    "kube-apiserver": ((signal.SIGTERM, 1.2), (signal.SIGTERM, 0.1), KILL),
    "etcd": ((signal.SIGTERM, 0.2), KILL),
}


def stop(name: str, *, keep_logs: str | None = None) -> None:
    """Stop the processes of a name and remove its folder. The caller holds the lock.

    With `keep_logs` the logs stay, and that text beside them as the reason. Raises SetupError
    where a process outlives SIGKILL, or may live where we cannot see it; the folder stays then.
    """
    if not state.exists(name):
        return
    folder = state.folder(name)
    presence.check_in_sight(name)
    with uninterrupted():
        (folder / state.MARK).touch(mode=0o600)  # what is left of an old one is still known then
        for marker in (state.GATE, state.RECORD, state.FAILURE):
            (folder / marker).unlink(missing_ok=True)
        for component in reversed(components.NAMES):
            _stop_component(folder, component)
        if keep_logs is None:
            _remove(folder)
        else:
            _keep_logs(folder, keep_logs)


def sweep() -> list[str]:
    """Clean up after commands that were killed, and return the names that this was needed for.

    Leaves alone what is up, what failed (its logs were promised) and what somebody works on.
    """
    return [name for name in state.names() if _abandoned(name) and _sweep(name)]


def _sweep(name: str) -> bool:
    with state.tried(name) as mine:
        if not mine or not _abandoned(name):
            return False
        try:
            stop(name)
        except SetupError:
            return False  # `down` of that name says why; other names have nothing to do with it
    return True


def _abandoned(name: str) -> bool:
    folder = state.folder(name)
    marks = (folder / state.RECORD, folder / state.FAILURE)
    return state.exists(name) and not any(mark.exists() for mark in marks)


def _stop_component(folder: Path, component: str) -> None:
    identity = process.read_record(process.record_path(folder, component))
    if identity is not None and not process.stop(identity, SIGNALS[component]):
        raise SetupError(
            f"{component} (pid {identity.pid}) does not end",
            hint=f"look at /proc/{identity.pid}/stack, then try again",
        )


def _remove(folder: Path) -> None:
    """Remove a folder, again where a launcher that comes too late still writes its record.

    The mark goes last: a removal that is killed can be taken up again.
    """

    def gone() -> bool | None:
        _empty(folder, lambda entry: entry.name == state.MARK)
        shutil.rmtree(folder, ignore_errors=True)
        return None if folder.exists() else True

    if not waiting.until(gone, seconds=2, every=0.01):
        raise SetupError(f"cannot remove {folder}", hint="check its owner and mode")


def _keep_logs(folder: Path, reason: str) -> None:
    _empty(folder, lambda entry: entry.suffix == ".log" or entry.name == state.MARK)
    marker = folder / state.FAILURE  # last: a full disk has room for it only now
    marker.touch(mode=0o600)
    marker.write_text(reason + "\n")


def _empty(folder: Path, is_kept: Callable[[Path], bool]) -> None:
    for entry in folder.iterdir():
        if is_kept(entry):
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold back Ctrl-C, SIGTERM and SIGHUP until the end of the block, which is short."""
    held: list[int] = []
    with _handlers((signal.SIGINT, signal.SIGTERM, signal.SIGHUP), lambda n, _: held.append(n)):
        yield
    for number in held[:1]:
        signal.raise_signal(number)


@contextlib.contextmanager
def _handlers(
    numbers: Sequence[signal.Signals], handler: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    """Install a handler for the block; only the main thread may, elsewhere nothing happens."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)
