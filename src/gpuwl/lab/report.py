"""Pure rendering: plain data in, the text of an artifact out."""

from collections.abc import Iterable, Mapping


def rows(table: Iterable[tuple[str, ...]]) -> str:
    """Return one line a row, words joined by a blank, sorted by the first word."""
    return lines(" ".join(row) for row in sorted(table))


def pairs(values: Mapping[str, str]) -> str:
    """Return `KEY=value` lines in the given order."""
    return lines(f"{key}={value}" for key, value in values.items())


def lines(texts: Iterable[str]) -> str:
    """Join lines so that the text ends in exactly one newline and no line in a blank."""
    return "".join(f"{text.rstrip()}\n" for text in texts)


def one_line(text: str) -> str:
    """Return a text with each line break replaced by one blank."""
    return " ".join(text.splitlines()).strip()
