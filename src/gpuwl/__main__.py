"""The entry point: from a command line to an exit code. No traceback ever leaves here."""

import gc
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from gpuwl.errors import Terminated

INTERRUPTED = 130
FEWER_COLLECTIONS = 100_000
"""Allocations between two runs of the garbage collector. Importing kubernetes makes hundreds of
thousands of objects that stay, and looking through them again and again costs an eighth of it."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its code."""
    gc.set_threshold(FEWER_COLLECTIONS)
    _open_standard_streams()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup(1) had it ignored
            signal.signal(number, _terminate)
    try:
        from gpuwl.cli.entry import call
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Terminated as terminated:
        sys.exit(128 + terminated.number)
    code = call(sys.argv[1:] if arguments is None else arguments)
    gc.freeze()  # the last look for garbage, at exit, takes a tenth of a second and frees nothing
    sys.exit(code)


def _terminate(number: int, _: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # cleaning up is not interrupted by a second one
    raise Terminated(number)


def _open_standard_streams() -> None:
    """Let a stream that the caller closed lead nowhere, instead of into the next file opened."""
    for descriptor, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            os.dup2(opened, descriptor)
            setattr(sys, name, os.fdopen(descriptor, "w" if descriptor else "r"))


if __name__ == "__main__":
    main()
