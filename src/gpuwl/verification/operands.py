"""The operand table (step 2). Lines and the operands within a line may stand in any order."""

from collections import Counter
from collections.abc import Iterator

from gpuwl.lab.artifacts import Artifacts
from gpuwl.steps import s2_operands
from gpuwl.verification import files
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.findings import Difference, Findings, first_few, shown

Table = dict[str, str]


def table(attempt: Attempt) -> Findings:
    """Check that the file holds the five lines."""
    yield from differences(attempt.artifacts)


def differences(artifacts: Artifacts) -> Findings:
    """Yield what the file says otherwise than the lab."""
    yield from files.follows_rules(artifacts, s2_operands.OUTPUT)
    found = files.text(artifacts, s2_operands.OUTPUT)
    if found is not None:
        yield from first_few(_compare(found), s2_operands.OUTPUT)


def _compare(text: str) -> Iterator[Difference]:
    expected, found = _pairs(s2_operands.render()), _pairs(text)
    repeated = Counter(line.partition("=")[0] for line in text.split("\n") if line.strip())
    for key, value in expected.items():
        what = f"{s2_operands.OUTPUT}, {key}"
        if key not in found:
            yield Difference(what, f"{key}={value}", "no such line")
        elif sorted(found[key].split(",")) != sorted(value.split(",")):
            yield Difference(what, value, shown(found[key]) or "nothing")
        elif repeated[key] > 1:
            yield Difference(what, "one line", f"{repeated[key]} lines")
    for key in found.keys() - expected.keys():
        yield Difference(s2_operands.OUTPUT, "the five lines only", f"also {shown(key)}")


def _pairs(text: str) -> Table:
    lines = [line.rstrip().partition("=") for line in text.removeprefix("\ufeff").split("\n")]
    return {key: value for key, separator, value in lines if key or separator}
