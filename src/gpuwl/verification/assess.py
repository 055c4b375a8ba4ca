"""Every step's checks, and what comes of them."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from gpuwl.errors import ClusterError, SetupError
from gpuwl.lab.step import Step
from gpuwl.verification import dump, nodes, operands, origin, pods, script
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.findings import (
    Difference,
    Evidence,
    Finding,
    Findings,
    Outcome,
    Remark,
    Result,
)

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
    8: (dump.matches, script.answers),
}


def assess(attempt: Attempt, steps: Sequence[Step]) -> list[Outcome]:
    """Check the steps and return what was found of each.

    What hinders a step from being told is its outcome's `obstacle`; nothing is raised for it.
    """
    outcomes = [_assess(attempt, step) for step in steps]
    differing = {one.number for one in outcomes if one.result is Result.DIFFERS}
    return [
        _with_commands(attempt, step, one, differing)
        for step, one in zip(steps, outcomes, strict=True)
    ]


def verdict(outcomes: Iterable[Outcome]) -> Result:
    """Return what is true of all together: one that differs decides, then one that is unknown."""
    results = {one.result for one in outcomes}
    return next(r for r in (Result.DIFFERS, Result.UNKNOWN, Result.HOLDS) if r in results)


def _assess(attempt: Attempt, step: Step) -> Outcome:
    checks = CHECKS[step.number]
    if step.number not in ON_FILES_ALONE:
        checks = (*checks, partial(origin.same_target, number=step.number))
    found: list[Finding] = []
    obstacle: ClusterError | SetupError | None = None
    began = time.monotonic()
    for check in checks:
        try:
            found.extend(check(attempt))
        except (ClusterError, SetupError) as error:
            obstacle = error
    return Outcome(
        step.number,
        step.slug,
        step.title,
        time.monotonic() - began,
        tuple(one for one in found if isinstance(one, Difference)),
        tuple(one for one in found if isinstance(one, Evidence)),
        tuple(one for one in found if isinstance(one, Remark)),
        obstacle,
    )


def _with_commands(attempt: Attempt, step: Step, outcome: Outcome, differing: set[int]) -> Outcome:
    """Name the command that mends a step: itself, or from the first step that it needs."""
    needed = {r.provided_by for r in step.requires} & differing
    first = min(needed | {step.number})
    span = f"run --from {first} --to {step.number}" if needed else f"step {step.number}"
    command = f"{attempt.gpuwl} {span}"
    return replace(
        outcome,
        differences=tuple(replace(d, mend=d.mend or command) for d in outcome.differences),
    )
