"""The entry point: from a command line to an exit code. No traceback ever leaves here."""

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from gpuwl.cli.entry import Terminated, call


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _terminate)
    code = call(sys.argv[1:] if arguments is None else arguments)
    sys.exit(_flushed(code))


def _terminate(number: int, _: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # cleaning up is not interrupted by a second one
    raise Terminated(number)


def _flushed(code: int) -> int:
    """Write out what is buffered; a reader that went away is not an error of ours to report."""
    try:
        sys.stdout.flush()
    except OSError as error:
        with contextlib.suppress(OSError):
            sys.stderr.write(f"error: cannot write to standard output: {error.strerror}\n")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code or 3
    return code


if __name__ == "__main__":
    main()
