"""Reading an attempt's text files. Facts count, and on which line they stand; form does not.

A byte order mark, carriage returns, several blanks or a tab between columns, and what ends the file are
as a person's tools write them.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from gpuwl.errors import SetupError
from gpuwl.findings import Finding, shown
from gpuwl.lab.artifacts import Artifacts
from gpuwl.texts import text
from gpuwl.verification.outcome import Findings, first_few


def missing(requirement: str, relative: str) -> Finding:
    """Return the finding of a file that is not there."""
    words = text("verify.file_missing")
    return Finding(requirement, relative, words, file=relative, found=text("verify.no_file"))


def read(artifacts: Artifacts, relative: str) -> bytes | None:
    """Return a file's content, None where there is no file of that name.

    Raises SetupError where it is there and cannot be read.
    """
    path = artifacts.path(relative)
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError as error:
        message = text("verify.unreadable", path=path, words=error.strerror)
        raise SetupError(message, hint=f"ls -l {path}") from None


def lines(data: bytes) -> list[str]:
    """Return the lines of a file with one blank between words; ValueError where it is not UTF-8."""
    found = [" ".join(line.split()) for line in data.decode("utf-8-sig").split("\n")]
    while found and not found[-1]:
        found.pop()
    return found


def told(artifacts: Artifacts, requirement: str, relative: str) -> "list[str] | Finding":
    """Return the lines of a file, or the finding that says why there are none."""
    data = read(artifacts, relative)
    if data is None:
        return missing(requirement, relative)
    try:
        return lines(data)
    except UnicodeDecodeError as error:
        found = text("verify.not_utf8", byte=error.start)
        what = text("verify.file_encoding")
        return Finding(requirement, relative, what, file=relative, expected="UTF-8", found=found)


def compare(
    artifacts: Artifacts, requirement: str, relative: str, expected: Sequence[str]
) -> Findings:
    """Compare the lines of a file with what they should be."""
    found = told(artifacts, requirement, relative)
    if isinstance(found, Finding):
        yield found
        return
    yield from first_few(_differing(requirement, relative, [*expected], found))


def _differing(
    requirement: str, relative: str, expected: list[str], found: list[str]
) -> Iterator[Finding]:
    if expected != found and sorted(expected) == sorted(found):
        yield order(requirement, relative, expected, found)
        return
    for number, (want, have) in enumerate(zip_longest(expected, found), 1):
        if want != have:
            yield Finding(
                requirement,
                relative,
                text("verify.line_differs", line=number),
                file=relative,
                line=number,
                expected=_in_words(want),
                found=_in_words(have),
            )


def order(requirement: str, relative: str, expected: list[str], found: list[str]) -> Finding:
    """Return the finding of the right lines in another order."""
    return Finding(
        requirement,
        relative,
        text("verify.lines_order"),
        file=relative,
        expected=shown(" | ".join(expected)),
        found=shown(" | ".join(found)),
    )


def _in_words(line: str | None) -> str:
    return text("verify.no_line") if line is None else shown(line) or text("verify.empty_line")
