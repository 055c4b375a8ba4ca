"""Every error that a person may see: what happened, whose words it quotes, what to do now.

Each class is one row of the exit code table (README, "Exit codes"). Nothing above this module
prints a traceback for them: the command line renders message, details and hint.
"""

from collections.abc import Sequence


class GpuwlError(Exception):
    """An error for people.

    `message` is one line that says what happened. `details` are further lines, mostly the words of
    somebody else (the API server, the scheduler, a log). `hint` says what to do now, as one line
    that may hold a command. `command` is a gpuwl command that helps, such as `run --all`: the command
    line makes the hint of it, with the options that choose the same target and root.
    """

    exit_code = 3

    def __init__(
        self,
        message: str,
        *,
        details: Sequence[str] = (),
        hint: str | None = None,
        command: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details = tuple(details)
        self.hint = hint
        self.command = command


class JudgedNegativeError(GpuwlError):
    """The answer is no: a mismatch, or a read-back that differs from what the lab shows (exit 1)."""

    exit_code = 1


class InputError(GpuwlError):
    """The call or a file that was handed in cannot be used (exit 2)."""

    exit_code = 2


class SetupError(GpuwlError):
    """The surroundings do not allow it: binaries, control plane, root, an earlier step (exit 3)."""


class ClusterError(GpuwlError):
    """The API server could not be reached or refused, in its own words (exit 3).

    `status` is the HTTP status, None where there was no answer. `reason` is the Status object's
    reason (`NotFound`, `Conflict`, …), empty where the body held none. `causes` are the reasons of
    the Status object's causes (`NamespaceTerminating`).
    """

    def __init__(  # noqa: PLR0913 - one keyword per fact of a Status object
        self,
        message: str,
        *,
        status: int | None = None,
        reason: str = "",
        causes: Sequence[str] = (),
        details: Sequence[str] = (),
        hint: str | None = None,
    ) -> None:
        super().__init__(message, details=details, hint=hint)
        self.status = status
        self.reason = reason
        self.causes = tuple(causes)


class WaitTimeoutError(GpuwlError):
    """A wait ran out (exit 4); the details say what was last seen."""

    exit_code = 4


class Terminated(BaseException):
    """SIGTERM or SIGHUP arrived; `number` is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class ReaderGone(BaseException):
    """Whoever read our output has closed it: there is nobody left to tell anything."""
