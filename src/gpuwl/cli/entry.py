"""One call of the command line: errors become messages and exit codes."""

import os
import sys
from collections.abc import Sequence

import click

from gpuwl.cli.app import App
from gpuwl.cli.commands import cli
from gpuwl.errors import GpuwlError, InputError

BUG = 70
INTERRUPTED = 130
PIPE_CLOSED = 141


class Terminated(BaseException):
    """SIGTERM or SIGHUP arrived; `number` is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def call(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    app = App()
    try:
        code = _run(app, arguments)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    app.print_document(code)
    return code


def _run(app: App, arguments: Sequence[str]) -> int:
    try:
        return int(cli.main(list(arguments), "gpuwl", standalone_mode=False, obj=app) or 0)
    except click.ClickException as error:
        return _usage(app, error)
    except (click.Abort, KeyboardInterrupt):
        return _stopped(app, "interrupted", INTERRUPTED)
    except Terminated as signal:
        return _stopped(app, "terminated", 128 + signal.number)
    except GpuwlError as error:
        app.fail(error)
        return error.exit_code
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - the last line of defence: no traceback for people
        return _bug(app, error)


def _usage(app: App, error: click.ClickException) -> int:
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f"{context.command_path} -h" if context else "gpuwl -h"
    app.fail(InputError(error.format_message(), hint=hint))
    return error.exit_code


def _stopped(app: App, word: str, code: int) -> int:
    app.fail(GpuwlError(word))
    return code


def _bug(app: App, error: Exception) -> int:
    from gpuwl.bugreport import write

    app.fail(write(error))
    return BUG
