"""One call of the command line: errors become messages and exit codes."""

import contextlib
import os
import sys
from collections.abc import Sequence

import click

from gpuwl.cli.app import App
from gpuwl.cli.commands import cli
from gpuwl.errors import GpuwlError, InputError, ReaderGone, SetupError, Terminated

BUG = 70
INTERRUPTED = 130
PIPE_CLOSED = 141
"""What a shell shows for a program that SIGPIPE ended, as `gpuwl explain | head -1` does."""


def call(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    app = App()
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
        return _bug(app, error)


def _invoke(app: App, arguments: Sequence[str]) -> int:
    """Let click run a command. Help is what click itself prints, and where that may fail."""
    try:
        return int(cli.main(list(arguments), "gpuwl", standalone_mode=False, obj=app) or 0)
    except SystemExit:  # click's answer to a closed pipe
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


def _asks_for_json(arguments: Sequence[str]) -> bool:
    words = " ".join(arguments).replace("=", " ")
    return f" {words} ".rfind(" --output json ") > f" {words} ".rfind(" --output text ")


def _stopped(app: App, word: str, code: int) -> int:
    app.fail(GpuwlError(word))
    return code


def _bug(app: App, error: Exception) -> int:
    from gpuwl.bugreport import write

    app.fail(write(error))
    return BUG
