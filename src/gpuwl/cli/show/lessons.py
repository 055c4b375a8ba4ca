"""Rendering of `gpuwl steps` and `gpuwl explain`."""

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpuwl.lab.artifacts import Artifacts
from gpuwl.lab.step import Nodes, Step

if TYPE_CHECKING:
    from gpuwl.cli.console import Reporter

WIDTH = 96
INTRODUCTION = (
    "A GPU node serves containers, VMs with whole cards or VMs with shares of cards, and one label "
    "on the node decides which. The operator prepares the node for that use and the node advertises "
    "a resource name of that use. To the scheduler another name is another resource, so the "
    "inventory splits by use, and the split is hard to take back once cards are in use: it is the "
    "first thing to plan for."
)


def overview(steps: Sequence[Step], artifacts: Artifacts) -> list[dict[str, Any]]:
    """Return each step as data: number, title, what it needs and writes, which files are there."""
    return [
        {
            "number": step.number,
            "slug": step.slug,
            "title": step.title,
            "needs": [{"what": r.what, "step": r.provided_by} for r in step.requires],
            "writes": {name: not artifacts.missing([name]) for name in step.artifacts},
        }
        for step in steps
    ]


def print_overview(reporter: "Reporter", steps: Sequence[Step], artifacts: Artifacts) -> None:
    """Print the steps for people."""
    for step in steps:
        needs = "; ".join(f"{r.what} (step {r.provided_by})" for r in step.requires)
        reporter.result(f"{step.number}  {step.title}", style="bold")
        reporter.result(f"   needs   {needs or 'nodes'}")
        for name in step.artifacts:
            there = "missing" if artifacts.missing([name]) else "there"
            reporter.result(f"   writes  {name:<26} {there}")
    reporter.result(f"files below {artifacts.root}")


def lesson(step: Step, nodes: Nodes) -> dict[str, Any]:
    """Return one step's explanation as data."""
    return {
        "number": step.number,
        "title": step.title,
        "why": step.why.matters,
        "look": step.why.look,
        "pitfalls": step.why.pitfalls,
        "byHand": step.by_hand(nodes),
    }


def print_lessons(
    reporter: "Reporter", steps: Sequence[Step], nodes: Nodes, *, with_introduction: bool
) -> None:
    """Print explanations for people."""
    if with_introduction:
        _paragraph(reporter, INTRODUCTION, "")
    for step in steps:
        reporter.result(f"Step {step.number}: {step.title}", style="bold")
        _paragraph(reporter, step.why.matters, "  ")
        _paragraph(reporter, f"Look at: {step.why.look}", "  ")
        _paragraph(reporter, f"What goes wrong: {step.why.pitfalls}", "  ")
        reporter.result("  By hand, in the root folder:")
        for line in step.by_hand(nodes).splitlines():
            reporter.result(f"    {line}".rstrip())
        reporter.result()


def _paragraph(reporter: "Reporter", text: str, indent: str) -> None:
    wrapped = textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
    )
    for line in wrapped:
        reporter.result(line)
    reporter.result()
