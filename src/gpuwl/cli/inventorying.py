"""The command `inventory`: what is on which side of the split, who waits, what stands idle."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from gpuwl.cli import options
from gpuwl.cli.app import App
from gpuwl.cli.helping import command
from gpuwl.errors import ClusterError, SetupError

if TYPE_CHECKING:
    from gpuwl.cli.show.watching import Watching
    from gpuwl.inventory.model import Inventory
    from gpuwl.inventory.page import Caption
    from gpuwl.inventory.view import View
    from gpuwl.target.connection import ReadOnlyConnection
    from gpuwl.target.target import Choice

FILE = click.Path(path_type=Path)
VIEWS = ("resource", "node", "namespace", "workload")
USES = ("container", "container-slice", "vm-passthrough", "vm-vgpu", "dra", "unknown")
SORTS = ("use", "name", "advertised", "used", "free", "waiting")
INTERVAL = 5.0


@command()
@click.option("--nodes", type=FILE, metavar="FILE|-")
@click.option("--pods", type=FILE, metavar="FILE|-")
@click.option("--slices", type=FILE, multiple=True, metavar="FILE")
@click.option("--by", type=click.Choice(VIEWS), default="resource")
@click.option("-l", "--selector", metavar="SELECTOR")
@click.option("--use", type=click.Choice(USES))
@click.option("--sort", type=click.Choice(SORTS), default="use")
@click.option("--watch", is_flag=True)
@click.option("--interval", type=click.FloatRange(min=0.5, max=3600), metavar="SECONDS")
@click.option("--html", type=FILE, metavar="FILE")
@click.option("--svg", type=FILE, metavar="FILE")
@options.cluster
@options.timeout
@options.output("text", "json", "csv", "prometheus")
@options.talk
@click.pass_obj
def inventory(  # noqa: PLR0913 - one parameter per option of the command
    app: App,
    *,
    nodes: Path | None,
    pods: Path | None,
    slices: tuple[Path, ...],
    by: str,
    selector: str | None,
    use: str | None,
    sort: str,
    watch: bool,
    interval: float | None,
    html: Path | None,
    svg: Path | None,
) -> int:
    """Show what nodes have of each GPU resource, who holds it, who waits, and what stands idle."""
    app.command = "inventory"
    _refuse_contradictions(nodes, pods, slices, (watch, interval))
    from gpuwl.inventory.view import view

    wanted = view(by, use, sort, selector)
    if watch:
        return _watch(app, wanted, interval or INTERVAL)
    if nodes:
        found, caption = _from_files(wanted, nodes, pods, slices)
    else:
        with _connected(app) as connection:
            found, caption = _from_cluster(app, wanted, connection)
    _write_pictures(app, (found, caption), wanted, html, svg)
    _print(app, (found, caption), wanted)
    return 0


def _refuse_contradictions(
    nodes: Path | None,
    pods: Path | None,
    slices: tuple[Path, ...],
    watching: tuple[bool, float | None],
) -> None:
    watch, interval = watching
    if nodes is None and (pods or slices):
        raise click.UsageError("--pods and --slices need --nodes FILE")
    if str(nodes) == str(pods) == "-":
        raise click.UsageError("standard input cannot be both --nodes and --pods")
    if watch and nodes:
        raise click.UsageError("--watch looks at a live cluster, not at files")
    if interval and not watch:
        raise click.UsageError("--interval is for --watch")


def _from_files(
    wanted: "View", nodes: Path, pods: Path | None, slices: tuple[Path, ...]
) -> "tuple[Inventory, Caption]":
    from gpuwl.inventory import sources
    from gpuwl.inventory.page import Caption

    files = sources.Files(_opened(nodes), _opened(pods) if pods else None, slices)
    given = [("--nodes", nodes), ("--pods", pods)]
    words = [word for option, path in given if path for word in (option, str(path))]
    names = ", ".join(path.name for _, path in given if path)
    return sources.from_files(files, wanted.selects), Caption(names, _now(), tuple(words))


def _opened(path: Path) -> Path | int:
    return 0 if str(path) == "-" else path


def _from_cluster(
    app: App, wanted: "View", connection: "ReadOnlyConnection"
) -> "tuple[Inventory, Caption]":
    from gpuwl.inventory import sources
    from gpuwl.inventory.page import Caption
    from gpuwl.texts import text

    found = sources.from_cluster(connection.cluster, wanted.selects)
    app.reporter.more(f"{connection.cluster.requests} requests")
    kind = "source_local" if connection.own else "source_cluster"
    record = connection.record
    source = text(f"inventory.{kind}", name=record.name, kubernetes=record.kubernetes)
    return found, Caption(source, _now(), app.settings.typed)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


@contextmanager
def _connected(app: App) -> "Iterator[ReadOnlyConnection]":
    """Connect to the cluster of the options with a client that cannot write."""
    from gpuwl.target import connection, target

    choice = target.choose(app.settings)
    if choice.local:
        choice = _that_is_up(app, choice)
    with connection.connect_to_read(choice, timeout=app.settings.timeout) as connected:
        yield connected


def _that_is_up(app: App, choice: "Choice") -> "Choice":
    from gpuwl.cli import localplane
    from gpuwl.controlplane import plane as planes

    name = localplane.name_of(app)
    if not planes.is_up(name):
        raise SetupError(
            f"the local control plane {name} is not up, so there is nothing to look at",
            hint="name dumps with --nodes nodes.json --pods pods.json, or a cluster with --kubeconfig",
        )
    return replace(choice, kubeconfig=str(planes.kubeconfig_path(name)))


def _write_pictures(
    app: App,
    seen: "tuple[Inventory, Caption]",
    wanted: "View",
    html: Path | None,
    svg: Path | None,
) -> None:
    from gpuwl.system.files import replace_file
    from gpuwl.system.oserrors import explained
    from gpuwl.texts import text

    if not html and not svg:
        return
    from gpuwl.inventory import page

    found, caption = seen
    for path, make in ((html, page.html), (svg, page.svg)):
        if path:
            data = make(found, caption, wanted.use).encode()
            with explained("cannot write", path, "name a file in a folder that can be written"):
                replace_file(path, data, 0o644)
            app.reporter.note(text("inventory.wrote", file=path))


def _print(app: App, seen: "tuple[Inventory, Caption]", wanted: "View") -> None:
    from gpuwl.cli.show import inventory as show
    from gpuwl.inventory import document, tables

    found, caption = seen
    form = app.settings.output
    app.payload |= document.document(found, wanted)
    if form == "csv":
        app.reporter.raw(tables.to_csv(wanted.rows(found), wanted.kind))
    elif form == "prometheus":
        app.reporter.raw(tables.to_prometheus(wanted.rows(found), wanted.kind))
    elif form == "text":
        show.print_inventory(app.reporter, found, wanted, caption)


def _watch(app: App, wanted: "View", seconds: float) -> int:
    """Look again and again until Ctrl-C, which is the way to end it: exit code 0."""
    if not app.reporter.for_people:
        raise click.UsageError("--watch draws on a terminal, and standard output is none")
    from gpuwl.cli.show.watching import Watching

    try:
        with Watching(wanted, seconds) as screen:
            _follow(app, wanted, seconds, screen)
    except KeyboardInterrupt:
        return 0


def _follow(app: App, wanted: "View", seconds: float, screen: "Watching") -> NoReturn:
    """Draw what is there; once there was something, wait for a cluster that went away."""
    from gpuwl.system import waiting

    seen = False
    while True:
        try:
            with _connected(app) as connection:
                while True:
                    began = time.monotonic()
                    screen.show(*_from_cluster(app, wanted, connection))
                    seen = True
                    waiting.pause(max(seconds, time.monotonic() - began))
        except (ClusterError, SetupError) as error:
            if not seen:
                raise
            screen.fail(error.message)
            waiting.pause(seconds)
