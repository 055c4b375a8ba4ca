"""The command `verify`: does a lab hold, be it gpuwl's own or made by hand."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from gpuwl.cli import options
from gpuwl.cli.app import App
from gpuwl.cli.helping import command
from gpuwl.errors import GpuwlError, SetupError

if TYPE_CHECKING:
    from gpuwl.target.connection import ReadOnlyConnection
    from gpuwl.target.target import Choice
    from gpuwl.verification.findings import Outcome

EXIT_CODES = {"holds": 0, "differs": 1, "unknown": 3}
STYLES = {"holds": "green", "differs": "bold red", "unknown": "yellow"}


@command()
@options.root
@options.cluster
@options.lab_nodes
@options.timeout
@options.output("text", "json", "junit")
@options.talk
@click.pass_obj
def verify(app: App) -> int:
    """Read cluster and files again, and say of each step whether it holds or what differs.

    Changes nothing and starts nothing. Exit code 0: all steps hold, 1: at least one differs, 3: it
    cannot be told.
    """
    app.command = "verify"
    try:
        return _verify(app)
    except GpuwlError as error:
        _say_unknown(app, error)
        raise


def _verify(app: App) -> int:
    from gpuwl.target import connection, target

    choice = target.choose(app.settings)
    if choice.local:
        choice = _that_is_up(app, choice)
    with connection.connect_to_read(choice, timeout=app.settings.timeout) as connected:
        outcomes = _assess(app, connected)
    from gpuwl.verification import assess

    result = assess.verdict(outcomes)
    app.payload |= {"verdict": str(result), "steps": [_data(one) for one in outcomes]}
    _print(app, outcomes, str(result))
    return EXIT_CODES[result]


def _that_is_up(app: App, choice: "Choice") -> "Choice":
    """Return the choice with the kubeconfig of a local control plane that runs already."""
    from gpuwl.cli import localplane
    from gpuwl.controlplane import plane as planes

    name = localplane.name_of(app)
    if not planes.is_up(name):
        raise SetupError(
            f"the local control plane {name} is not up, so there is nothing to verify",
            hint=f"{_gpuwl(app)} run --all, or name a cluster with --kubeconfig",
        )
    return replace(choice, kubeconfig=str(planes.kubeconfig_path(name)))


def _assess(app: App, connected: "ReadOnlyConnection") -> "list[Outcome]":
    from gpuwl.cli.show import progress
    from gpuwl.lab import safety
    from gpuwl.lab.artifacts import Artifacts
    from gpuwl.lab.names import lab_nodes as named
    from gpuwl.steps import STEPS
    from gpuwl.verification.assess import assess
    from gpuwl.verification.attempt import Attempt

    settings = app.settings
    app.payload |= {"root": str(settings.root), "target": progress.target_data(connected.record)}
    progress.print_target(app.reporter, connected.record)
    attempt = Attempt(
        connected.cluster,
        Artifacts(settings.root),
        named(settings.lab_nodes),
        connected.record,
        settings.timeout,
        _gpuwl(app),
    )
    if not any(attempt.node(node.name) for node in attempt.nodes):
        safety.check_nodes(connected, attempt.nodes)
    return assess(attempt, STEPS)


def _gpuwl(app: App) -> str:
    """Return how gpuwl is called on the same target and root, as a shell reads it."""
    return shlex.join(["gpuwl", *app.settings.typed])


def _print(app: App, outcomes: "Sequence[Outcome]", result: str) -> None:
    if app.settings.output == "junit":
        _print_junit(app, outcomes)
        return
    for outcome in outcomes:
        _print_outcome(app, outcome)
    counted = [str(one.result) for one in outcomes]
    words = ", ".join(f"{counted.count(word)} {_of(word)}" for word in STYLES if word in counted)
    app.reporter.result(f"{len(outcomes)} steps: {words}", style=STYLES[result])


def _of(word: str) -> str:
    return {"holds": "hold", "differs": "differ", "unknown": "cannot be told"}[word]


def _print_outcome(app: App, outcome: "Outcome") -> None:
    reporter, word = app.reporter, str(outcome.result)
    reporter.result(f"step {outcome.number} {word:<7} {outcome.title}", style=STYLES[word])
    for evidence in outcome.evidence:
        reporter.detail(f"    Pod {evidence.pod} on {evidence.node}: {evidence.says}")
    for one in outcome.differences:
        reporter.result(f"    {one.what}")
        reporter.result(f"      expected  {one.expected}")
        reporter.result(f"      found     {one.found}")
        reporter.result(f"      mend      {one.mend}")
    for remark in outcome.remarks:
        reporter.warn(remark.text)
    if outcome.obstacle:
        reporter.error(outcome.obstacle)


def _print_junit(app: App, outcomes: "Sequence[Outcome]") -> None:
    from gpuwl.verification import junit

    known = app.payload.get("target", {})
    properties = {f"target.{key}": str(value) for key, value in known.items()}
    app.reporter.raw(junit.render(outcomes, {"root": str(app.settings.root), **properties}))


def _say_unknown(app: App, error: GpuwlError) -> None:
    """Give the documents a step of which nothing can be told for each step of the lab."""
    from gpuwl.steps import STEPS
    from gpuwl.verification.findings import Outcome

    outcomes = [Outcome(step.number, step.slug, step.title, obstacle=error) for step in STEPS]
    app.payload |= {"verdict": "unknown", "steps": [_data(one) for one in outcomes]}
    if app.settings.output == "junit":
        _print_junit(app, outcomes)


def _data(outcome: "Outcome") -> dict[str, Any]:
    obstacle = outcome.obstacle
    return {
        "number": outcome.number,
        "slug": outcome.slug,
        "title": outcome.title,
        "verdict": str(outcome.result),
        "seconds": round(outcome.seconds, 3),
        "differences": [vars(one) for one in outcome.differences],
        "evidence": [vars(one) for one in outcome.evidence],
        "remarks": [one.text for one in outcome.remarks],
        "obstacle": obstacle.message if obstacle else None,
    }
