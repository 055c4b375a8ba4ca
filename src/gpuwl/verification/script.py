"""The installed checker (step 8), whatever it is written in: its rule, and its verdict on the dump."""

import shlex
from collections.abc import Sequence
from typing import Any

from gpuwl import checker
from gpuwl.errors import SetupError
from gpuwl.findings import Finding, Severity, shown
from gpuwl.lab.verdict import Verdict
from gpuwl.steps import s8_consistency
from gpuwl.texts import text
from gpuwl.verification import dump, files, requirements
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.grading import answers, cases, keeping
from gpuwl.verification.grading.grade import ALL_PARTS, Lack, grade, smaller
from gpuwl.verification.grading.running import Run, Sealed, user
from gpuwl.verification.outcome import Findings, Moot, first_few

SCRIPT = s8_consistency.SCRIPT
OUTPUT = s8_consistency.OUTPUT
RUNS, VERDICT = "consistency.script", "consistency.file"
RULE = tuple(f"consistency.{part}" for part in ALL_PARTS)


def answers_right(attempt: Attempt) -> Findings:
    """Check that the script has the rule, and that consistency.txt is its answer to the dump."""
    path = attempt.artifacts.path(SCRIPT)
    keeper = keeping.Keeper(attempt.keep)
    keeper.clear()
    if not path.is_file():
        yield files.missing(RUNS, SCRIPT)
    elif not path.stat().st_mode & 0o111:
        fix, what = f"chmod 755 {shlex.quote(str(path))}", text("verify.not_executable")
        yield Finding(
            RUNS, SCRIPT, what, file=SCRIPT, found=f"{path.stat().st_mode & 0o777:o}", fix=fix
        )
    else:
        with Sealed(path, attempt.artifacts, attempt.timeout) as run:
            try:
                yield from _graded(attempt, run, keeper)
                own = _own_answer(attempt, run)
            except SetupError as error:
                what = text("verify.cannot_run", user=user())
                yield Finding(RUNS, SCRIPT, what, file=SCRIPT, found=shown(error.message))
            else:
                yield from _wrote(run)
                yield from verdict_file(attempt, own)
                return
    yield Moot(RULE)
    yield from verdict_file(attempt, None)


def _graded(attempt: Attempt, run: Run, keeper: keeping.Keeper) -> Findings:
    for lack in grade(run, cases.cases(attempt.seed)):
        yield _lacking(attempt, smaller(run, lack), keeper)


def _lacking(attempt: Attempt, lack: Lack, keeper: keeping.Keeper) -> Finding:
    """Keep the dump that shows what is lacking, and return the finding that leads to it."""
    part, fault = lack.fault.part, lack.fault
    kept = keeper.put(part, lack.case.content, answers.expected_of(lack.case), lack.run)
    requirement = f"consistency.{part}"
    return Finding(
        requirement,
        SCRIPT,
        requirements.in_words(requirement),
        file=SCRIPT,
        expected=fault.expected,
        found=fault.found,
        fix=keeping.command(attempt.artifacts.path(SCRIPT), kept),
    )


def _own_answer(attempt: Attempt, run: Run) -> Verdict | None:
    data = files.read(attempt.artifacts, s8_consistency.DUMP)
    return run(data) if data is not None else None


def _wrote(run: Sealed) -> Findings:
    if run.wrote:
        names = shown(", ".join(sorted(run.wrote)))
        yield Finding(RUNS, SCRIPT, text("verify.wrote"), Severity.NOTE, file=SCRIPT, found=names)


def verdict_file(attempt: Attempt, own: Verdict | None) -> Findings:
    """Compare consistency.txt with what the script says of the dump, and that with the rule."""
    found = files.told(attempt.artifacts, VERDICT, OUTPUT)
    if isinstance(found, Finding):
        yield found
        return
    expected = _judged(attempt)
    if expected is None:  # told by the dump's own check
        return
    if expected[0].startswith("MISMATCH="):
        yield from _disagreeing(expected)
    heads = [line.split(" ")[0] for line in found]
    if sorted(heads) != sorted(expected):
        yield _not_the_verdict(expected, found)
    elif own is not None and found != files.lines(own.output.encode(errors="replace")):
        yield from first_few([_not_its_output(own, found)])


def _disagreeing(expected: Sequence[str]) -> Findings:
    """Tell of nodes that disagree: in the lab, all labelled nodes agree."""
    what, found = text("verify.nodes_disagree"), shown(" ".join(expected))
    fix = f"kubectl get nodes -L {checker.LABEL_KEY}"
    yield Finding(
        "consistency.lab", s8_consistency.DUMP, what, expected="OK=…", found=found, fix=fix
    )


def _not_the_verdict(expected: Sequence[str], found: Sequence[str]) -> Finding:
    """Return the finding of another verdict; what a wrong lab would say is not what is expected."""
    right = expected[0] if expected[0].startswith("OK=") else None
    words = shown(" | ".join(found)) or text("verify.nothing")
    what = text("verify.other_verdict")
    return Finding(VERDICT, OUTPUT, what, file=OUTPUT, expected=right, found=words)


def _not_its_output(own: Verdict, found: Sequence[str]) -> Finding:
    what = text("verify.not_its_output", script=SCRIPT, dump=s8_consistency.DUMP)
    words = shown(" | ".join(found)) or text("verify.nothing")
    said = shown(" | ".join(own.output.splitlines())) or text("verify.nothing")
    agrees = said.startswith("OK=")
    return Finding(
        VERDICT, OUTPUT, what, file=OUTPUT, expected=said if agrees else None, found=words
    )


def _judged(attempt: Attempt) -> list[str] | None:
    """Return the heads of the lines that the rule gives for the attempt's dump; None: it is none."""
    data = files.read(attempt.artifacts, s8_consistency.DUMP)
    document = dump.decoded(data) if data is not None else None
    if document is None or not isinstance(document.get("items"), list):
        return None
    return judged(dump.nodes_of(document))


def judged(nodes: Sequence[dict[str, Any]]) -> list[str] | None:
    """Return `OK=N`, or `MISMATCH=NODE` for each node that disagrees; None for nodes that are none."""
    try:
        verdicts = [verdict for node in nodes if (verdict := checker.judge(node)) is not None]
    except checker.ItemError:
        return None
    bad = [f"MISMATCH={checker.shown(one.node)}" for one in verdicts if one.reason]
    return bad or [f"OK={len(verdicts)}"]
