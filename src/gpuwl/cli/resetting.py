"""The command `reset`: take back what the lab changed, and nothing else."""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from gpuwl.cli import options
from gpuwl.cli.app import App
from gpuwl.cli.helping import command

if TYPE_CHECKING:
    from gpuwl.lab.artifacts import Artifacts
    from gpuwl.lab.journal import Journal
    from gpuwl.lab.takeback import Note
    from gpuwl.target.connection import Connection
    from gpuwl.target.target import Choice


@command()
@click.option("--files", is_flag=True)
@click.option("--dry-run", "dry_run", is_flag=True)
@options.root
@options.cluster
@options.timeout
@options.text_or_json
@click.pass_obj
def reset(app: App, files: bool, dry_run: bool) -> int:
    """Take back what gpuwl changed on the cluster: Pods, namespace, resources, labels.

    Goes by the journal that each change was written to before it was made. What somebody else
    changed since is left as it is, and named.
    """
    from gpuwl.lab.artifacts import Artifacts
    from gpuwl.target import target

    app.command = "reset"
    app.payload |= {"dryRun": dry_run, "undone": [], "left": []}
    artifacts = Artifacts(app.settings.root)
    with _claimed(artifacts) if files and not dry_run else contextlib.nullcontext():
        choice = _running(app, target.choose(app.settings))
        if choice:
            _reset_cluster(app, choice, pretend=dry_run)
        if files:
            _remove_files(app, artifacts, pretend=dry_run)
    if not app.payload["undone"] and not app.payload["left"]:
        app.reporter.result("nothing to take back")
    return 0


@contextlib.contextmanager
def _claimed(artifacts: "Artifacts") -> Iterator[None]:
    """Hold the root, if there is one: a reset makes none."""
    with artifacts.claimed() if artifacts.root.is_dir() else contextlib.nullcontext():
        yield


def _running(app: App, choice: "Choice") -> "Choice | None":
    """Return the choice with its kubeconfig; None for our own control plane while it is down.

    Raises SetupError where it lives and cannot be used, as a suspended one.
    """
    if not choice.local:
        return choice
    from gpuwl.cli import localplane
    from gpuwl.controlplane import plane as planes

    name = localplane.name_of(app)
    if planes.is_up(name):
        return replace(choice, kubeconfig=str(planes.kubeconfig_path(name)))
    app.reporter.note(f"local control plane {name} is not up, so nothing of the lab is on it")
    return None


def _reset_cluster(app: App, choice: "Choice", *, pretend: bool) -> None:
    from gpuwl.cli.show import progress
    from gpuwl.lab import journal
    from gpuwl.lab.takeback import TakeBack
    from gpuwl.target import connection

    timeout = app.settings.timeout
    with connection.connect(choice, timeout=timeout) as connected:
        app.payload["target"] = progress.target_data(connected.record)
        progress.print_target(app.reporter, connected)
        with journal.opened(connected.cluster, connected.local_name) as entries:
            if not entries.holds_anything:
                _tell_of_traces(app, connected, entries)
                return
            taking = TakeBack(
                connected.cluster, entries, timeout=timeout, own=connected.own, pretend=pretend
            )
            try:
                taking.everything()
            finally:
                _tell(app, taking.undone, taking.left)


def _tell_of_traces(app: App, connected: "Connection", entries: "Journal") -> None:
    """Say what looks like the lab, although no journal is here that tells who made it."""
    from gpuwl.lab import survey
    from gpuwl.lab.names import lab_nodes
    from gpuwl.lab.takeback import Note

    nodes = lab_nodes(app.settings.lab_nodes)
    traces = survey.traces(survey.survey(connected.cluster, nodes), nodes)
    if traces:
        app.reporter.note(
            f"no journal of gpuwl is here for this cluster ({entries.path}): these were made with "
            "another state folder, on another machine, or by hand"
        )
    _tell(app, [], [Note(thing, what) for thing, what in traces])


def _remove_files(app: App, artifacts: "Artifacts", *, pretend: bool) -> None:
    from gpuwl.lab import cleanup
    from gpuwl.lab.takeback import Note
    from gpuwl.steps import STEPS

    promised = {name for step in STEPS for name in step.artifacts}
    cleaned = cleanup.remove_files(artifacts, promised, pretend=pretend)
    word = "would be removed" if pretend else "removed"
    undone = [Note(str(artifacts.path(name)), word) for name in cleaned.removed]
    left = [Note(str(artifacts.path(name)), why) for name, why in cleaned.left.items()]
    _tell(app, undone, left)


def _tell(app: App, undone: "Iterable[Note]", left: "Iterable[Note]") -> None:
    for note in undone:
        app.reporter.result(f"{note.thing}: {note.what}")
    for note in left:
        app.reporter.warn(f"left as it is: {note.thing}: {note.what}")
    app.payload["undone"] += [asdict(note) for note in undone]
    app.payload["left"] += [asdict(note) for note in left]
