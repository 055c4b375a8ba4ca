"""One call of the command line: errors become messages and exit codes."""

import contextlib
import errno
import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import click

from gpuwl import texts
from gpuwl.cli.app import App
from gpuwl.cli.commands import cli
from gpuwl.cli.leading import COMPLETE
from gpuwl.errors import GpuwlError, InputError, ReaderGone, SetupError, Terminated

BUG = 70
INTERRUPTED = 130
PIPE_CLOSED = 141
"""What a shell shows for a program that SIGPIPE ended, as `gpuwl explain | head -1` does."""

UNUSABLE = frozenset(
    {
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
        errno.ENOSPC,
        errno.EDQUOT,
        errno.ENOTDIR,
        errno.EEXIST,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
    }
)
"""What a folder answers that cannot be written, or that is none."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
"""What a full disk answers, to a write without saying which file that was."""


def call(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    app = App()
    texts.use(_language(arguments))
    try:
        code = _run(app, arguments)
        app.print_document(code)
    except ReaderGone:
        return PIPE_CLOSED
    except SetupError as error:  # the document could not be written
        app.fail(error)
        return error.exit_code
    return _flushed(code)


def _run(app: App, arguments: Sequence[str]) -> int:
    try:
        return _invoke(app, arguments)
    except click.ClickException as error:
        return _usage(app, error, arguments)
    except (click.Abort, KeyboardInterrupt):
        return _stopped(app, "interrupted", INTERRUPTED)
    except Terminated as signal:
        return _stopped(app, "terminated", 128 + signal.number)
    except GpuwlError as error:
        app.fail(error)
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - the last line of defence: no traceback for people
        return _unforeseen(app, error)


def _invoke(app: App, arguments: Sequence[str]) -> int:
    """Let click run a command. Help is what click itself prints, and where that may fail."""
    try:
        return int(cli.main(list(arguments), "gpuwl", standalone_mode=False, obj=app) or 0)
    except SystemExit as end:  # click's answer to a closed pipe, and its end of a completion
        if COMPLETE in os.environ:
            return int(end.code or 0)
        raise ReaderGone from None
    except OSError as error:
        if app.command:
            raise
        raise SetupError(f"cannot write to standard output: {error.strerror}") from None


def _flushed(code: int) -> int:
    """Write out what others than the console left buffered, as the checker does."""
    try:
        sys.stdout.flush()
    except OSError as error:
        with contextlib.suppress(OSError):
            sys.stderr.write(f"error: cannot write to standard output: {error.strerror}\n")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code or 3
    return code


def _usage(app: App, error: click.ClickException, arguments: Sequence[str]) -> int:
    if _asks_for_json(arguments):
        app.remember("output", "json", 2)  # the parser stopped before it came to that
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return error.exit_code
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"{context.command_path} -h" if context else "gpuwl -h"
    app.fail(InputError(error.format_message(), hint=hint))
    return error.exit_code


def _language(arguments: Sequence[str]) -> str:
    """Return the language that is asked for: help is written before its option is parsed."""
    words = " ".join(arguments).replace("=", " ").split()
    typed = [word for before, word in pairwise(words) if before == "--lang"]
    for asked in (*typed[-1:], os.environ.get("GPUWL_LANG", "")):
        if asked in texts.LANGUAGES:
            return asked
    return texts.of_environment()


def _asks_for_json(arguments: Sequence[str]) -> bool:
    words = " ".join(arguments).replace("=", " ")
    return f" {words} ".rfind(" --output json ") > f" {words} ".rfind(" --output text ")


def _stopped(app: App, word: str, code: int) -> int:
    app.fail(GpuwlError(word))
    return code


def _unforeseen(app: App, error: Exception) -> int:
    from gpuwl.system import oserrors

    known = oserrors.exhausted(error)
    if known is None and isinstance(error, OSError):
        with contextlib.suppress(GpuwlError):  # no home folder: the bug report says so
            known = _unusable_folder(error)
    if known:
        app.fail(known)
        return known.exit_code
    from gpuwl.cli.bugreport import write

    app.fail(write(error))
    return BUG


def _unusable_folder(error: OSError) -> SetupError | None:
    """Return the error of an own folder that cannot be written, None for any other error.

    It is met here, since no command works without these folders, and every part uses them.
    """
    from gpuwl.system import folders

    if error.errno in FULL and error.filename is None:
        hint = f"make room where {folders.state()} is, or set XDG_STATE_HOME to another folder"
        return SetupError(f"cannot write: {error.strerror}", hint=hint)
    path = Path(error.filename) if isinstance(error.filename, str) else Path()
    own = {"XDG_STATE_HOME": folders.state(), "XDG_CACHE_HOME": folders.cache()}
    for variable, folder in own.items():
        there = path.is_relative_to(folder) or folder.is_relative_to(path)
        if there and error.errno in UNUSABLE:
            words = "a file is in the way" if error.errno == errno.EEXIST else error.strerror
            hint = f"free that path, or set {variable} to a folder that can be written"
            return SetupError(f"cannot use {path}: {words}", hint=hint)
    return None
