"""What an OSError of this machine means, in plain words."""

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

from gpuwl.errors import SetupError
from gpuwl.system.files import UNFINISHED

LIMITS = {
    errno.EAGAIN: "this user may start no more processes (ulimit -u)",
    errno.EMFILE: "this process may open no more files (ulimit -n)",
    errno.ENFILE: "this machine may open no more files",
    errno.ENOMEM: "this machine has no memory left",
}
"""What the machine answers that allows no more, whatever was to be done."""


def words(error: OSError) -> str:
    """Return what an error says, without its number and path."""
    if error.errno == errno.EEXIST:
        return "a file is in the way"
    return LIMITS.get(error.errno or 0) or error.strerror or str(error)


@contextlib.contextmanager
def explained(doing: str, path: Path, hint: str) -> Iterator[None]:
    """Turn an OSError of the body into a SetupError such as `cannot write PATH: Permission denied`.

    `doing` are the words before the path. A path that the error names itself is added where it is
    another one than `path`.
    """
    try:
        yield
    except OSError as error:
        where = str(error.filename2 or error.filename or path)
        ours = where.endswith(UNFINISHED) or where == str(path)
        other = "" if ours else f" ({where})"
        raise SetupError(f"{doing} {path}: {words(error)}{other}", hint=hint) from None


def exhausted(error: Exception) -> SetupError | None:
    """Return the error of a machine that allows no more of something; None for any other error."""
    found = LIMITS.get(error.errno or 0) if isinstance(error, OSError) else None
    if isinstance(error, RuntimeError) and "start new thread" in str(error):
        found = LIMITS[errno.EAGAIN]
    if isinstance(error, MemoryError):
        found = LIMITS[errno.ENOMEM]
    if isinstance(error, FileNotFoundError) and "usable temporary directory" in str(error):
        hint = "set TMPDIR to a folder that can be written"
        return SetupError("no temporary folder can be written", hint=hint)
    return SetupError(found, hint="raise that limit, or end other programs") if found else None
