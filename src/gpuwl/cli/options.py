"""The options that several commands share; each is also a variable of the environment."""

import math
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from gpuwl.cli.app import App

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def _remember(context: click.Context, parameter: click.Parameter, value: object) -> None:
    source = context.get_parameter_source(parameter.name or "")
    rank = {ParameterSource.ENVIRONMENT: 1, ParameterSource.COMMANDLINE: 2}.get(source, 0)  # type: ignore[arg-type]
    if rank:
        context.ensure_object(App).remember(str(parameter.name), value, rank)


class _Path(click.Path):
    """A path; an empty one, as an unset variable of a script leaves behind, is refused."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | bytes | os.PathLike[str]:
        if value == "":
            self.fail("it is empty", param, ctx)
        return super().convert(value, param, ctx)


class _Word(click.types.StringParamType):
    """A text; an empty one is refused."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        if value == "":
            self.fail("it is empty", param, ctx)
        return str(super().convert(value, param, ctx))


class _Seconds(click.FloatRange):
    """A positive, finite number of seconds."""

    name = "number of seconds"

    def convert(
        self, value: float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        seconds: float = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(f"{value} is not a finite number of seconds", param, ctx)
        return seconds


def _remember_output(context: click.Context, parameter: click.Parameter, value: object) -> None:
    """Refuse here what the top level took for `verify`, the one command that writes JUnit XML."""
    _remember(context, parameter, value)
    if context.ensure_object(App).settings.output == "junit":
        raise click.UsageError("--output junit is for gpuwl verify alone", context)


class _Nodes(click.ParamType[tuple[str, ...]]):
    """Three different names of nodes, joined by commas."""

    name = "nodes"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        names = tuple(name.strip() for name in str(value).split(","))
        if len(names) != 3 or len(set(names)) != 3:
            self.fail(f"{value!r} is not three different names, such as a,b,c", param, ctx)
        for name in names:
            if len(name) > 253 or not _NODE_NAME.fullmatch(name):
                self.fail(f"{name!r} cannot be the name of a node", param, ctx)
        return names


# https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#dns-subdomain-names
_NODE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def _option(*names: str, variable: str, **more: Any) -> Decorator:  # noqa: ANN401 - click's own
    more.setdefault("callback", _remember)
    return click.option(
        *names,
        expose_value=False,
        envvar=f"GPUWL_{variable}",
        show_envvar=True,
        **more,
    )


_FOLDER = _Path(path_type=Path)

_OUTPUT = _option(
    "--output",
    variable="OUTPUT",
    type=click.Choice(["text", "json"]),
    callback=_remember_output,
    help="json prints one document at the end.",
)
_OUTPUT_OR_JUNIT = _option(
    "--output",
    variable="OUTPUT",
    type=click.Choice(["text", "json", "junit"]),
    help="json prints one document at the end; junit is for verify.",
)

SHARED = (
    _option("--root", variable="ROOT", type=_FOLDER, metavar="DIR", help="Where the files go."),
    _option(
        "--kubeconfig",
        variable="KUBECONFIG",
        type=_FOLDER,
        metavar="FILE",
        help="The cluster to use.",
    ),
    _option(
        "--context",
        variable="CONTEXT",
        type=_Word(),
        metavar="NAME",
        help="The kubeconfig's context.",
    ),
    _option("--local", variable="LOCAL", is_flag=True, help="Use the local control plane."),
    _option(
        "--timeout",
        variable="TIMEOUT",
        type=_Seconds(min=0.1, max=86400),
        metavar="SECONDS",
        help="Limit of one wait (30).",
    ),
    _OUTPUT,
    _option("-q", "--quiet", variable="QUIET", is_flag=True, help="Results and errors only."),
    _option(
        "-v",
        "--verbose",
        variable="VERBOSE",
        is_flag=True,
        help="Name each file with its digest; count requests.",
    ),
)

PLANE = (
    _option(
        "--name",
        variable="NAME",
        type=_Word(),
        metavar="NAME",
        help="Which local control plane (default).",
    ),
    _option(
        "--kubernetes-version",
        variable="KUBERNETES_VERSION",
        metavar="X.Y.Z",
        help="Kubernetes release of the local control plane.",
    ),
    _option(
        "--source",
        variable="SOURCE",
        type=click.Choice(["download", "build"]),
        help="Force where its binaries come from.",
    ),
)


LAB_NODES = (
    _option(
        "--lab-nodes",
        variable="LAB_NODES",
        type=_Nodes(),
        metavar="A,B,C",
        help="Nodes for container, vm-passthrough, vm-vgpu instead of lab-node-0 to 2.",
    ),
)
CONSENT = (
    _option(
        "-y",
        "--yes",
        variable="YES",
        is_flag=True,
        help="Go on where a cluster is in real use.",
    ),
)


def with_options(options: Iterable[Decorator]) -> Decorator:
    """Return a decorator that adds options in the given order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(tuple(options)):
            command = option(command)
        return command

    return decorate


shared = with_options(SHARED)
shared_or_junit = with_options([_OUTPUT_OR_JUNIT if one is _OUTPUT else one for one in SHARED])
plane = with_options(PLANE)
lab_nodes = with_options(LAB_NODES)
consent = with_options(CONSENT)
