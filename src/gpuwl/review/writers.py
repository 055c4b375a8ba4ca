"""Findings in the forms that code hosts read: SARIF 2.1.0 and GitHub's workflow commands."""

from collections.abc import Sequence
from typing import Any

from gpuwl import __version__
from gpuwl.findings import Finding, Severity

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"
COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
"""https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands"""


def sarif(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the findings as a SARIF log with one run."""
    rules = [{"id": name} for name in dict.fromkeys(each.id for each in findings)]
    driver = {"name": "gpuwl", "version": __version__, "rules": rules}
    results = [_result(each) for each in findings]
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _result(finding: Finding) -> dict[str, Any]:
    found: dict[str, Any] = {
        "ruleId": finding.id,
        "level": str(finding.severity),
        "message": {"text": message(finding)},
    }
    if finding.file:
        region = {"region": {"startLine": finding.line}} if finding.line else {}
        place = {"artifactLocation": {"uri": finding.file}, **region}
        found["locations"] = [{"physicalLocation": place}]
    return found


def message(finding: Finding) -> str:
    """Return what a finding says in one line: where, what, and the fix."""
    fix = f"; {finding.fix}" if finding.fix else ""
    return f"{finding.where}: {finding.what}{fix}"


def github(findings: Sequence[Finding]) -> list[str]:
    """Return the findings as workflow commands, one a line."""
    return [_command(each) for each in findings]


def _command(finding: Finding) -> str:
    place = f"file={_property(finding.file)}," if finding.file else ""
    place += f"line={finding.line}," if finding.file and finding.line else ""
    name = COMMANDS[finding.severity]
    return f"::{name} {place}title={_property(finding.id)}::{_data(message(finding))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
