"""The operand table (step 2): five lines in their order; the operands within one in any order."""

from collections.abc import Sequence

from gpuwl.findings import Finding, shown
from gpuwl.lab.artifacts import Artifacts
from gpuwl.steps import s2_operands
from gpuwl.texts import text
from gpuwl.verification import files, requirements
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.outcome import Findings, Moot, first_few

FILE = "operands.file"


def table(attempt: Attempt) -> Findings:
    """Check that the file holds the five lines."""
    yield from differences(attempt.artifacts)


def differences(artifacts: Artifacts) -> Findings:
    """Yield what the file says otherwise than the lab."""
    found = files.told(artifacts, FILE, s2_operands.OUTPUT)
    if isinstance(found, Finding):
        yield found
        yield Moot(requirements.of("operands"))
        return
    yield from first_few(_compare(found))


def _compare(lines: Sequence[str]) -> list[Finding]:
    pairs = [line.partition("=")[::2] for line in s2_operands.render().splitlines()]
    keys = [line.partition("=")[0].strip() for line in lines]
    told: list[Finding] = []
    for key, value in pairs:
        stands = [number for number, one in enumerate(keys) if one == key]
        if len(stands) != 1:
            count = text("verify.lines_count", count=len(stands))
            told.append(
                _finding(_of(key), text("verify.operands_line", key=key), f"{key}={value}", count)
            )
            continue
        found = lines[stands[0]].partition("=")[2]
        if _operands(found) != _operands(value):
            what = text("verify.operands_differ", key=key)
            words = shown(found) or text("verify.nothing")
            told.append(_finding(_of(key), what, value, words, stands[0] + 1))
    known = [key for key, _ in pairs]
    for number, key in enumerate(keys, 1):
        if key not in known:
            words = shown(lines[number - 1]) or text("verify.empty_line")
            told.append(_finding(FILE, text("verify.line_too_many"), None, words, number))
    if not told and keys != known:
        told.append(files.order(FILE, s2_operands.OUTPUT, known, keys))
    return told


def _finding(
    requirement: str, what: str, expected: str | None, found: str, line: int | None = None
) -> Finding:
    file = s2_operands.OUTPUT
    return Finding(requirement, file, what, file=file, line=line, expected=expected, found=found)


def _operands(value: str) -> list[str]:
    return sorted(one.strip() for one in value.split(","))


def _of(key: str) -> str:
    return f"operands.{key.lower().replace('_', '-')}"
