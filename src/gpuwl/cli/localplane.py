"""Starting and stopping the local control plane on behalf of a command, and saying so."""

import contextlib
from typing import TYPE_CHECKING, Any

from gpuwl.cli.app import App
from gpuwl.errors import GpuwlError, SetupError
from gpuwl.system import oserrors
from gpuwl.texts import text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gpuwl.controlplane.binaries.inspection import Described
    from gpuwl.controlplane.binaries.lookup import Binaries, Source
    from gpuwl.controlplane.plane import Up


def name_of(app: App) -> str:
    """Return the name of the local control plane that the options mean."""
    from gpuwl.controlplane import state

    return app.settings.name or state.DEFAULT_NAME


def ensure_up(app: App, **more: Any) -> "Up":  # noqa: ANN401 - ensure_up's own options
    """Start the local control plane, or take the one that is up."""
    from gpuwl.lab import local_plane

    name, reporter = name_of(app), app.reporter
    with reporter.moving(f"local control plane {name}"):
        return local_plane.ensure_up(
            name,
            version=app.settings.kubernetes_version,
            source=source_of(app),
            listener=reporter,
            **more,
        )


def said(up: "Up") -> str:
    """Return a line that says which control plane is up, and whether it had to be started."""
    key = "started" if up.started else "up"
    return text(f"lab.plane_{key}", name=up.plane.name, seconds=f"{up.seconds:.1f}")


def ways_on(name: str) -> str:
    """Return a line with the commands that show and stop a local control plane."""
    more = suffix(name)
    look = f"KUBECONFIG=$(gpuwl local kubeconfig{more}) kubectl get nodes"
    return text("lab.plane_ways", look=look, stop=f"gpuwl local down{more}")


def suffix(name: str) -> str:
    """Return the option that a command about this control plane needs, empty for the default."""
    from gpuwl.controlplane import state

    return "" if name == state.DEFAULT_NAME else f" --name {name}"


@contextlib.contextmanager
def lent(app: App) -> "Iterator[Up]":
    """Yield a local control plane that is up; no `--rm` of another command takes it meanwhile."""
    from gpuwl.controlplane import state

    while True:
        up = ensure_up(app)
        with state.used(up.plane.name) as mine:
            if mine:  # else it was just being stopped
                yield up
                return


def down_unused(app: App) -> None:
    """Stop the local control plane if this command started it and no other uses it; say so."""
    from gpuwl.controlplane import plane, state

    name = name_of(app)
    done = plane.down_unused(name)
    if done:
        app.reporter.note(text("lab.plane_stopped", name=name, seconds=f"{done.seconds:.1f}"))
    elif state.exists(name):
        app.reporter.note(text("lab.plane_stays", name=name))


def down_each(app: App, names: "Sequence[str]") -> None:
    """Stop local control planes, and say of each what became of it; one failure stops no other.

    Raises the first error at the end, with those of the others.
    """
    from gpuwl.controlplane import plane

    app.payload |= {"stopped": [], "failed": []}
    failed: list[GpuwlError] = []
    for name in names:
        try:
            done = plane.down(name, app.reporter)
        except (GpuwlError, OSError) as error:
            known = error if isinstance(error, GpuwlError) else SetupError(oserrors.words(error))
            failed.append(known)
            app.payload["failed"].append({"name": name, "message": known.message})
            if len(names) > 1:
                app.reporter.result(f"{name} is still there: {known.message}")
            continue
        if done.stopped:
            app.payload["stopped"].append(name)
        word = f"stopped in {done.seconds:.2f} s" if done.stopped else "was not up"
        app.reporter.result(f"{name} {word}")
    if failed:
        first, *others = failed
        first.details += tuple(other.message for other in others)
        raise first


def trouble(name: str) -> str | None:
    """Return why a local control plane cannot be used, with the way out; None where it is up."""
    from gpuwl.controlplane import plane

    try:
        if plane.is_up(name):
            return None
    except SetupError as error:
        return f"{error.message}; {error.hint}"
    return f"local control plane {name} is down; start it: gpuwl local up{suffix(name)}"


def version_of(app: App) -> str | None:
    """Return the Kubernetes version that the options ask for."""
    return app.settings.kubernetes_version


def source_of(app: App) -> "Source | None":
    """Return the way to get binaries that the options force, None for any."""
    return app.settings.source


def no_binaries(app: App) -> SetupError:
    """Return the error that names what is not there, and the command that gets just that."""
    from gpuwl.controlplane.binaries import lookup

    version, source = version_of(app), source_of(app)
    way = {"download": " that were downloaded", "build": " that were built here"}
    options = f" --kubernetes-version {version}" if version else ""
    options += f" --source {source}" if source else ""
    return SetupError(
        f"no binaries of Kubernetes {version or lookup.DEFAULT_VERSION}"
        f"{way[source] if source else ''} are here yet",
        hint=f"gpuwl local fetch{options}",
    )


def damaged(app: App, paths: list[str]) -> SetupError:
    """Return the error of binaries that are not what they were, with the way to get them again."""
    chosen = f" --kubernetes-version {version}" if (version := version_of(app)) else ""
    return SetupError(
        f"{', '.join(paths)} has changed since it was cached",
        hint=f"get it again: gpuwl local fetch{chosen}",
    )


def fetch(app: App, bundle_to: "Path | None", bundle_from: "Path | None") -> "Binaries":
    """Return binaries that are here now: obtained, unpacked from a bundle, or packed into one."""
    from gpuwl.controlplane.binaries import acquire, bundle

    listener = app.reporter
    if bundle_from:
        return bundle.unpack(bundle_from, listener, version_of(app))
    if bundle_to:
        bundle.check_place(bundle_to)
    found = acquire.obtain(version_of(app), source=source_of(app), listener=listener, check=True)
    if bundle_to:
        bundle.pack(found, bundle_to, listener)
    return found


def described(one: "Described") -> dict[str, Any]:
    """Return what is known of one binary as data."""
    return {field: str(value) if field == "path" else value for field, value in vars(one).items()}
