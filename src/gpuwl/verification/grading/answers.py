"""What a checker answered to a case, and what of it is wrong.

Not judged is what the exercise leaves open: the order of the lines, wording, language and length of
the reasons, and which code other than 0 a checker ends with on what is no dump.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gpuwl.findings import shown
from gpuwl.lab.verdict import Verdict
from gpuwl.texts import text
from gpuwl.verification.grading.cases import Case

OUTPUT, EXIT_CODE = "output", "exit-code"
_MISMATCH = re.compile(r"MISMATCH=(?P<node>\S+)(?P<reason>.*)")
_OK = re.compile(r"OK=(?P<count>\d*)\s*")


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong: the part of the rule, what was expected and what was found."""

    part: str
    expected: str
    found: str


@dataclass(frozen=True)
class Answer:
    """The lines of an answer by kind: nodes named, nodes named without a reason, counts, others."""

    code: int
    nodes: tuple[str, ...]
    bare: tuple[str, ...]
    counts: tuple[str, ...]
    others: tuple[str, ...]


def read(run: Verdict) -> Answer:
    """Return the answer of a run."""
    lines = [line for line in run.output.removeprefix("\ufeff").splitlines() if line.strip()]
    named = [found for line in lines if (found := _MISMATCH.fullmatch(line))]
    return Answer(
        run.code,
        tuple(one["node"] for one in named),
        tuple(one["node"] for one in named if not one["reason"].strip()),
        tuple(found["count"] for line in lines if (found := _OK.fullmatch(line))),
        tuple(line for line in lines if not (_MISMATCH.fullmatch(line) or _OK.fullmatch(line))),
    )


def faults(case: Case, run: Verdict) -> Iterator[Fault]:
    """Yield what is wrong in an answer; nothing where it is right.

    The verdict itself counts for the case's part of the rule. A right verdict in a wrong form, or
    with a wrong exit code, counts for these.
    """
    answer = read(run)
    if not case.is_dump:
        claimed = any(line.startswith("OK=") for line in run.output.splitlines())
        if claimed or answer.code == 0:
            yield Fault(case.part, text("verify.answer_refused"), found_in(run))
        return
    if not _is_right(case, answer):
        yield Fault(case.part, expected_of(case), found_in(run))
        return
    if _is_malformed(case, answer):
        yield Fault(OUTPUT, expected_of(case), shown(_first_lines(run)))
    code = 1 if case.bad else 0
    if answer.code != code:
        yield Fault(
            EXIT_CODE,
            text("verify.answer_exit", code=code),
            text("verify.answer_exit", code=answer.code),
        )


def misjudged(case: Case, run: Verdict) -> list[str]:
    """Return the nodes of a case that an answer judges wrong."""
    return sorted(_named(case, read(run)) ^ set(case.bad))


def _is_right(case: Case, answer: Answer) -> bool:
    if _named(case, answer) != set(case.bad):
        return False
    return bool(case.bad) or set(answer.counts) == {str(case.judged)}


def _is_malformed(case: Case, answer: Answer) -> bool:
    unknown = set(answer.nodes) - {node.name for node in case.nodes}
    twice = len(set(answer.nodes)) < len(answer.nodes) or len(answer.counts) > 1
    both = case.bad and answer.counts
    return bool(unknown or twice or both or answer.bare or answer.others)


def _named(case: Case, answer: Answer) -> set[str]:
    """Return the nodes that are named; `MISMATCH=NODE:` names a node, although in a wrong form."""
    known = {node.name for node in case.nodes}
    return {name if name in known else name.rstrip(":,;.") for name in answer.nodes}


def expected_of(case: Case) -> str:
    """Say what the answer to a case is."""
    lines = [f"MISMATCH={name} …" for name in case.bad] or [f"OK={case.judged}"]
    code = text("verify.answer_exit", code=1 if case.bad else 0)
    return shown(f"{code}: {' | '.join(lines)}")


def found_in(run: Verdict) -> str:
    """Say what a run answered, or else the end of what it said to standard error."""
    code = text("verify.answer_exit", code=run.code)
    said = _first_lines(run)
    if said:
        return shown(f"{code}: {said}")
    errors = run.errors.strip().splitlines()
    last = text("verify.answer_stderr", line=errors[-1]) if errors else ""
    return shown(f"{code}: {text('verify.answer_nothing')}{last}")


def _first_lines(run: Verdict) -> str:
    return " | ".join(line for line in run.output.splitlines() if line.strip())
