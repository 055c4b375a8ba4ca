"""The command `place`: where the real scheduler would put Pods, why not elsewhere, and what if."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpuwl.cli import options
from gpuwl.cli.app import App
from gpuwl.cli.helping import command
from gpuwl.errors import InputError, SetupError

if TYPE_CHECKING:
    from gpuwl.controlplane.binaries.lookup import Binaries
    from gpuwl.placement.session import Question, Side
    from gpuwl.placement.whatif import Change
    from gpuwl.placement.world import World

FILE = click.Path(path_type=Path)
STANDARD_INPUT = Path("-")
MOST_TIMES = 10000


class _Times(click.ParamType[int | str]):
    """A number of copies, or `max`."""

    name = "times"

    def convert(self, value: object, param: Any, ctx: Any) -> int | str:  # noqa: ANN401 - click's
        """Return the number, or `max`."""
        if value == "max" or isinstance(value, int):
            return value
        if not str(value).isdecimal() or not 0 < int(str(value)) <= MOST_TIMES:
            self.fail(f"{value!r} is not max or a number from 1 to {MOST_TIMES}", param, ctx)
        return int(str(value))


@command()
@click.argument("files", nargs=-1, metavar="[FILE|DIR|-]...", type=FILE)
@click.option("--nodes", type=FILE, metavar="FILE")
@click.option("--pods", type=FILE, metavar="FILE")
@click.option("--with", "more", type=FILE, metavar="FILE", multiple=True)
@click.option("--times", type=_Times(), default=1, metavar="N|max")
@click.option("--move", multiple=True, metavar="NODE=VALUE:RESOURCE=N")
@click.option("--cordon", multiple=True, metavar="NODE")
@click.option("--uncordon", multiple=True, metavar="NODE")
@click.option("--remove", multiple=True, metavar="NODE")
@click.option("--add", multiple=True, metavar="NODE=N")
@click.option("--drain", multiple=True, metavar="NODE")
@click.option("--suggest", is_flag=True)
@click.option("--reasons", type=click.IntRange(0), default=5, metavar="N")
@options.cluster
@options.plane
@options.timeout
@options.text_or_json
@click.pass_obj
def place(app: App, /, **given: Any) -> int:  # noqa: ANN401 - click's own
    """Ask the real scheduler where Pods would go. `help.toml` has the words."""
    app.command = "place"
    from gpuwl.placement import session, whatif

    question = _question(app, given)
    changes = [whatif.Change(kind, text) for kind in whatif.KINDS for text in given[kind]]
    if given["times"] == "max" and (changes or given["suggest"]):
        raise click.UsageError("--times max tells how often it fits now: leave the changes out")
    whatif.apply(question.world, changes)  # what cannot be is known before anything starts
    _say_left_out(app, session.left_out(question))
    if not question.workloads.pods:
        raise InputError("there is no Pod to place", hint="name manifests, or a dump with --pods")
    with (
        app.reporter.moving("placing"),
        session.opened(question, _binaries(app), app.reporter) as asked,
    ):
        if given["times"] == "max":
            return _fill(app, question, asked.fill(MOST_TIMES))
        before = asked.now()
        after = asked.after(changes) if changes else None
        suggested = _suggested(question, asked, after or before) if given["suggest"] else None
    return _tell(app, before, after, changes, suggested)


def _question(app: App, given: dict[str, Any]) -> "Question":
    from gpuwl.placement import workloads
    from gpuwl.placement.session import Question

    files = [str(file) for file in given["files"]]
    sources = [str(given[key]) for key in ("nodes", "pods") if given[key]] + files
    if sources.count("-") > 1:
        raise click.UsageError("only one of FILES, --nodes and --pods can be standard input")
    world = _world(app, given)
    found = workloads.read(files) if files else workloads.waiting(world)
    if files and world.waiting:
        world.left_out["Pods that already wait (name no files to place those)"] += len(
            world.waiting
        )
    times = given["times"] if isinstance(given["times"], int) else 1
    return Question(world, found.times(times), app.settings.timeout, given["reasons"])


def _world(app: App, given: dict[str, Any]) -> "World":
    from gpuwl.k8s import dump
    from gpuwl.placement import world

    if not given["nodes"]:
        if given["pods"] or given["more"]:
            raise click.UsageError("--pods and --with need --nodes FILE")
        return _live(app)

    def source(path: Path | None) -> Path | int | None:
        return dump.STANDARD_INPUT if path == STANDARD_INPUT else path

    nodes = source(given["nodes"])
    if nodes is None:
        raise click.UsageError("--nodes names no file")
    return world.from_dumps(nodes, source(given["pods"]), given["more"])


def _live(app: App) -> "World":
    from gpuwl.cli import localplane
    from gpuwl.controlplane import plane
    from gpuwl.placement import world
    from gpuwl.target import connection, target

    choice = target.choose(app.settings)
    if choice.local:
        name = localplane.name_of(app)
        if not plane.is_up(name):
            raise SetupError(
                "there is no cluster to read: no --nodes, no kubeconfig, no local control plane",
                hint="gpuwl place FILES --nodes nodes.json",
            )
        path = str(plane.kubeconfig_path(name))
        choice = target.Choice(local=False, reason="local", kubeconfig=path)
    with connection.connect_to_read(choice, timeout=app.settings.timeout) as connected:
        return world.from_cluster(connected.cluster.get)


def _binaries(app: App) -> "Binaries":
    from gpuwl.cli import localplane
    from gpuwl.controlplane.binaries import acquire, lookup

    version, source = localplane.version_of(app), localplane.source_of(app)
    if source is None and (found := lookup.find(version)):
        return found
    return acquire.obtain(version, source=source, listener=app.reporter)


def _say_left_out(app: App, found: dict[str, int]) -> None:
    app.payload["leftOut"] = [{"what": what, "count": count} for what, count in found.items()]
    for what, count in found.items():
        app.reporter.note(f"not taken into account: {count} x {what}")


def _fill(app: App, question: "Question", count: int) -> int:
    app.payload["fits"] = count
    names = ", ".join(dict.fromkeys(one.name for one in question.workloads.workloads))
    app.reporter.result(f"{names} fits {count} times")
    return 0 if count else 1


def _suggested(question: "Question", asked: Any, side: "Side") -> Any:  # noqa: ANN401 - as below
    from gpuwl.placement import suggestions

    return suggestions.find(question.world, asked, side)


def _tell(
    app: App,
    before: "Side",
    after: "Side | None",
    changes: "list[Change]",
    suggested: Any,  # noqa: ANN401
) -> int:
    from gpuwl.cli.show import placement

    last = after or before
    app.payload |= placement.data(before, after, changes)
    placement.show(app.reporter, before, after, changes)
    if suggested is not None:
        app.payload["suggestion"] = placement.suggestion_data(suggested)
        placement.show_suggestion(app.reporter, suggested)
    return 0 if last.all_placed else 1
