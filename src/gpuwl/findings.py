"""What a check found, as data that is safe to print; each feature that judges says it this way.

The writers stand beside it: text, JSON and JUnit here, SARIF and GitHub annotations where a feature
needs them.
"""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How much a finding weighs: `error` will not work, `warning` may not, `note` is worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """One finding.

    `id` is stable (`unknown-name`), `where` names the object or the part of an attempt, `what` says
    in a sentence what is wrong. `file` and `line` (from 1) are there where a file is judged.
    `expected` and `found` are texts of one line; `fix` is what to do now, a command to paste where
    there is one.
    """

    id: str
    where: str
    what: str
    severity: Severity = Severity.ERROR
    file: str | None = None
    line: int | None = None
    expected: str | None = None
    found: str | None = None
    fix: str | None = None
