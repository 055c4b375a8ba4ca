"""From the options of `run` and `step` to steps that run: target, locks, checks, journal."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from gpuwl.cli.app import App

if TYPE_CHECKING:
    from gpuwl.lab.artifacts import Artifacts
    from gpuwl.lab.journal import Journal
    from gpuwl.lab.survey import Survey
    from gpuwl.target.connection import Connection
    from gpuwl.target.target import Choice

Span = tuple[int, int]
"""The numbers of the first and the last step."""
PICTURE_FROM = 7
"""The split can be seen once this step has run, with the files of PICTURED."""
PICTURED = (1, 3, 6, 7)


def run_steps(app: App, span: Span, *, rm: bool) -> None:
    """Run steps on the target that the options mean; `rm` stops what was started for it."""
    from gpuwl.controlplane import state
    from gpuwl.lab.artifacts import Artifacts
    from gpuwl.target import target

    choice = target.choose(app.settings)
    if choice.local:
        _would_start(app, span)
    state.check_outside(app.settings.root)
    artifacts = Artifacts(app.settings.root)
    artifacts.check()
    with (
        artifacts.claimed(),
        _up(app, choice, rm=rm) as usable,
        _connected(app, usable) as connection,
        _journal(connection) as journal,
    ):
        seen = _consider(app, connection, journal, span)
        _run_on(app, connection, journal, artifacts, span, seen)
        _tell(app, connection, artifacts, span, rm=rm)


def _would_start(app: App, span: Span) -> None:
    """Raise SetupError where a control plane would be started for steps that cannot run on it."""
    from gpuwl.cli import localplane
    from gpuwl.controlplane import plane
    from gpuwl.lab import runner
    from gpuwl.steps import STEPS

    if not plane.is_up(localplane.name_of(app)):
        runner.from_nothing(runner.choose(STEPS, *span))


@contextlib.contextmanager
def _up(app: App, choice: "Choice", *, rm: bool) -> "Iterator[Choice]":
    """Yield a choice whose target is up; with `rm` a control plane we started goes afterwards."""
    if not choice.local:
        yield choice
        return
    from gpuwl.cli import localplane

    try:
        with localplane.lent(app) as up:
            app.reporter.note(f"{localplane.said(up)} ({choice.reason})")
            yield replace(choice, kubeconfig=str(up.plane.kubeconfig))
    finally:
        if rm:
            localplane.down_unused(app)


@contextlib.contextmanager
def _connected(app: App, choice: "Choice") -> "Iterator[Connection]":
    """Yield the target once it answered, and say which it is."""
    from gpuwl.cli.show import progress
    from gpuwl.target import connection

    with connection.connect(choice, timeout=app.settings.timeout) as connected:
        app.payload["target"] = progress.target_data(connected.record)
        progress.print_target(app.reporter, connected)
        yield connected


@contextlib.contextmanager
def _journal(connected: "Connection") -> "Iterator[Journal]":
    """Hold the target, which the journal belongs to, and yield the journal."""
    from gpuwl.lab import journal

    with journal.opened(connected.cluster, connected.local_name) as entries:
        yield entries


def _consider(app: App, connected: "Connection", journal: "Journal", span: Span) -> "Survey":
    """Look at the cluster before anything is changed, and return what was seen.

    Raises SetupError where a node of the lab is missing, or where the cluster is in real use and
    nobody said --yes.
    """
    from gpuwl.lab import safety, survey
    from gpuwl.lab.names import lab_nodes
    from gpuwl.lab.runner import choose
    from gpuwl.steps import STEPS

    nodes, steps = lab_nodes(app.settings.lab_nodes), choose(STEPS, *span)
    seen = survey.survey(connected.cluster, nodes)
    if len(seen.nodes) < len(nodes):
        safety.check_nodes(connected, nodes)
    changing = any(step.changes_nodes for step in steps)
    plan = safety.Plan(nodes, changing, any(step.makes_pods for step in steps))
    concerns = safety.concerns(connected.cluster, journal, seen, plan)
    if concerns and not app.settings.yes:
        raise safety.stop(concerns)
    for line in concerns:
        app.reporter.warn(line)
    return seen


def _run_on(  # noqa: PLR0913, PLR0917 - what a run consists of
    app: App,
    connected: "Connection",
    journal: "Journal",
    artifacts: "Artifacts",
    span: Span,
    seen: "Survey",
) -> None:
    from gpuwl.cli.show import progress
    from gpuwl.lab.changes import Changes
    from gpuwl.lab.context import Context
    from gpuwl.lab.names import lab_nodes
    from gpuwl.lab.runfile import RunFile
    from gpuwl.lab.runner import Runner, choose
    from gpuwl.steps import STEPS

    timeout = app.settings.timeout
    changes = Changes(connected.cluster, journal, timeout=timeout, own=connected.own, seen=seen)
    nodes = lab_nodes(app.settings.lab_nodes)
    ctx = Context(connected.cluster, changes, artifacts, nodes, timeout, app.reporter.warn)
    watching = progress.Watching(app.reporter, artifacts)
    app.payload["steps"] = watching.documents
    Runner(ctx, watching, RunFile(artifacts, connected.record)).run(choose(STEPS, *span))
    app.reporter.more(f"{connected.cluster.requests} requests to the API server")


def _tell(
    app: App, connected: "Connection", artifacts: "Artifacts", span: Span, *, rm: bool
) -> None:
    """Show the split, where all its files come from this target, and what to do next."""
    from gpuwl.cli.show import progress, split
    from gpuwl.lab import runfile

    if span[1] >= PICTURE_FROM and runfile.ran_on(artifacts, connected.record, PICTURED):
        app.payload["split"] = split.data(artifacts)
        progress.print_split(app.reporter, artifacts)
    progress.print_end(app.reporter, artifacts, _following(app, connected, span, rm=rm))


def _following(app: App, connected: "Connection", span: Span, *, rm: bool) -> list[str]:
    """Return the commands that lead on from here; with `rm` there is nothing left to look at."""
    from gpuwl.cli import localplane

    again = app.settings.again
    commands = [f"gpuwl explain {span[1]}" if span[1] < PICTURE_FROM else "gpuwl explain 7"]
    if not rm:
        commands.append(again("verify") if span[1] == 8 else again(f"step {span[1] + 1}"))
    if connected.local_name and not rm:
        commands.append(f"gpuwl local down{localplane.suffix(connected.local_name)}")
    return commands
