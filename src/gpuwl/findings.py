"""What a check found, as data that is safe to print; each feature that judges says it this way.

The writers stand below: text, JSON and JUnit; SARIF and GitHub annotations where a feature needs them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any
from xml.etree import ElementTree as ET

LONGEST_SHOWN = 400
"""Characters of a stranger's text that are shown."""


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


def shown(text: object) -> str:
    """Return a stranger's text on one line, its control characters escaped, cut where it is long."""
    words = str(text)
    cut = "…" if len(words) > LONGEST_SHOWN else ""
    return "".join(map(_printable, words[:LONGEST_SHOWN])) + cut


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()


def as_data(finding: Finding) -> dict[str, Any]:
    """Return a finding as a JSON document holds it; null for what it does not have."""
    return {**asdict(finding), "severity": str(finding.severity)}


def as_lines(finding: Finding, words: Mapping[str, str]) -> list[str]:
    """Return a finding for people: a headline, then what was expected and found, and the fix.

    `words` has the names of those three in the reader's language.
    """
    known = {key: getattr(finding, key) for key in ("expected", "found", "fix")}
    lines = [f"  {words[key]}: {value}" for key, value in known.items() if value is not None]
    return [f"{finding.where}: {finding.what}", *lines]


@dataclass(frozen=True)
class TestCase:
    """One test of a JUnit document; it took `seconds`.

    Findings that are errors make it a failure. `obstacle` has the lines that say why it could not be
    judged, `notes` what else there is to know.
    """

    __test__ = False  # pytest takes the name for one of its own

    name: str
    seconds: float
    findings: Sequence[Finding] = ()
    obstacle: Sequence[str] = ()
    notes: Sequence[str] = ()

    @property
    def failures(self) -> list[Finding]:
        """The findings that make it fail."""
        return [one for one in self.findings if one.severity is Severity.ERROR]


def junit(
    suite: str, cases: Sequence[TestCase], properties: Mapping[str, str], words: Mapping[str, str]
) -> str:
    """Return test cases as JUnit XML, the format that CI systems read test results in.

    Shape, after the schema that Jenkins' xUnit plugin keeps
    (https://github.com/jenkinsci/xunit-plugin/tree/master/src/main/resources/org/jenkinsci/plugins/xunit/types/model/xsd):
    `testsuites` > `testsuite` > `testcase`, with `failure` or `error` in it. `properties` stand in the
    suite.
    """
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(bool(one.failures) for one in cases)),
        "errors": str(sum(bool(one.obstacle) and not one.failures for one in cases)),
        "time": f"{sum(one.seconds for one in cases):.3f}",
    }
    suites = ET.Element("testsuites", counts)
    element = ET.SubElement(suites, "testsuite", {"name": suite, "skipped": "0", **counts})
    listed = ET.SubElement(element, "properties")
    for name, value in properties.items():
        ET.SubElement(listed, "property", {"name": name, "value": shown(value)})
    for case in cases:
        _add_case(element, suite.replace(" ", "."), case, words)
    ET.indent(suites)
    body = ET.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _add_case(suite: ET.Element, classname: str, case: TestCase, words: Mapping[str, str]) -> None:
    attributes = {"classname": classname, "name": case.name, "time": f"{case.seconds:.3f}"}
    element = ET.SubElement(suite, "testcase", attributes)
    if case.failures:
        lines = [line for one in case.failures for line in as_lines(one, words)]
        _add_verdict(element, "failure", _summary(case.failures), lines)
    elif case.obstacle:
        _add_verdict(element, "error", shown(case.obstacle[0]), case.obstacle)
    if case.notes:
        ET.SubElement(element, "system-out").text = _joined(case.notes)


def _add_verdict(case: ET.Element, tag: str, message: str, lines: Iterable[str]) -> None:
    attributes = {"message": message, "type": tag}
    ET.SubElement(case, tag, attributes).text = _joined(lines)


def _summary(failures: Sequence[Finding]) -> str:
    suffix = f" (+{len(failures) - 1})" if len(failures) > 1 else ""
    return shown(f"{failures[0].where}: {failures[0].what}") + suffix


def _joined(lines: Iterable[str]) -> str:
    """Join lines; a character that XML does not allow cannot pass `shown`."""
    return "\n".join(shown(line) for line in lines)
