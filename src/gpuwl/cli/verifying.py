"""The command `verify`: is a lab right, be it gpuwl's own or made by hand."""

import secrets
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuwl.cli import options
from gpuwl.cli.app import App
from gpuwl.cli.helping import Option, command
from gpuwl.errors import GpuwlError, SetupError
from gpuwl.texts import text

if TYPE_CHECKING:
    from gpuwl.target.connection import ReadOnlyConnection
    from gpuwl.target.target import Choice
    from gpuwl.verification.attempt import Attempt
    from gpuwl.verification.outcome import Outcome

EXIT_CODES = {"ok": 0, "differs": 1, "unknown": 3}
STYLES = {"ok": "green", "differs": "bold red", "unknown": "yellow"}
SEEDS = 1_000_000


@command()
@options.root
@options.cluster
@options.lab_nodes
@options.timeout
@click.option("--points", cls=Option, group="output", is_flag=True)
@click.option("--seed", cls=Option, group="output", type=click.IntRange(min=0), metavar="NUMBER")
@click.option(
    "--keep", cls=Option, group="output", type=options.Folder(path_type=Path), metavar="DIR"
)
@options.output("text", "json", "junit")
@options.talk
@click.pass_obj
def verify(app: App, points: bool, seed: int | None, keep: Path | None) -> int:
    """Grade a lab: read cluster and files again, and say of each step whether it is right."""
    app.command = "verify"
    try:
        return _verify(app, points, secrets.randbelow(SEEDS) if seed is None else seed, keep)
    except GpuwlError as error:
        _say_unknown(app, error)
        raise


def _verify(app: App, points: bool, seed: int, keep: Path | None) -> int:
    from gpuwl.target import connection, target

    choice = target.choose(app.settings)
    if choice.local:
        choice = _that_is_up(app, choice)
    with connection.connect_to_read(choice, timeout=app.settings.timeout) as connected:
        attempt = _attempt(app, connected, seed, keep)
        outcomes = _assess(app, attempt, connected)
    from gpuwl.verification import assess

    result = str(assess.verdict(outcomes))
    kept = str(attempt.keep) if attempt.keep.exists() else None
    app.payload |= {"verdict": result, "seed": seed, "kept": kept}
    app.payload["steps"] = [_data(one) for one in outcomes]
    _print(app, outcomes, points=points, kept=kept)
    return EXIT_CODES[result]


def _that_is_up(app: App, choice: "Choice") -> "Choice":
    """Return the choice with the kubeconfig of a local control plane that runs already."""
    from gpuwl.cli import localplane
    from gpuwl.controlplane import plane as planes

    name = localplane.name_of(app)
    if not planes.is_up(name):
        raise SetupError(
            text("verify.plane_down", name=name),
            command="run --all",
        )
    return replace(choice, kubeconfig=str(planes.kubeconfig_path(name)))


def _attempt(app: App, connected: "ReadOnlyConnection", seed: int, keep: Path | None) -> "Attempt":
    from gpuwl.lab.artifacts import Artifacts
    from gpuwl.lab.names import lab_nodes as named
    from gpuwl.verification.attempt import Attempt
    from gpuwl.verification.grading import keeping

    settings = app.settings
    return Attempt(
        connected.cluster,
        Artifacts(settings.root),
        named(settings.lab_nodes),
        connected.record,
        settings.timeout,
        keep.absolute() if keep else keeping.of_root(settings.root),
        seed,
        shlex.join(["gpuwl", *settings.typed]),
    )


def _assess(app: App, attempt: "Attempt", connected: "ReadOnlyConnection") -> "list[Outcome]":
    from gpuwl.cli.show import progress
    from gpuwl.lab import safety
    from gpuwl.steps import STEPS
    from gpuwl.verification.assess import assess
    from gpuwl.verification.grading import running

    root = app.settings.root
    app.payload |= {"root": str(root), "target": progress.target_data(connected.record)}
    progress.print_target(app.reporter, connected)
    if not any(attempt.node(node.name) for node in attempt.nodes):
        safety.check_nodes(connected, attempt.nodes)
    app.reporter.note(text("verify.runs", user=running.user(), seed=attempt.seed))
    return assess(attempt, STEPS)


def _print(app: App, outcomes: "Sequence[Outcome]", *, points: bool, kept: str | None) -> None:
    if app.settings.output == "junit":
        _print_junit(app, outcomes)
        return
    if points:
        _print_points(app, outcomes)
    else:
        for outcome in outcomes:
            _print_outcome(app, outcome)
        _print_total(app, "total", [str(one.result) for one in outcomes])
    if kept:
        app.reporter.note(text("verify.kept", folder=kept))


def _print_total(app: App, key: str, results: Sequence[str]) -> None:
    counted = Counter(results)
    parts = ", ".join(f"{counted[one]} {text(f'verify.{one}')}" for one in STYLES if counted[one])
    worst = next(one for one in ("differs", "unknown", "ok") if counted[one])
    app.reporter.result(text(f"verify.{key}", count=len(results), parts=parts), style=STYLES[worst])


