"""Outcomes as JUnit XML, the format that CI systems read test results in.

Shape, after the schema that Jenkins' xUnit plugin keeps
(https://github.com/jenkinsci/xunit-plugin/tree/master/src/main/resources/org/jenkinsci/plugins/xunit/types/model/xsd):
`testsuites` > `testsuite` > one `testcase` for each step, with `failure` for one that differs and
`error` for one that cannot be told.
"""

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from gpuwl.errors import GpuwlError
from gpuwl.verification.findings import Outcome, Result, shown


def render(outcomes: Sequence[Outcome], properties: dict[str, str]) -> str:
    """Return the document; `properties` stand in its suite."""
    counts = {
        "tests": str(len(outcomes)),
        "failures": str(sum(one.result is Result.DIFFERS for one in outcomes)),
        "errors": str(sum(one.result is Result.UNKNOWN for one in outcomes)),
        "time": f"{sum(one.seconds for one in outcomes):.3f}",
    }
    suites = ET.Element("testsuites", counts)
    suite = ET.SubElement(suites, "testsuite", {"name": "gpuwl verify", "skipped": "0", **counts})
    listed = ET.SubElement(suite, "properties")
    for name, value in properties.items():
        ET.SubElement(listed, "property", {"name": name, "value": shown(value)})
    for outcome in outcomes:
        _case(suite, outcome)
    ET.indent(suites)
    body = ET.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'


def _case(suite: ET.Element, outcome: Outcome) -> None:
    attributes = {
        "classname": "gpuwl.verify",
        "name": f"step {outcome.number}: {outcome.title}",
        "time": f"{outcome.seconds:.3f}",
    }
    case = ET.SubElement(suite, "testcase", attributes)
    if outcome.differences:
        _verdict(case, "failure", _summary(outcome), _differences(outcome))
    elif outcome.obstacle:
        _verdict(case, "error", shown(outcome.obstacle.message), _obstacle(outcome.obstacle))
    notes = [f"Pod {e.pod} on {e.node}: {e.says}" for e in outcome.evidence]
    notes += [remark.text for remark in outcome.remarks]
    if notes:
        ET.SubElement(case, "system-out").text = _text(notes)


def _verdict(case: ET.Element, tag: str, message: str, lines: Sequence[str]) -> None:
    attributes = {"message": message, "type": tag}
    ET.SubElement(case, tag, attributes).text = _text(lines)


def _summary(outcome: Outcome) -> str:
    first, more = outcome.differences[0], len(outcome.differences) - 1
    suffix = f" (and {more} more)" if more else ""
    return shown(f"{first.what}: expected {first.expected}, found {first.found}") + suffix


def _differences(outcome: Outcome) -> list[str]:
    lines = []
    for one in outcome.differences:
        lines += [one.what, f"  expected: {one.expected}", f"  found: {one.found}"]
        lines += [f"  mend: {one.mend}"]
    return lines


def _obstacle(error: GpuwlError) -> list[str]:
    return [error.message, *error.details, *([f"hint: {error.hint}"] if error.hint else [])]


def _text(lines: Sequence[str]) -> str:
    """Join lines; a character that XML does not allow cannot pass `shown`."""
    return "\n".join(shown(line) for line in lines)
