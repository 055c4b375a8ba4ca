"""The entry point: from a command line to an exit code. No traceback ever leaves here."""

import contextlib
import gc
import io
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
    try:
        _prepare()
        from gpuwl.cli.entry import call

        code = call(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:
        code = _broken_off(INTERRUPTED)
    except Terminated as terminated:
        code = _broken_off(128 + terminated.number)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end is not interrupted
    gc.freeze()  # the last look for garbage, at exit, takes a tenth of a second and frees nothing
    sys.exit(code)


def _broken_off(code: int) -> int:
    """Let what standard output still buffers go nowhere: its reader may take nothing any more."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _prepare() -> None:
    for number, handler, unless in (
        (signal.SIGINT, _interrupt, {signal.SIG_IGN, signal.SIG_DFL}),
        (signal.SIGTERM, _terminate, {signal.SIG_IGN}),
        (signal.SIGHUP, _terminate, {signal.SIG_IGN}),  # nohup(1) had it ignored
    ):
        if signal.getsignal(number) not in unless:
            signal.signal(number, handler)
    gc.set_threshold(FEWER_COLLECTIONS)
    _open_standard_streams()
    if os.environ.get("HOME") == "":
        del os.environ["HOME"]  # else `~` would be the root of the file system


def _interrupt(number: int, _: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # cleaning up is not interrupted by a second one
    raise KeyboardInterrupt


def _terminate(number: int, _: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise Terminated(number)


def _open_standard_streams() -> None:
    """Let a stream that the caller closed lead nowhere, instead of into the next file opened."""
    for descriptor, name in ((0, "stdin"), (1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            os.dup2(opened, descriptor)
            setattr(sys, name, os.fdopen(descriptor, "w" if descriptor else "r"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # what it cannot encode is escaped


if __name__ == "__main__":
    main()
