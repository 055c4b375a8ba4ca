"""The options that several commands share; each is also a variable of the environment."""

import math
import os
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

    name = "seconds"

    def convert(
        self, value: float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        seconds: float = super().convert(value, param, ctx)
        if not math.isfinite(seconds):
            self.fail(f"{value} is not a finite number of seconds", param, ctx)
        return seconds


def _option(*names: str, variable: str, **more: Any) -> Decorator:  # noqa: ANN401 - click's own
    return click.option(
        *names,
        expose_value=False,
        callback=_remember,
        envvar=f"GPUWL_{variable}",
        show_envvar=True,
        **more,
    )


_FOLDER = _Path(path_type=Path)

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
    _option(
        "--output",
        variable="OUTPUT",
        type=click.Choice(["text", "json"]),
        help="json prints one document at the end.",
    ),
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
    _option("--name", variable="NAME", metavar="NAME", help="Which local control plane (default)."),
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


def with_options(options: Iterable[Decorator]) -> Decorator:
    """Return a decorator that adds options in the given order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(tuple(options)):
            command = option(command)
        return command

    return decorate


shared = with_options(SHARED)
plane = with_options(PLANE)
