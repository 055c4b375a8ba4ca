"""The commands of the local control plane: `gpuwl local …`."""

from pathlib import Path

import click

from gpuwl.cli import localplane, options
from gpuwl.cli.app import App
from gpuwl.cli.completing import components
from gpuwl.cli.helping import Group

FILE = click.Path(path_type=Path)


@click.group(cls=Group)
@options.name
@options.plane
@options.ANY_FORM
@options.talk
def local() -> None:
    """The local control plane: etcd, kube-apiserver and kube-scheduler on this machine.

    Real API, real scheduler, real messages; no kubelet, no controllers, nothing runs on the nodes.
    """


@local.command()
@click.option("--nodes", type=FILE, metavar="FILE")
@click.option("--anonymise", is_flag=True)
@click.option("--map", "map_file", type=FILE, metavar="FILE")
@options.name
@options.plane
@options.text_or_json
@click.pass_obj
def up(app: App, nodes: Path | None, anonymise: bool, map_file: Path | None) -> int:
    """Start it, unless it is up, and say how long that took."""
    app.command = "local up"
    if anonymise and nodes is None:
        raise click.UsageError("--anonymise needs --nodes FILE")
    if map_file and not anonymise:
        raise click.UsageError("--map needs --anonymise")
    done = localplane.ensure_up(app, nodes=nodes, anonymise=anonymise, map_file=map_file)
    app.payload |= {
        "name": done.plane.name,
        "started": done.started,
        "seconds": round(done.seconds, 3),
        "kubernetes": done.plane.version,
        "port": done.plane.port,
        "kubeconfig": str(done.plane.kubeconfig),
    }
    what = f"Kubernetes {done.plane.version}, https://127.0.0.1:{done.plane.port}"
    app.reporter.result(f"{localplane.said(done)}: {what}")
    app.reporter.note(localplane.ways_on(done.plane.name))
    return 0


@local.command()
@click.option("--all", "everything", is_flag=True)
@options.name
@options.text_or_json
@click.pass_obj
def down(app: App, everything: bool) -> int:
    """Stop it and remove its state; one that is not up is success too."""
    from gpuwl.controlplane import plane as planes

    app.command = "local down"
    names = planes.names() if everything else [localplane.name_of(app)]
    with app.reporter.moving("stopping"):
        localplane.down_each(app, names)
    if not names:
        app.reporter.result("none was up")
    return 0


@local.command("status")
@click.option("--all", "everything", is_flag=True)
@options.name
@options.text_or_json
@click.pass_obj
def show_status(app: App, everything: bool) -> int:
    """Tell versions, processes, memory, uptime, port, folder and nodes; exit 3 if it is not up."""
    from gpuwl.cli.show import localstatus
    from gpuwl.controlplane import plane as planes
    from gpuwl.controlplane.status import Phase, status

    app.command = "local status"
    names = planes.names() if everything else [localplane.name_of(app)]
    found = [status(name) for name in names]
    app.payload["controlPlanes"] = [localstatus.data(one) for one in found]
    for one in found:
        localstatus.print_status(app.reporter, one)
    if not found:
        app.reporter.result("none is up")
    return 0 if everything or found[0].phase is Phase.UP else 3


@local.command()
@click.argument("component", required=False, metavar="[COMPONENT]", shell_complete=components)
@click.option("-f", "--follow", is_flag=True)
@options.name
@options.text_or_json
@click.pass_obj
def logs(app: App, component: str | None, follow: bool) -> int:
    """Print the logs of etcd, kube-apiserver and kube-scheduler, or of one of them."""
    from gpuwl.cli.show import localstatus
    from gpuwl.controlplane import logs as planelogs
    from gpuwl.controlplane import plane as planes

    app.command = "local logs"
    planes.sweep()
    found = planelogs.paths(localplane.name_of(app), component)
    app.payload["logs"] = [str(path) for path in found]
    if app.reporter.as_json:
        return 0
    on_idle = localstatus.check_reader
    lines = planelogs.follow(found, on_idle) if follow else planelogs.read(found)
    localstatus.print_lines(app.reporter, lines, with_names=len(found) > 1)
    return 0


@local.command()
@options.name
@options.text_or_json
@click.pass_obj
def kubeconfig(app: App) -> int:
    """Print the path of its kubeconfig, also while it is down."""
    from gpuwl.controlplane import plane as planes

    app.command = "local kubeconfig"
    planes.sweep()
    name = localplane.name_of(app)
    path = planes.kubeconfig_path(name)
    trouble = localplane.trouble(name)
    app.payload |= {"name": name, "kubeconfig": str(path), "up": trouble is None}
    app.reporter.result(str(path))
    if trouble:
        app.reporter.warn(trouble)
    return 0


@local.command()
@options.consent
@options.output("text", "json")
@options.quiet
@options.language
@click.pass_obj
def clean(app: App) -> int:
    """Empty the cache of binaries, which all names share; the next start gets them again."""
    from gpuwl.cli import cleaning

    app.command = "local clean"
    return cleaning.clean(app)


@local.command("binaries")
@options.plane
@options.text_or_json
@click.pass_obj
def show_binaries(app: App) -> int:
    """Tell which binaries are used: source, version, digest of each."""
    from gpuwl.controlplane.binaries import inspection, lookup

    app.command = "local binaries"
    found = lookup.find(localplane.version_of(app), localplane.source_of(app))
    if found is None:
        raise localplane.no_binaries(app)
    described = inspection.describe(found.folder)
    app.payload |= {
        "kubernetes": found.version,
        "source": found.source,
        "binaries": [localplane.described(one) for one in described],
    }
    app.reporter.result(f"Kubernetes {found.version} from {found.source}: {found.folder}")
    rows = [(one.name, one.version, one.origin, f"sha256:{one.sha256}") for one in described]
    app.reporter.table(("binary", "version", "origin", "digest"), rows)
    damaged = [str(one.path) for one in described if not one.intact]
    if damaged:
        raise localplane.damaged(app, damaged)
    return 0


@local.command()
@click.option("--bundle", type=FILE, metavar="FILE")
@click.option("--from", "source_file", type=FILE, metavar="FILE")
@options.plane
@options.text_or_json
@click.pass_obj
def fetch(app: App, bundle: Path | None, source_file: Path | None) -> int:
    """Get the binaries without starting anything; pack or unpack them for another machine."""
    if bundle and source_file:
        raise click.UsageError("--bundle and --from exclude each other")
    if source_file and localplane.source_of(app):
        raise click.UsageError("--from and --source (GPUWL_SOURCE) exclude each other")
    app.command = "local fetch"
    with app.reporter.moving("looking for the binaries"):
        found = localplane.fetch(app, bundle, source_file)
    app.payload |= {
        "kubernetes": found.version,
        "source": found.source,
        "folder": str(found.folder),
        "bundle": str(bundle) if bundle else None,
    }
    app.reporter.result(f"Kubernetes {found.version} from {found.source}: {bundle or found.folder}")
    return 0
