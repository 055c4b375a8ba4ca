"""What a check may find, as data that is safe to print."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from reprlib import Repr

from gpuwl.errors import GpuwlError

LONGEST_SHOWN = 400
"""Characters of a stranger's text that are shown."""


class Result(StrEnum):
    """What can be said of a step."""

    HOLDS = "holds"
    DIFFERS = "differs"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Difference:
    """Something is not as it should be.

    `mend` is a command; empty leaves it to the step, as `gpuwl step N`.
    """

    what: str
    expected: str
    found: str
    mend: str = ""


@dataclass(frozen=True)
class Evidence:
    """What speaks for a placement: `kind` is `event`, or `condition` where no event is left."""

    pod: str
    node: str
    kind: str
    says: str


@dataclass(frozen=True)
class Remark:
    """Something to know that does not make the step differ."""

    text: str


Finding = Difference | Evidence | Remark
Findings = Iterator[Finding]


@dataclass(frozen=True)
class Outcome:
    """What was found of one step in `seconds`; `obstacle` says why it cannot be told, if so."""

    number: int
    slug: str
    title: str
    seconds: float = 0.0
    differences: tuple[Difference, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    remarks: tuple[Remark, ...] = ()
    obstacle: GpuwlError | None = None

    @property
    def result(self) -> Result:
        """A difference counts although another part of the step cannot be told."""
        if self.differences:
            return Result.DIFFERS
        return Result.UNKNOWN if self.obstacle else Result.HOLDS


def shown(text: object) -> str:
    """Return a stranger's text on one line, its control characters escaped, cut where it is long."""
    words = str(text)
    cut = "…" if len(words) > LONGEST_SHOWN else ""
    return "".join(map(_printable, words[:LONGEST_SHOWN])) + cut


class _Brief(Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxdict, self.maxlist = 4, 6, 6
        self.maxstring = self.maxother = 200


_repr = _Brief().repr


def brief(value: object) -> str:
    """Return a stranger's value on one line, bounded.

    A small YAML file can describe a huge value with aliases, and a dump a very deep one.
    """
    return shown(_repr(value))


def amounts(table: Mapping[str, object]) -> str:
    """Return `name=quantity, …` in order of the names, `nothing` for an empty table."""
    return shown(", ".join(f"{name}={table[name]}" for name in sorted(table)) or "nothing")


def first_few(differences: Iterable[Difference], what: str, most: int = 8) -> Iterator[Difference]:
    """Yield the first differences and, in place of the rest, how many more there are."""
    rest = iter(differences)
    yield from islice(rest, most)
    left = sum(1 for _ in rest)
    if left:
        yield Difference(what, "agreement", f"{left} more differences")


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()
