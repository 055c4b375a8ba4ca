"""The options that several commands share; each is also a variable of the environment."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from gpuwl.cli.app import App
from gpuwl.cli.completing import plane_names
from gpuwl.cli.helping import Option
from gpuwl.system import folders
from gpuwl.texts import LANGUAGES

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

RANKS = {ParameterSource.ENVIRONMENT: 1, ParameterSource.COMMANDLINE: 2}


def _remember(context: click.Context, parameter: click.Parameter, value: object) -> None:
    name = str(parameter.name)
    source = context.get_parameter_source(name)
    rank = RANKS.get(source, 0) if source else 0
    if rank and value == "" and isinstance(parameter.type, (click.types.StringParamType, Folder)):
        raise click.BadParameter("it is empty", context, parameter)
    if rank and isinstance(value, Path):
        value = folders.whole(value)
    if rank:
        context.ensure_object(App).remember(name, value, rank)


def _remember_seconds(context: click.Context, parameter: click.Parameter, value: object) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise click.BadParameter(f"{value} is not a finite number of seconds", context, parameter)
    _remember(context, parameter, value)


def _remember_output(context: click.Context, parameter: click.Parameter, value: object) -> None:
    """Keep the form of the output, where the command has it; only the command itself knows that."""
    _remember(context, parameter, value)
    forms = FORMS.get(parameter)
    chosen = context.ensure_object(App).settings.output
    if forms and chosen not in forms:
        others = ", ".join(forms)
        raise click.BadParameter(f"{chosen!r} is not one of {others}", context, parameter)


class Folder(click.Path):
    """A path that stays empty where it is empty, so that an unset variable is no folder."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: ANN401 - click's signature
        """Return the path, or the empty text, which the callback refuses."""
        return value if value == "" else super().convert(value, param, ctx)


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


def _option(*names: str, group: str, **more: Any) -> Decorator:  # noqa: ANN401 - click's own
    more.setdefault("callback", _remember)
    long = next(name for name in names if name.startswith("--"))
    variable = long.removeprefix("--").replace("-", "_").upper()
    return click.option(
        *names,
        cls=Option,
        group=group,
        expose_value=False,
        envvar=f"GPUWL_{variable}",
        **more,
    )


root = _option("--root", group="target", type=Folder(path_type=Path), metavar="DIR")
kubeconfig = _option("--kubeconfig", group="target", type=Folder(path_type=Path), metavar="FILE")
context = _option("--context", group="target", metavar="NAME")
local = _option("--local", group="target", is_flag=True)
lab_nodes = _option("--lab-nodes", group="target", type=_Nodes(), metavar="A,B,C")
consent = _option("-y", "--yes", group="output", is_flag=True)
timeout = _option(
    "--timeout",
    group="output",
    type=click.FloatRange(min=0.1, max=86400),
    metavar="SECONDS",
    callback=_remember_seconds,
)
quiet = _option("-q", "--quiet", group="output", is_flag=True)
verbose = _option("-v", "--verbose", group="output", is_flag=True)
name = _option("--name", group="plane", metavar="NAME", shell_complete=plane_names)
release = _option("--kubernetes-version", group="plane", metavar="X.Y.Z")
source = _option("--source", group="plane", type=click.Choice(["download", "build"]))
language = _option("--lang", group="output", type=click.Choice(LANGUAGES))

FORMS: dict[click.Parameter, tuple[str, ...]] = {}
"""Which forms of output a command's own `--output` takes."""
ANY_FORM = _option("--output", group="output", metavar="FORM", callback=_remember_output)
"""Before the command, which then says whether it has that form."""


def output(*forms: str) -> Decorator:
    """Return the option `--output` of a command that has these forms, `text` first."""
    option = _option(
        "--output", group="output", type=click.Choice(forms), callback=_remember_output
    )

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        decorated = option(command)
        FORMS[decorated.__click_params__[-1]] = forms  # type: ignore[attr-defined] # click's own list
        return decorated

    return decorate


def together(*options: Decorator) -> Decorator:
    """Return a decorator that adds options in the given order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


cluster = together(kubeconfig, context, local, name)
"""Which cluster a command works on."""
plane = together(release, source)
"""What a local control plane is started with."""
talk = together(quiet, verbose, language)
"""How much a command says, and in which language."""
text_or_json = together(output("text", "json"), talk)
everywhere = together(root, cluster, lab_nodes, plane, consent, timeout, ANY_FORM, talk)
"""What may stand before a command too."""
