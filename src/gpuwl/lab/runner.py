"""Runs steps in order, times them, compares promised with written artifacts."""

import datetime as dt
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from gpuwl.errors import GpuwlError, SetupError, Terminated
from gpuwl.lab import runfile
from gpuwl.lab.context import Context
from gpuwl.lab.runfile import RunFile, StepRecord
from gpuwl.lab.step import Requirement, Step


class Observer(Protocol):
    """Who is told about steps as they begin and end."""

    def step_begins(self, step: Step) -> None:
        """Take note of a step that begins."""

    def step_ended(self, step: Step, record: StepRecord) -> None:
        """Take note of a step that ended, well or not."""


@dataclass(frozen=True)
class Runner:
    """Runs steps against one context and keeps out/run.json true."""

    ctx: Context
    observer: Observer
    run_file: RunFile

    def run(self, steps: Sequence[Step]) -> list[StepRecord]:
        """Run the steps and return a record of each.

        Raises what a step raised, once its record is written, and SetupError before anything is
        touched where an earlier step is missing or a file cannot be written.
        """
        self._check(steps)
        files = [runfile.PATH, *(name for step in steps for name in step.artifacts)]
        self.ctx.artifacts.check(files)
        self.ctx.artifacts.prepare()
        return [self._run(step) for step in steps]

    def _check(self, steps: Sequence[Step]) -> None:
        first = steps[0].number
        needed = {r.what: r for s in steps for r in s.requires if r.provided_by < first}
        missing = [r for r in needed.values() if not r.holds(self.ctx)]
        if missing:
            raise _not_yet(steps, missing)

    def _run(self, step: Step) -> StepRecord:
        record = StepRecord.begin(step.number, step.english_title, _now())
        self.run_file.put(record)
        self.observer.step_begins(step)
        began = time.monotonic()
        try:
            step.run(self.ctx)
            self._compare(step)
        except BaseException as error:
            self._end(step, record.failed(_reason(error), time.monotonic() - began))
            raise
        written = {name: self.ctx.artifacts.digest(name) for name in step.artifacts}
        return self._end(step, record.done(written, time.monotonic() - began))

    def _end(self, step: Step, record: StepRecord) -> StepRecord:
        self.run_file.put(record)
        self.observer.step_ended(step, record)
        return record

    def _compare(self, step: Step) -> None:
        missing = self.ctx.artifacts.missing(step.artifacts)
        if missing:
            raise RuntimeError(f"step {step.number} did not write {', '.join(missing)}")


def from_nothing(steps: Sequence[Step]) -> None:
    """Raise SetupError where steps need earlier ones: on a new control plane nothing of them is."""
    first = steps[0].number
    missing = {r.what: r for s in steps for r in s.requires if r.provided_by < first}
    if missing:
        raise _not_yet(steps, missing.values())


def choose(steps: Sequence[Step], first: int, last: int) -> list[Step]:
    """Return the steps from number `first` to `last`, both included."""
    return [step for step in steps if first <= step.number <= last]


def _not_yet(steps: Sequence[Step], missing: Iterable[Requirement]) -> SetupError:
    missing = list(missing)
    numbers = [requirement.provided_by for requirement in missing]
    numbers_text = f"step {steps[0].number}" if len(steps) == 1 else "these steps"
    return SetupError(
        f"{numbers_text} cannot run yet: earlier steps are missing",
        details=[f"missing: {r.what} (step {r.provided_by})" for r in missing],
        command=f"run --from {min(numbers)} --to {max(numbers)}",
    )


def _reason(error: BaseException) -> str:
    if isinstance(error, GpuwlError):
        return error.message
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    return "terminated" if isinstance(error, Terminated) else type(error).__name__


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
