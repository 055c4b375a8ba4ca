"""Every step's checks, and what comes of them."""

import time
from collections.abc import Callable, Iterable, Sequence

from gpuwl.errors import ClusterError, SetupError
from gpuwl.findings import Finding
from gpuwl.lab.step import Step
from gpuwl.verification import dump, nodes, operands, origin, pods, script
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.outcome import Evidence, Findings, Moot, Outcome, Result, Told

Check = Callable[[Attempt], Findings]

ON_FILES_ALONE = frozenset({2})
CHECKS: dict[int, tuple[Check, ...]] = {
    1: (nodes.namespace, nodes.folders, nodes.labels),
    2: (operands.table,),
    3: (nodes.resources,),
    4: (pods.container,),
    5: (pods.passthrough,),
    6: (pods.vgpu,),
    7: (pods.cross,),
    8: (dump.matches, script.answers_right),
}


def assess(attempt: Attempt, steps: Sequence[Step]) -> list[Outcome]:
    """Check the steps and return what was found of each.

    What hinders a step from being told is its outcome's `obstacle`; nothing is raised for it.
    """
    outcomes: list[Outcome] = []
    for step in steps:
        wrong = {one.number for one in outcomes if one.result is Result.DIFFERS}
        outcomes.append(_assess(attempt, step, wrong))
    return outcomes


def verdict(outcomes: Iterable[Outcome]) -> Result:
    """Return what is true of all together: one that differs decides, then one that is unknown."""
    results = {one.result for one in outcomes}
    return next(r for r in (Result.DIFFERS, Result.UNKNOWN, Result.OK) if r in results)


def _assess(attempt: Attempt, step: Step, wrong: set[int]) -> Outcome:
    began, told, obstacle = time.monotonic(), list[Told](), None
    for check in (*CHECKS[step.number], _origin_of(step)):
        try:
            told.extend(check(attempt))
        except (ClusterError, SetupError) as error:
            obstacle = error
    return Outcome(
        step.number,
        step.slug,
        step.title,
        time.monotonic() - began,
        tuple(one for one in told if isinstance(one, Finding)),
        tuple(one for one in told if isinstance(one, Evidence)),
        tuple(id_ for one in told if isinstance(one, Moot) for id_ in one.ids),
        obstacle,
        explain=f"gpuwl explain {step.number}",
        redo=f"{attempt.gpuwl} {_again(step, wrong)}",
    )


def _origin_of(step: Step) -> Check:
    def check(attempt: Attempt) -> Findings:
        if step.number not in ON_FILES_ALONE:
            yield from origin.same_target(attempt, step)

    return check


def _again(step: Step, wrong: set[int]) -> str:
    """Return the command that does a step, from the first one that it needs and that differs."""
    needed = {requirement.provided_by for requirement in step.requires} & wrong
    if step.number == 8:
        needed |= {1, 3} & wrong  # the dump shows what these make of the nodes
    return f"run --from {min(needed)} --to {step.number}" if needed else f"step {step.number}"
