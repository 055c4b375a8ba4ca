"""Reading an attempt's files, and the rules for all text files of the lab."""

from collections.abc import Iterator
from itertools import zip_longest

from gpuwl.errors import SetupError
from gpuwl.lab.artifacts import Artifacts
from gpuwl.verification.findings import Difference, Findings, first_few, shown


def missing(relative: str) -> Difference:
    """Return the difference of a file that is not there."""
    return Difference(relative, "the file", "no such file")


def read(artifacts: Artifacts, relative: str) -> bytes | None:
    """Return a file's content, None where there is no file of that name.

    Raises SetupError where it is there and cannot be read.
    """
    path = artifacts.path(relative)
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError as error:
        raise SetupError(f"cannot read {path}: {error.strerror}", hint=f"ls -l {path}") from None


def text(artifacts: Artifacts, relative: str) -> str | None:
    """Return a file's text, None where there is none; what is not UTF-8 is replaced."""
    data = read(artifacts, relative)
    return None if data is None else data.decode(errors="replace")


def follows_rules(artifacts: Artifacts, relative: str) -> Findings:
    """Compare a text file with the rules of all of them: there, UTF-8, line ends, no blanks."""
    data = read(artifacts, relative)
    if data is None:
        yield missing(relative)
    else:
        yield from _breaches(relative, data)


def _breaches(relative: str, data: bytes) -> Iterator[Difference]:
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as error:
        yield Difference(relative, "UTF-8", f"{error.reason} at byte {error.start}")
        return
    if data.startswith(b"\xef\xbb\xbf"):
        yield Difference(relative, "UTF-8 without a byte order mark", "a byte order mark")
    if not data.endswith(b"\n"):
        yield Difference(relative, "one newline at the end", "none")
    elif data.endswith(b"\n\n"):
        yield Difference(relative, "one newline at the end", "several")
    trailing = [str(number) for number, line in enumerate(lines, 1) if line != line.rstrip()]
    if trailing:
        found = f"blanks or carriage returns at the end of line {', '.join(trailing[:8])}"
        yield Difference(relative, "no trailing blanks", found)


def compare(artifacts: Artifacts, relative: str, expected: str) -> Findings:
    """Compare a text file with what it should hold, line by line.

    A breach of the rules is told once and not again for each line.
    """
    yield from follows_rules(artifacts, relative)
    found = text(artifacts, relative)
    if found is not None:
        yield from first_few(_lines(relative, expected, found), relative)


def _lines(relative: str, expected: str, found: str) -> Iterator[Difference]:
    wanted, there = _stripped(expected), _stripped(found)
    if wanted != there and sorted(wanted) == sorted(there):
        yield Difference(relative, f"the lines in order: {', '.join(wanted)}", ", ".join(there))
        return
    for number, (want, have) in enumerate(zip_longest(wanted, there), 1):
        if want != have:
            yield Difference(f"{relative}, line {number}", _line(want), _line(have))


def _line(line: str | None) -> str:
    return "no line" if line is None else shown(line) or "an empty line"


def _stripped(content: str) -> list[str]:
    return [line.rstrip() for line in content.removeprefix("\ufeff").rstrip().split("\n")]
