"""All writing to standard output and standard error. Only importer of rich.

Results go to standard output; progress, warnings and errors to standard error. rich is imported
only where a terminal listens; elsewhere lines are plain, unwrapped and without colour.
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from gpuwl.errors import GpuwlError, ReaderGone, SetupError
from gpuwl.system.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

QUIET_INTERVAL = 15.0
"""Seconds between two lines of one stage where no terminal shows a moving one."""
MOVING_INTERVAL = 0.1
"""Seconds between two states of one stage that a terminal shows."""
BAR_WIDTH = 24


class Reporter:
    """Writes for people (`text`) or for programs (`json`: one document at the end)."""

    def __init__(self, *, output: str = "text", quiet: bool = False, verbose: bool = False) -> None:
        self.as_json = output == "json"
        self.verbose = verbose
        self._quiet = quiet
        self._status: Status | None = None
        self._last_progress = 0.0
        self._stage: str | None = None
        self._stage_began = 0.0

    @property
    def for_people(self) -> bool:
        """Tell whether standard output is a terminal that a person looks at."""
        return not self.as_json and sys.stdout.isatty()

    def result(self, text: str = "", *, style: str = "") -> None:
        """Print one line of the result; nothing where a JSON document is to follow."""
        if not self.as_json:
            self._line(sys.stdout, text, style)

    def spans(self, parts: Sequence[tuple[str, str]], *, detail: bool = False) -> None:
        """Print one line of the result in pieces, each a text with its style.

        With `detail`, --quiet leaves it out.
        """
        if self.as_json or (detail and self._quiet):
            return
        with _writing(sys.stdout):
            if sys.stdout.isatty():
                from rich.text import Text

                _console(sys.stdout).print(Text.assemble(*parts), soft_wrap=True)
            else:
                sys.stdout.write("".join(text for text, _ in parts) + "\n")
            sys.stdout.flush()

    def detail(self, text: str, *, style: str = "") -> None:
        """Print one line of the result that --quiet leaves out."""
        if not self._quiet:
            self.result(text, style=style)

    def document(self, content: Mapping[str, Any]) -> None:
        """Print the JSON document of a command."""
        escaped = "utf" not in (sys.stdout.encoding or "").lower()
        self.raw(json.dumps(content, indent=2, ensure_ascii=escaped) + "\n")

    def raw(self, text: str) -> None:
        """Print text to standard output as it is."""
        with _writing(sys.stdout):
            sys.stdout.write(text)
            sys.stdout.flush()

    def note(self, text: str) -> None:
        """Tell something that is neither a result nor a warning."""
        if not self._quiet:
            self._line(sys.stderr, text)

    def more(self, text: str) -> None:
        """Tell what only --verbose asks for."""
        if self.verbose:
            self._line(sys.stderr, text)

    def warn(self, text: str) -> None:
        """Warn about something that goes on all the same."""
        self._line(sys.stderr, f"warning: {text}", "yellow")

    def error(self, error: GpuwlError) -> None:
        """Print what happened, whose words it quotes, what to do now."""
        self._line(sys.stderr, f"error: {error.message}", "bold red")
        for detail in error.details:
            self._line(sys.stderr, f"  {detail}")
        if error.hint:
            self._line(sys.stderr, f"hint: {error.hint}", "cyan")

    def progress(self, now: Progress) -> None:
        """Show how far something is: in place on a terminal, elsewhere a line now and then.

        A new stage is told at once.
        """
        if self._quiet:
            return
        began = time.monotonic()
        if now.stage != self._stage:
            self._stage, self._stage_began, self._last_progress = now.stage, began, 0.0
        if began - self._last_progress < (
            QUIET_INTERVAL if self._status is None else MOVING_INTERVAL
        ):
            return
        self._last_progress = began
        spent = f", {_duration(began - self._stage_began)}" if now.unit else ""
        if self._status is None:
            self._line(sys.stderr, f"{now}{spent}")
        else:
            self._status.update(_moving(now, f"{now}{spent}"))

    @contextlib.contextmanager
    def moving(self, text: str) -> Iterator[None]:
        """Let progress move in place while the body runs, where standard error is a terminal.

        It begins with `text`.
        """
        if self._quiet or not sys.stderr.isatty():
            yield
            return
        with _console(sys.stderr).status(_plain(text)) as status:
            self._status = status
            try:
                yield
            finally:
                self._status = None

    def table(self, header: Sequence[str], body: Sequence[Sequence[str]]) -> None:
        """Print rows in columns as wide as their widest word."""
        widths = [max(map(len, column)) for column in zip(header, *body, strict=True)]
        for row in (header, *body):
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            self.result("  ".join(cells).rstrip())

    def _line(self, stream: TextIO, text: str, style: str = "") -> None:
        with _writing(stream):
            if stream.isatty():
                _console(stream).print(
                    text, style=style or None, markup=False, highlight=False, soft_wrap=True
                )
            else:
                stream.write(text + "\n")
            stream.flush()


@contextlib.contextmanager
def _writing(stream: TextIO) -> Iterator[None]:
    """Turn a stream that takes no more into an error; what it still buffers goes nowhere.

    Raises ReaderGone where a pipe was closed, SetupError where standard output cannot be written.
    Standard error is where we would tell of it, so its own failure is passed over.
    """
    try:
        yield
    except OSError as error:
        _let_go(stream)
        if stream is not sys.stdout:
            return
        if isinstance(error, BrokenPipeError):
            raise ReaderGone from None
        raise SetupError(f"cannot write to standard output: {error.strerror}") from None


def _let_go(stream: TextIO) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _console(stream: TextIO) -> "Console":
    from rich.console import Console

    return Console(file=stream)


def _moving(now: Progress, text: str) -> Any:  # noqa: ANN401 - rich's own type, imported late
    """Return a line of progress, with a bar behind it where it says how much of how much is done."""
    if now.total is None:
        return _plain(text)
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    line = Table.grid(padding=(0, 1))
    line.add_row(_plain(text), ProgressBar(total=now.total, completed=now.done, width=BAR_WIDTH))
    return line


def _duration(seconds: float) -> str:
    """Return a duration as a person reads it (`7 s`, `6 min 40 s`)."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def _plain(text: str) -> Any:  # noqa: ANN401 - rich's own type, imported late
    from rich.text import Text

    return Text(text)
