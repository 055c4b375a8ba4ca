"""What is said of a step once its checks are done."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from reprlib import Repr

from gpuwl.errors import GpuwlError
from gpuwl.findings import Finding, Severity, shown
from gpuwl.texts import text
from gpuwl.verification import requirements


class Result(StrEnum):
    """What can be said of a step, or of one requirement."""

    OK = "ok"
    DIFFERS = "differs"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Evidence:
    """What speaks for a placement: `kind` is `event`, or `condition` where no event is left."""

    pod: str
    node: str
    kind: str
    says: str


@dataclass(frozen=True)
class Moot:
    """Requirements that were not looked at, since something that they need is wrong."""

    ids: tuple[str, ...]


Told = Finding | Evidence | Moot
Findings = Iterator[Told]
"""What a check yields. An error makes the step differ, a warning makes it unknown, a note neither."""


@dataclass(frozen=True)
class Outcome:
    """What was found of one step in `seconds`; `obstacle` says why it cannot be told, if so.

    `explain` is the command that teaches the step, `redo` the one that does it instead of the learner.
    """

    number: int
    slug: str
    title: str
    seconds: float = 0.0
    findings: tuple[Finding, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    moot: tuple[str, ...] = ()
    obstacle: GpuwlError | None = None
    explain: str = ""
    redo: str = ""

    @property
    def result(self) -> Result:
        """A difference counts although another part of the step cannot be told."""
        severities = {one.severity for one in self.findings}
        if Severity.ERROR in severities:
            return Result.DIFFERS
        unknown = self.obstacle or Severity.WARNING in severities
        return Result.UNKNOWN if unknown else Result.OK

    @property
    def differences(self) -> tuple[Finding, ...]:
        """The findings that make the step differ."""
        return tuple(one for one in self.findings if one.severity is Severity.ERROR)

    def points(self) -> dict[str, Result]:
        """Return what can be said of each requirement of the step, by its stable id."""
        return {one: self._result_of(one) for one in requirements.of(self.slug)}

    def _result_of(self, requirement: str) -> Result:
        severities = {one.severity for one in self.findings if one.id == requirement}
        if Severity.ERROR in severities or requirement in self.moot:
            return Result.DIFFERS
        unknown = self.obstacle or Severity.WARNING in severities
        return Result.UNKNOWN if unknown else Result.OK


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
    words = ", ".join(f"{name}={table[name]}" for name in sorted(table))
    return shown(words or text("verify.nothing"))


def first_few(findings: Iterable[Finding], most: int = 8) -> Iterator[Finding]:
    """Yield the first findings and, in place of the rest, how many more there are."""
    rest = iter(findings)
    yield from islice(rest, most)
    left = list(rest)
    if left:
        what = text("verify.more", number=len(left))
        yield Finding(left[0].id, left[0].file or left[0].where, what, left[0].severity)
