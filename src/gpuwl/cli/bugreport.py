"""A log for the error that should not have happened."""

import datetime as dt
import os
import platform
import sys
import traceback
from pathlib import Path

from gpuwl import __version__
from gpuwl.errors import GpuwlError
from gpuwl.system import folders, secrets


def write(error: Exception) -> GpuwlError:
    """Write the traceback to a file, and return the error that tells a person where it is."""
    summary = secrets.hidden(f"{type(error).__name__}: {' '.join(str(error).split())}")
    try:
        path = _write(error)
    except (OSError, GpuwlError) as problem:
        return GpuwlError(f"a bug in gpuwl: {summary}", details=[f"no log: {problem}"])
    return GpuwlError(f"a bug in gpuwl: {summary}", hint=f"report it with {path}")


def _write(error: Exception) -> Path:
    stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%SZ")
    folder = folders.state() / ".bugs"
    folders.make(folder)
    path = folder / f"{stamp}-{os.getpid()}.log"
    head = f"gpuwl {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
    text = f"{head}{sys.argv}\n\n{''.join(traceback.format_exception(error))}"
    path.write_text(secrets.hidden(text), errors="backslashreplace")
    return path
