"""The commands of the lab: run, step, steps, explain."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from gpuwl.cli.app import App
from gpuwl.cli.options import plane, shared

if TYPE_CHECKING:
    from gpuwl.artifacts import Artifacts
    from gpuwl.connection import Connection
    from gpuwl.target import Choice

LAST = 8
NUMBER = click.IntRange(1, LAST)


@click.command()
@click.option("--all", "everything", is_flag=True, help="All eight steps in order.")
@click.option("--from", "first", type=NUMBER, metavar="N", help="Begin with step N.")
@click.option("--to", "last", type=NUMBER, metavar="M", help="End with step M.")
@click.option("--rm", is_flag=True, help="Stop the local control plane if this command started it.")
@shared
@plane
@click.pass_obj
def run(app: App, everything: bool, first: int | None, last: int | None, rm: bool) -> int:
    """Run the steps of the lab in order."""
    if everything and (first or last):
        raise click.UsageError("--all and --from or --to exclude each other")
    if not everything and not first and not last:
        raise click.UsageError("say which steps: gpuwl run --all, or --from N --to M")
    first, last = first or 1, last or LAST
    if first > last:
        raise click.UsageError(f"--from {first} is behind --to {last}")
    app.command = "run"
    return _run_steps(app, first, last, rm=rm)


@click.command()
@click.argument("number", type=NUMBER, metavar="N")
@shared
@plane
@click.pass_obj
def step(app: App, number: int) -> int:
    """Run step N alone, once what it needs is there."""
    app.command = "step"
    return _run_steps(app, number, number)


@click.command()
@shared
@click.pass_obj
def steps(app: App) -> int:
    """List the eight steps: what each needs and writes, and whether its files are there."""
    from gpuwl.artifacts import Artifacts
    from gpuwl.cli import lessons
    from gpuwl.steps import STEPS

    app.command = "steps"
    artifacts = Artifacts(app.settings.root)
    app.payload = {"root": str(artifacts.root), "steps": lessons.overview(STEPS, artifacts)}
    lessons.print_overview(app.reporter, STEPS, artifacts)
    return 0


@click.command()
@click.argument("number", type=NUMBER, metavar="[N]", required=False)
@shared
@click.pass_obj
def explain(app: App, number: int | None) -> int:
    """Tell why a step matters, what to look at, what goes wrong, and how to do it by hand."""
    from gpuwl.cli import lessons
    from gpuwl.steps import STEPS

    app.command = "explain"
    chosen = [step for step in STEPS if number in {None, step.number}]
    app.payload = {"steps": [lessons.lesson(step) for step in chosen]}
    lessons.print_lessons(app.reporter, chosen, with_introduction=number is None)
    return 0


def _run_steps(app: App, first: int, last: int, *, rm: bool = False) -> int:
    from gpuwl import locking, target
    from gpuwl.artifacts import Artifacts

    choice = target.choose(app.settings)
    artifacts = Artifacts(app.settings.root)
    artifacts.check()
    with (
        artifacts.claimed(),
        _up(app, choice, rm=rm) as usable,
        _connected(app, usable) as connection,
        locking.target_held(connection.cluster.server),
    ):
        _run_on(app, connection, artifacts, (first, last))
    return 0


@contextlib.contextmanager
def _up(app: App, choice: "Choice", *, rm: bool) -> "Iterator[Choice]":
    """Yield a choice whose target is up; with `rm` a control plane we started goes afterwards."""
    if not choice.local:
        yield choice
        return
    from gpuwl.cli import localplane

    up = localplane.ensure_up(app, choice.reason)
    try:
        yield replace(choice, kubeconfig=str(up.plane.kubeconfig))
    finally:
        if rm and up.started:
            localplane.down(app, up.plane.name)


@contextlib.contextmanager
def _connected(app: App, choice: "Choice") -> "Iterator[Connection]":
    """Yield the target once it answered, said which it is and was found to have the nodes."""
    from gpuwl import connection
    from gpuwl.cli import progress
    from gpuwl.names import lab_nodes

    with connection.connect(choice, timeout=app.settings.timeout) as connected:
        app.payload["target"] = progress.target_data(connected.record)
        progress.print_target(app.reporter, connected.record)
        connection.check_nodes(connected, lab_nodes())
        yield connected


def _run_on(
    app: App, connected: "Connection", artifacts: "Artifacts", span: tuple[int, int]
) -> None:
    from gpuwl.changes import Changes
    from gpuwl.cli import progress
    from gpuwl.context import Context
    from gpuwl.names import lab_nodes
    from gpuwl.runfile import RunFile
    from gpuwl.runner import Runner, choose
    from gpuwl.steps import STEPS

    timeout = app.settings.timeout
    changes = Changes(connected.cluster, timeout=timeout, own=connected.own)
    ctx = Context(connected.cluster, changes, artifacts, lab_nodes(), timeout)
    watching = progress.Watching(app.reporter)
    app.payload["steps"] = watching.documents
    Runner(ctx, watching, RunFile(artifacts, connected.record)).run(choose(STEPS, *span))
    progress.print_summary(app.reporter, artifacts, span)
    app.reporter.more(f"{connected.cluster.requests} requests to the API server")
