"""Grades a checker: asks it about all cases, and says which parts of the rule it lacks."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from gpuwl.lab.verdict import Verdict
from gpuwl.verification.grading import answers
from gpuwl.verification.grading.answers import Fault
from gpuwl.verification.grading.cases import NO_DUMP, PARTS, Case
from gpuwl.verification.grading.running import Run

ALL_PARTS = (*PARTS, NO_DUMP, answers.OUTPUT, answers.EXIT_CODE)
"""The parts of the rule in the order in which they are told."""
AT_ONCE = 4
"""Checkers that run at the same time: most of a short run is waiting for an interpreter."""


@dataclass(frozen=True)
class Lack:
    """A part of the rule that a checker lacks: one case that shows it, and in how many it is wrong."""

    fault: Fault
    case: Case
    run: Verdict
    times: int = 1


def grade(run: Run, cases: Iterable[Case]) -> list[Lack]:
    """Return what a checker lacks, one for each part of the rule; nothing where it has the rule.

    The first case is asked alone. Raises SetupError where the checker cannot be run at all, or does
    not end.
    """
    first, *others = cases
    asked = [(first, run(first.content))]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        pending = [(case, pool.submit(run, case.content)) for case in others]
        try:
            asked += [(case, future.result()) for case, future in pending]
        except BaseException:  # the pool would wait for the end of all of them
            run.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return sorted(_lacks(asked), key=lambda one: ALL_PARTS.index(one.fault.part))


def _lacks(asked: Iterable[tuple[Case, Verdict]]) -> Iterator[Lack]:
    found: dict[str, list[Lack]] = {}
    for case, run in asked:
        for fault in answers.faults(case, run):
            found.setdefault(fault.part, []).append(Lack(fault, case, run))
    for lacks in found.values():
        shown = min(lacks, key=lambda one: len(one.case.nodes))
        yield Lack(shown.fault, shown.case, shown.run, len(lacks))


def smaller(run: Run, lack: Lack) -> Lack:
    """Return the same lack shown by one node alone, where one node shows it."""
    wrong = answers.misjudged(lack.case, lack.run)
    if not wrong or len(lack.case.nodes) == 1:
        return lack
    case = lack.case.only(wrong[:1])
    again = run(case.content)
    for fault in answers.faults(case, again):
        if fault.part == lack.fault.part:
            return Lack(fault, case, again, lack.times)
    return lack
