"""Files written whole or not at all, and files opened without waiting for what is no file."""

import errno
import io
import os
import stat
from pathlib import Path

UNFINISHED = ".gpuwl-unfinished"
"""The end of a temporary name; what carries it was left by a killed process."""


def replace_file(target: Path, data: bytes, mode: int, *, durable: bool = True) -> None:
    """Put `data` at `target` in one move; raises OSError, and leaves no temporary file then."""
    unfinished = target.with_name(f".{target.name}{UNFINISHED}")
    unfinished.unlink(missing_ok=True)
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)  # the umask does not decide whether a script runs
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        unfinished.replace(target)
        if durable:
            _sync(target.parent)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def open_regular(path: Path) -> io.BufferedReader:
    """Open a file to read, OSError where it is no regular one: a device has no end.

    O_NONBLOCK, since a named pipe would wait for its writer.
    """
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def _sync(folder: Path) -> None:
    """Let the new name outlive a power cut too."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
