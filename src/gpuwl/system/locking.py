"""Locks that die with their holder, and that say who the holder is.

A lock is flock(2) on a file: the kernel drops it when its holder ends, however that happens. The
text in the file (process, command, host, time) only informs whoever comes second; a file that a
killed process left is no lock. The holder removes its file before it lets go.

flock by hand and not filelock: importing that costs a tenth of a second, and it can neither name
the holder nor remove its file safely.
"""

import contextlib
import datetime as dt
import fcntl
import json
import os
import shlex
import socket
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from gpuwl.errors import SetupError

MODE = 0o644
"""Whoever comes second, another user too, may read who holds the lock."""
LONGEST_TEXT = 4096


@dataclass(frozen=True)
class Holder:
    """Who holds a lock: process id, command line, host, and since when (RFC 3339, UTC)."""

    pid: int
    command: str
    host: str
    since: str

    @classmethod
    def this(cls) -> "Holder":
        """Describe this process."""
        command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])[:1000]
        now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
        return cls(os.getpid(), command, socket.gethostname(), now)

    def __str__(self) -> str:
        """Say it the way an error does."""
        elsewhere = "" if self.host == socket.gethostname() else f" on {self.host}"
        return f"process {self.pid}{elsewhere} ({self.command}) since {self.since}"


@contextlib.contextmanager
def held(path: Path, what: str) -> Iterator[None]:
    """Hold the lock at `path` for the body; `what` names the locked thing in the error.

    The folder must be there. Raises SetupError at once where somebody else holds the lock, with
    process, command and time, and OSError where the file cannot be made.
    """
    descriptor = acquire(path)
    if descriptor is None:
        raise _busy(path, what)
    try:
        _describe(descriptor)
        yield
    finally:
        release(path, descriptor)


def acquire(path: Path) -> int | None:
    """Return a descriptor that holds the lock, None where somebody else does."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, MODE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        if _is_at(path, descriptor):
            return descriptor
        os.close(descriptor)  # its last holder removed it between our two calls


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


def _describe(descriptor: int) -> None:
    os.ftruncate(descriptor, 0)
    os.write(descriptor, (json.dumps(asdict(Holder.this())) + "\n").encode())


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _busy(path: Path, what: str) -> SetupError:
    found = holder(path)
    return SetupError(
        f"another gpuwl works on {what}: {found or 'it has not said yet which process it is'}",
        details=[f"its lock is {path}"],
        hint="wait until it has ended; the lock goes with it",
    )
