"""What a run shows: a line for each step with what it found, and at the end the split."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gpuwl.cli.show import layout, split
from gpuwl.lab.artifacts import Artifacts
from gpuwl.lab.runfile import StepRecord
from gpuwl.lab.step import Step
from gpuwl.target.connection import ReadOnlyConnection, TargetRecord
from gpuwl.texts import text

if TYPE_CHECKING:
    from gpuwl.cli.console import Reporter

STYLES = {"done": "green", "failed": "bold red"}


class Watching:
    """Prints each step as it ends, and keeps the records for the JSON document."""

    def __init__(self, reporter: "Reporter", artifacts: Artifacts) -> None:
        self._reporter = reporter
        self._artifacts = artifacts
        self.documents: list[dict[str, Any]] = []

    def step_begins(self, step: Step) -> None:
        """Say nothing: a step takes a fraction of a second."""

    def step_ended(self, step: Step, record: StepRecord) -> None:
        """Print the step's line and what it found."""
        found = split.found(step.slug, self._artifacts) if record.result == "done" else []
        self.documents.append({**record.to_dict(), "found": found})
        mark = text(f"lab.{record.result}")
        if self._reporter.for_people:
            head = f"{step.number}  {step.title}  {mark}  {record.seconds:.2f} s"
            self._reporter.result(head, style=STYLES[record.result])
            for line in found:
                for part in layout.wrapped(line, indent="   ", hanging="     "):
                    self._reporter.detail(part)
        else:
            words = f"step {step.number} {mark} {record.seconds:.2f}s {step.title}"
            self._reporter.result(f"{words}: {', '.join(found)}" if found else words)
        for name, digest in record.files.items():
            self._reporter.more(f"  wrote {name} {digest}")


def target_data(record: TargetRecord) -> dict[str, Any]:
    """Return the target as the JSON document shows it."""
    return asdict(record)


def print_target(reporter: "Reporter", connected: ReadOnlyConnection) -> None:
    """Say which cluster the steps run on, and whether nobody checks that it is the right one."""
    record = connected.record
    reporter.note(text(f"lab.target_{record.kind}", **asdict(record)))
    if connected.cluster.insecure:
        reporter.warn(text("lab.insecure"))


def print_split(reporter: "Reporter", artifacts: Artifacts) -> None:
    """Print the split as the files hold it."""
    reporter.detail("")
    for line, style in split.picture(artifacts):
        reporter.detail(line, style=style)


def print_end(reporter: "Reporter", artifacts: Artifacts, following: list[str]) -> None:
    """Say where the files are, and what to do next."""
    reporter.detail("")
    reporter.detail(text("lab.files", root=artifacts.root))
    reporter.detail(text("lab.next", commands="; ".join(following)))
