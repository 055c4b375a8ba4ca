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
    from gpuwl.lab.takeback import Note
    from gpuwl.target.target import Choice


@command()
@click.option("--files", is_flag=True)
@options.root
@options.cluster
@options.timeout
@options.text_or_json
@click.pass_obj
def reset(app: App, files: bool) -> int:
    """Take back what gpuwl changed on the cluster: Pods, namespace, resources, labels.

    Goes by the journal that each change was written to before it was made. What somebody else
    changed since is left as it is, and named.
    """
    from gpuwl.lab.artifacts import Artifacts
    from gpuwl.target import target

    app.command = "reset"
    app.payload |= {"undone": [], "left": []}
    artifacts = Artifacts(app.settings.root)
    with _claimed(artifacts) if files else contextlib.nullcontext():
        choice = _running(app, target.choose(app.settings))
        if choice:
            _reset_cluster(app, choice)
        if files:
            _remove_files(app, artifacts)
    if not app.payload["undone"] and not app.payload["left"]:
        app.reporter.result("nothing to take back")
    return 0


@contextlib.contextmanager
def _claimed(artifacts: "Artifacts") -> Iterator[None]:
    """Hold the root, if there is one: a reset makes none."""
    with artifacts.claimed() if artifacts.root.is_dir() else contextlib.nullcontext():
        yield


def _running(app: App, choice: "Choice") -> "Choice | None":
    """Return the choice with its kubeconfig; None for our own control plane while it is down."""
    if not choice.local:
        return choice
    from gpuwl.cli import localplane
    from gpuwl.controlplane import plane as planes

    name = localplane.name_of(app)
    if planes.is_up(name):
        return replace(choice, kubeconfig=str(planes.kubeconfig_path(name)))
    app.reporter.note(f"local control plane {name} is not up, so nothing of the lab is on it")
    return None


def _reset_cluster(app: App, choice: "Choice") -> None:
    from gpuwl.cli.show import progress
    from gpuwl.lab import journal
    from gpuwl.lab.takeback import TakeBack
    from gpuwl.target import connection

    timeout = app.settings.timeout
    with connection.connect(choice, timeout=timeout) as connected:
        app.payload["target"] = progress.target_data(connected.record)
        progress.print_target(app.reporter, connected.record)
        with journal.opened(connected.cluster, connected.local_name) as entries:
            taking = TakeBack(connected.cluster, entries, timeout=timeout, own=connected.own)
            try:
                taking.everything()
            finally:
                _tell(app, taking.undone, taking.left)


def _remove_files(app: App, artifacts: "Artifacts") -> None:
    from gpuwl.lab import cleanup
    from gpuwl.lab.takeback import Note
    from gpuwl.steps import STEPS

    cleaned = cleanup.remove_files(artifacts, {name for step in STEPS for name in step.artifacts})
    undone = [Note(str(artifacts.path(name)), "removed") for name in cleaned.removed]
    left = [Note(str(artifacts.path(name)), why) for name, why in cleaned.left.items()]
    _tell(app, undone, left)


def _tell(app: App, undone: "Iterable[Note]", left: "Iterable[Note]") -> None:
    for note in undone:
        app.reporter.result(f"{note.thing}: {note.what}")
    for note in left:
        app.reporter.warn(f"left as it is: {note.thing}: {note.what}")
    app.payload["undone"] += [asdict(note) for note in undone]
    app.payload["left"] += [asdict(note) for note in left]