def _print_outcome(app: App, outcome: "Outcome") -> None:
    from gpuwl import findings
    from gpuwl.findings import Severity

    reporter, result = app.reporter, str(outcome.result)
    head = text("verify.step", number=outcome.number, result=_padded(result), title=outcome.title)
    _say(app, "", head, STYLES[result])
    for one in outcome.evidence:
        reporter.detail(f"    {text('verify.pod_on', pod=one.pod, node=one.node, says=one.says)}")
    for found in outcome.findings:
        head, *lines = findings.as_lines(found, _words())
        if found.severity is Severity.NOTE:
            reporter.detail(f"    {head}")
            continue
        _say(app, "    ", head)
        for line in lines:
            reporter.result(f"    {line}")
    if outcome.differences:
        _print_ways_on(app, outcome)
    if outcome.obstacle:
        reporter.error(outcome.obstacle)


def _print_ways_on(app: App, outcome: "Outcome") -> None:
    """Print how to learn what is missing, and what it costs to let gpuwl do it."""
    from gpuwl.steps import STEPS

    files = ", ".join(STEPS[outcome.number - 1].artifacts)
    app.reporter.result(f"    {text('verify.learn', command=outcome.explain)}", style="cyan")
    app.reporter.detail(f"    {text('verify.redo', files=files, command=outcome.redo)}")


def _say(app: App, indent: str, line: str, style: str = "") -> None:
    """Print a sentence, wrapped where a person looks at it."""
    from gpuwl.cli.show import layout

    for part in layout.line(line):
        app.reporter.result(f"{indent}{part}", style=style)


def _print_points(app: App, outcomes: "Iterable[Outcome]") -> None:
    """Print one line for each requirement of the exercise: result, id, what it asks for."""
    from gpuwl.cli.show import layout
    from gpuwl.verification import requirements

    points = [one for outcome in outcomes for one in outcome.points().items()]
    rows = [
        [text(f"verify.{result}"), requirement, requirements.in_words(requirement)]
        for requirement, result in points
    ]
    for line, (_, result) in zip(layout.columns(rows), points, strict=True):
        app.reporter.result(line, style=STYLES[str(result)])
    _print_total(app, "total_points", [str(result) for _, result in points])


def _padded(result: str) -> str:
    from rich.cells import cell_len

    from gpuwl.cli.show import layout

    words = [text(f"verify.{one}") for one in STYLES]
    return layout.padded(text(f"verify.{result}"), max(map(cell_len, words)))


def _words() -> dict[str, str]:
    return {key: text(f"verify.{key}") for key in ("expected", "found", "fix")}


def _print_junit(app: App, outcomes: "Sequence[Outcome]") -> None:
    from gpuwl import findings

    known = app.payload.get("target", {})
    properties = {f"target.{key}": str(value) for key, value in known.items()}
    properties |= {"root": str(app.settings.root), "seed": str(app.payload.get("seed", ""))}
    cases = [_test_case(one) for one in outcomes]
    app.reporter.raw(findings.junit("gpuwl verify", cases, properties, _words()))


def _test_case(outcome: "Outcome") -> Any:  # noqa: ANN401 - findings is imported late
    from gpuwl import findings

    error = outcome.obstacle
    obstacle = (
        [error.message, *error.details, *([error.hint] if error.hint else [])] if error else []
    )
    notes = [text("verify.pod_on", pod=e.pod, node=e.node, says=e.says) for e in outcome.evidence]
    for found in outcome.findings:
        if found.severity is findings.Severity.WARNING:
            obstacle += findings.as_lines(found, _words())
        elif found.severity is findings.Severity.NOTE:
            notes += findings.as_lines(found, _words())
    name = f"step {outcome.number}: {outcome.title}"
    return findings.TestCase(name, outcome.seconds, outcome.findings, obstacle, notes)


def _say_unknown(app: App, error: GpuwlError) -> None:
    """Give the documents a step of which nothing can be told for each step of the lab."""
    from gpuwl.steps import STEPS
    from gpuwl.verification.outcome import Outcome

    outcomes = [Outcome(step.number, step.slug, step.title, obstacle=error) for step in STEPS]
    app.payload |= {"verdict": "unknown", "steps": [_data(one) for one in outcomes]}
    if app.settings.output == "junit":
        _print_junit(app, outcomes)


def _data(outcome: "Outcome") -> dict[str, Any]:
    from gpuwl import findings
    from gpuwl.verification import requirements

    obstacle = outcome.obstacle
    return {
        "number": outcome.number,
        "slug": outcome.slug,
        "title": outcome.title,
        "verdict": str(outcome.result),
        "seconds": round(outcome.seconds, 3),
        "points": [
            {"id": one, "asks": requirements.in_words(one), "verdict": str(result)}
            for one, result in outcome.points().items()
        ],
        "findings": [findings.as_data(one) for one in outcome.findings],
        "evidence": [vars(one) for one in outcome.evidence],
        "obstacle": obstacle.message if obstacle else None,
        "explain": outcome.explain or None,
        "redo": outcome.redo or None,
    }
