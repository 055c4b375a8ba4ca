"""`--dry-run`: the shell script that does the same, for the target that the options mean."""

import os
import shlex
from typing import TYPE_CHECKING

from gpuwl.cli.app import App
from gpuwl.system import folders

if TYPE_CHECKING:
    from gpuwl.target.target import Choice


def print_script(app: App, span: tuple[int, int]) -> None:
    """Print the script of the steps from the first to the last; asks no cluster anything."""
    from gpuwl.lab import byhand
    from gpuwl.lab.names import lab_nodes
    from gpuwl.lab.runner import choose
    from gpuwl.steps import STEPS
    from gpuwl.target import target

    choice = target.choose(app.settings)
    around = byhand.Surroundings(app.settings.root, _target_lines(app, choice))
    nodes = lab_nodes(app.settings.lab_nodes)
    script = byhand.script(choose(STEPS, *span), nodes, around)
    app.payload["script"] = script
    if app.settings.output == "text":
        app.reporter.raw(script)


def _target_lines(app: App, choice: "Choice") -> list[str]:
    if choice.local:
        return _local_lines(app)
    lines = []
    if choice.kubeconfig:
        paths = [
            folders.whole(folders.expanded(path))
            for path in choice.kubeconfig.split(os.pathsep)
            if path
        ]
        absolute = os.pathsep.join(str(path) for path in paths)
        lines.append(f"export KUBECONFIG={shlex.quote(absolute)}")
    if choice.context:
        option = f"--context={shlex.quote(choice.context)}"
        lines.append(f'kubectl() {{ command kubectl {option} "$@"; }}')
    return lines


def _local_lines(app: App) -> list[str]:
    """Return the lines that start our own control plane, if need be, and point kubectl to it."""
    from gpuwl.cli import localplane

    name = shlex.quote(localplane.name_of(app))
    version = localplane.version_of(app)
    release = f" --kubernetes-version {shlex.quote(version)}" if version else ""
    return [
        f"gpuwl local up --name {name}{release}",
        f"KUBECONFIG=$(gpuwl local kubeconfig --name {name})",
        "export KUBECONFIG",
    ]
