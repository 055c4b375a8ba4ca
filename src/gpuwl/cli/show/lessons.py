"""Rendering of `gpuwl steps` and `gpuwl explain`."""

import textwrap
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from gpuwl.cli.show import layout
from gpuwl.lab.artifacts import Artifacts
from gpuwl.lab.step import Nodes, Step
from gpuwl.texts import catalogue, language, text

if TYPE_CHECKING:
    from gpuwl.cli.console import Reporter

PARTS = ("matters", "look", "pitfalls", "more")


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
    there, missing = text("lab.there"), text("lab.missing")
    files = [name for step in steps for name in step.artifacts]
    for step in steps:
        reporter.result(f"{step.number}  {step.title}", style="bold")
        for line in _needs(step):
            reporter.result(line)
        for name in step.artifacts:
            word = missing if artifacts.missing([name]) else there
            file = layout.padded(name, max(map(len, files)))
            reporter.result(f"   {_column('lab.writes')}  {file}  {word}")
    reporter.result(text("lab.below", root=artifacts.root))


def _needs(step: Step) -> list[str]:
    needs = [text("lab.needs_step", what=r.what, step=r.provided_by) for r in step.requires]
    head = f"   {_column('lab.needs')}  "
    words = "; ".join(needs) or text("lab.needs_nodes")
    return layout.wrapped(words, indent=head, hanging=" " * cell_len(head))


def _column(key: str) -> str:
    words = [text("lab.needs"), text("lab.writes")]
    return layout.padded(text(key), max(map(cell_len, words)))


def lesson(step: Step, nodes: Nodes) -> dict[str, Any]:
    """Return one step's explanation as data."""
    parts = {part: "\n\n".join(_paragraphs(step, part)) for part in PARTS}
    return {
        "number": step.number,
        "title": step.title,
        "why": parts["matters"],
        "look": parts["look"],
        "pitfalls": parts["pitfalls"],
        "more": parts["more"],
        "byHand": step.by_hand(nodes),
    }


def print_lessons(
    reporter: "Reporter", steps: Sequence[Step], nodes: Nodes, *, with_introduction: bool
) -> None:
    """Print explanations for people."""
    if with_introduction:
        _print(reporter, _split(text("explain.introduction")), "")
    for step in steps:
        title = text("explain.step", number=step.number, title=step.title)
        reporter.result(title, style="bold")
        for part in PARTS:
            _print(reporter, _with_head(part, _paragraphs(step, part)), "  ")
        reporter.result(f"  {text('explain.by_hand')}")
        for line in step.by_hand(nodes).splitlines():
            reporter.result(f"    {line}".rstrip())
        reporter.result()


def print_finding(reporter: "Reporter", name: str) -> None:
    """Print what a finding of `gpuwl review` means."""
    reporter.result(name, style="bold")
    _print(reporter, [text(f"review.{name}")], "  ")


def _with_head(part: str, paragraphs: list[str]) -> list[str]:
    head = text(f"explain.{part}") if part in {"look", "pitfalls"} else ""
    return [f"{head}{paragraphs[0]}", *paragraphs[1:]] if paragraphs else []


def _paragraphs(step: Step, part: str) -> list[str]:
    """Return the paragraphs of one part of a lesson; the examples of step 8 are put into its."""
    found = catalogue(language(), "explain").get(f"{step.slug}_{part}", "")
    return [_examples(paragraph) for paragraph in _split(found)]


def _split(found: str) -> list[str]:
    return [paragraph.strip("\n") for paragraph in found.strip("\n").split("\n\n") if paragraph]


def _examples(paragraph: str) -> str:
    names = {"{python}": "checker.py.txt", "{jq}": "checker.jq.txt"}
    if paragraph not in names:
        return paragraph
    return textwrap.indent(example(names[paragraph]).rstrip(), "    ")


def example(name: str) -> str:
    """Return one of the learner's own checkers, `checker.py.txt` or `checker.jq.txt`."""
    return resources.files("gpuwl.lab").joinpath("examples", name).read_text(encoding="utf-8")


def _print(reporter: "Reporter", paragraphs: list[str], indent: str) -> None:
    if paragraphs:
        for line in layout.prose(paragraphs, indent=indent):
            reporter.result(line)
        reporter.result()
