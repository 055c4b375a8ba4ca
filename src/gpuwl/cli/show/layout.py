"""Laying out text for the width of a terminal, counted in display cells: Korean takes two each."""

import re
import shutil
import sys
from collections.abc import Iterable, Sequence

from rich.cells import cell_len

PROSE = 96
"""Cells of a line of prose, where no terminal is narrower."""
NARROWEST = 40
_WORD = re.compile(r"`[^`]*`\S*|\S+")
"""A word, or a whole command between backticks: nobody can paste half of one."""


def width() -> int:
    """Return the cells of a line: the terminal's, at most PROSE, and PROSE where there is none."""
    if not sys.stdout.isatty():
        return PROSE
    return max(NARROWEST, min(PROSE, shutil.get_terminal_size().columns))


def wrapped(
    text: str, *, indent: str = "", hanging: str | None = None, most: int | None = None
) -> list[str]:
    """Return a paragraph as lines of at most `most` cells, `width()` where that is None.

    `hanging` is the indent from the second line on.
    """
    follows = indent if hanging is None else hanging
    most = most or width()
    first, *words = _WORD.findall(text) or [""]
    lines = [indent + first]
    for word in words:
        longer = f"{lines[-1]} {word}"
        if cell_len(longer) <= most:
            lines[-1] = longer
        else:
            lines.append(follows + word)
    return lines


def line(text: str, *, hanging: str = "  ") -> list[str]:
    """Return a text of one line as it is, on a terminal wrapped to its width."""
    return wrapped(text, hanging=hanging) if sys.stdout.isatty() else [text]


def padded(text: str, cells: int) -> str:
    """Return a text with blanks behind it, so that it takes that many cells."""
    return text + " " * max(0, cells - cell_len(text))


def columns(rows: Sequence[Sequence[str]], *, right: Sequence[bool] = ()) -> list[str]:
    """Return rows as lines, each column as wide as its widest cell; the last one as it is.

    `right` tells of each column whether its cells stand at the right, as figures do.
    """
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    sides = right or [False] * len(widths)
    return ["  ".join(map(_placed, row, widths, sides)).rstrip() for row in rows]


def _placed(text: str, cells: int, right: bool) -> str:
    return " " * max(0, cells - cell_len(text)) + text if right else padded(text, cells)


def screen() -> int:
    """Return the cells of a whole line of the terminal."""
    return max(NARROWEST, shutil.get_terminal_size().columns)


def can_show(characters: str) -> bool:
    """Tell whether standard output's encoding has these characters."""
    try:
        characters.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def prose(paragraphs: Iterable[str], *, indent: str = "") -> list[str]:
    """Return paragraphs as lines, one blank line between two; an indented line stays as it is."""
    lines: list[str] = []
    for paragraph in paragraphs:
        lines += [""] if lines else []
        kept = paragraph.startswith("    ")
        lines += (
            [f"{indent}{line}".rstrip() for line in paragraph.splitlines()]
            if kept
            else wrapped(paragraph, indent=indent)
        )
    return lines
