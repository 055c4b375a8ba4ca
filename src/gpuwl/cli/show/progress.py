"""What a run shows: a line for each step, and at the end what was learnt."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from gpuwl.lab.artifacts import Artifacts
from gpuwl.lab.runfile import StepRecord
from gpuwl.lab.step import Step
from gpuwl.target.connection import TargetRecord

if TYPE_CHECKING:
    from gpuwl.cli.console import Reporter

MARKS = {"done": "ok", "failed": "failed"}
STYLES = {"done": "green", "failed": "bold red"}
PLACEMENT = (6, "out/06-placement.txt")
CROSS = (7, "out/07-cross.txt")


class Watching:
    """Prints each step as it ends, and keeps the records for the JSON document."""

    def __init__(self, reporter: "Reporter") -> None:
        self._reporter = reporter
        self.documents: list[dict[str, Any]] = []

    def step_begins(self, step: Step) -> None:
        """Say nothing: a step takes a fraction of a second."""

    def step_ended(self, step: Step, record: StepRecord) -> None:
        """Print the step's line."""
        self.documents.append(record.to_dict())
        mark = MARKS[record.result]
        if self._reporter.for_people:
            text = f" {step.number}  {step.title:<54} {mark:<6} {record.seconds:6.2f} s"
        else:
            text = f"step {step.number} {mark} {record.seconds:.2f}s {step.title}"
        self._reporter.result(text, style=STYLES[record.result])
        for name, digest in record.files.items():
            self._reporter.more(f"  wrote {name} {digest}")


def target_data(record: TargetRecord) -> dict[str, Any]:
    """Return the target as the JSON document shows it."""
    return asdict(record)


def print_target(reporter: "Reporter", record: TargetRecord) -> None:
    """Say which cluster the steps run on."""
    kind = "local control plane" if record.kind == "local" else "cluster"
    reporter.note(f"target: {kind} {record.name}, Kubernetes {record.kubernetes}, {record.server}")


def print_summary(reporter: "Reporter", artifacts: Artifacts, span: tuple[int, int]) -> None:
    """Print the placements and the scheduler's message, as the files hold them."""
    reporter.detail("")
    if span[0] <= PLACEMENT[0] <= span[1]:
        reporter.detail("The resource name alone decided where each Pod went:")
        for line in _lines(artifacts, PLACEMENT[1]):
            pod, node = line.split()
            reporter.detail(f"  {pod:<16} {node}")
    if span[0] <= CROSS[0] <= span[1]:
        message = _lines(artifacts, CROSS[1])[-1].removeprefix("MESSAGE=")
        reporter.detail("job-cross waits, although cards are free; kube-scheduler says:")
        reporter.detail(f"  {message}")
    reporter.detail(f"Files: {artifacts.root}")


def _lines(artifacts: Artifacts, relative: str) -> list[str]:
    return artifacts.path(relative).read_text().splitlines()
