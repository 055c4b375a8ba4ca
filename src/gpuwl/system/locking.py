"""Locks that die with their holder, and that say who the holder is. The only ones that gpuwl has.

A lock is flock(2) on a file: the kernel drops it when its holder ends, however that happens. The
text in the file (process, command, host, time) only informs whoever comes second; a file that a
killed process left is no lock. The holder removes its file before it lets go.

flock by hand and not the package filelock: importing that costs a tenth of a second, and it can
neither name the holder nor remove its file safely.
"""

import contextlib
import datetime as dt
import errno
import fcntl
import json
import os
import shlex
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from gpuwl.errors import SetupError
from gpuwl.system import waiting

MODE = 0o644
"""Whoever comes second, another user too, may read who holds the lock."""
LONGEST_TEXT = 4096
SECONDS_BETWEEN_LOOKS = 0.05


@dataclass(frozen=True)
class Holder:
    """Who holds a lock: process id, command line, host, and since when (RFC 3339, UTC).

    `doing` is how far it is, in words, where it says that.
    """

    pid: int
    command: str
    host: str
    since: str
    doing: str = ""

    @classmethod
    def this(cls) -> "Holder":
        """Describe this process."""
        command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])[:1000]
        now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        return cls(os.getpid(), command, socket.gethostname(), now)

    def __str__(self) -> str:
        """Say it the way an error does."""
        elsewhere = "" if self.host == socket.gethostname() else f" on {self.host}"
        doing = f": {self.doing}" if self.doing else ""
        return f"process {self.pid}{elsewhere} ({self.command}) since {self.since}{doing}"


class Lock:
    """A lock that is held. `tell` says to those who wait how far its holder is."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._holder = Holder.this()
        with contextlib.suppress(OSError):
            os.fchmod(descriptor, MODE)  # whatever the umask is
        self.tell("")

    def tell(self, doing: str) -> None:
        """Write down what the holder does; only a courtesy, so a full disk is passed over."""
        text = json.dumps(asdict(replace(self._holder, doing=doing))) + "\n"
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, text.encode(), 0)


@contextlib.contextmanager
def held(path: Path, what: str) -> Iterator[Lock]:
    """Hold the lock at `path` for the body; `what` names the locked thing in the error.

    The folder must be there. Raises SetupError at once where somebody else holds the lock, with
    process, command and time, and OSError where the file cannot be made.
    """
    try:
        descriptor = acquire(path)
    except PermissionError:
        raise _of_another_user(path, what) from None
    if descriptor is None:
        raise busy(path, what)
    with _released(path, descriptor):
        yield Lock(descriptor)


@contextlib.contextmanager
def waited(path: Path, on_wait: Callable[[str], None]) -> Iterator[Lock]:
    """Hold the lock at `path` for the body, as soon as nobody else does.

    `on_wait` is told who that is, again and again while it lasts.
    """
    descriptor = acquire(path)
    while descriptor is None:
        on_wait(_named(path))
        descriptor = waiting.until(lambda: acquire(path), seconds=1, every=SECONDS_BETWEEN_LOOKS)
    with _released(path, descriptor):
        yield Lock(descriptor)


@contextlib.contextmanager
def tried(path: Path) -> Iterator[Lock | None]:
    """Hold the lock at `path` for the body; yields None where somebody else has it."""
    descriptor = acquire(path)
    if descriptor is None:
        yield None
        return
    with _released(path, descriptor):
        yield Lock(descriptor)


@contextlib.contextmanager
def shared(path: Path) -> Iterator[bool]:
    """Use what a file stands for, as others may too; yields False where somebody has it `alone`."""
    with _flocked(path, fcntl.LOCK_SH) as mine:
        yield mine


@contextlib.contextmanager
def alone(path: Path) -> Iterator[bool]:
    """Have what a file stands for alone; yields False where somebody uses it."""
    with _flocked(path, fcntl.LOCK_EX) as mine:
        yield mine


@contextlib.contextmanager
def _flocked(path: Path, kind: int) -> Iterator[bool]:
    """Lock a file that stays; opened for writing, since NFS asks for that."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        yield _lock(descriptor, kind)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _released(path: Path, descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        release(path, descriptor)


def acquire(path: Path) -> int | None:
    """Return a descriptor that holds the lock, None where somebody else does."""
    while True:
        descriptor = _open(path)
        try:
            if not _lock(descriptor, fcntl.LOCK_EX):
                os.close(descriptor)
                return None
        except BaseException:
            os.close(descriptor)
            raise
        if _is_at(path, descriptor):
            return descriptor
        os.close(descriptor)  # its last holder removed it between our two calls


def _open(path: Path) -> int:
    """Open the file of a lock. That of another user is only read, and goes where it is no lock.

    Raises PermissionError where it must not go, or may not even be read and so be told from a lock.
    """
    flags = os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | flags, MODE)
    except PermissionError:
        if not path.exists():
            raise
    descriptor = os.open(path, os.O_RDONLY | flags)
    if _lock(descriptor, fcntl.LOCK_EX) and _is_at(path, descriptor):
        try:
            path.unlink()
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)
        return _open(path)
    return descriptor


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def release(path: Path, descriptor: int) -> None:
    """Remove the file, unless another one is in its place by now, and let go."""
    if _is_at(path, descriptor):
        path.unlink(missing_ok=True)
    os.close(descriptor)


def holder(path: Path) -> Holder | None:
    """Return who wrote the file, None where it does not say."""
    try:
        with path.open("rb") as file:
            return Holder(**json.loads(file.read(LONGEST_TEXT)))
    except (OSError, ValueError, TypeError):
        return None


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def busy(path: Path, what: str) -> SetupError:
    """Return the error that says who holds the lock at `path`."""
    return SetupError(
        f"another gpuwl works on {what}: {_named(path)}",
        details=[f"its lock is {path}"],
        hint="wait until it has ended; the lock goes with it",
    )


def _of_another_user(path: Path, what: str) -> Exception:
    """Return the error of a lock that only its owner can read or take away."""
    try:
        owner = path.stat().st_uid
    except OSError:
        return PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return SetupError(
        f"another user (uid {owner}) works on {what}, or did and was killed: {path}",
        details=[str(found)] if (found := holder(path)) else [],
        hint="ask that user, or choose another place",
    )


def _named(path: Path) -> str:
    found = holder(path)
    if found is None:
        return "it has not said yet which process it is"
    if not _is_suspended(found):
        return str(found)
    return f"{found}; it is suspended, and goes on with: kill -CONT {found.pid}"


def _is_suspended(found: Holder) -> bool:
    """Say whether Ctrl-Z or SIGSTOP halted it, as far as /proc tells."""
    if found.host != socket.gethostname():
        return False
    try:
        stat = Path(f"/proc/{found.pid}/stat").read_text(errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[:1] == ["T"]
