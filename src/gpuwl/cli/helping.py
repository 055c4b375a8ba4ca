"""How help looks: text, commands, options by what they are about, examples; in the chosen language.

The words are in the catalogues under `help.…`: `run` is what a command does, `run_examples` how it is
called, `option_root` what an option means, `option_run_all` where a command has an option of its own.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from gpuwl.cli.app import App
from gpuwl.texts import catalogue, language

GROUPS = ("", "target", "plane", "output")


def _text(name: str) -> str | None:
    return catalogue(language(), "help").get(name) or catalogue("en", "help").get(name)


def _key(context: click.Context) -> str:
    """Return the key of a command: `run`, `local_up`, and `gpuwl` for the top level."""
    words = context.command_path.split()[1:]
    return "_".join(words).replace("-", "_") or "gpuwl"


class _WideFormatter(click.HelpFormatter):
    """Lays out by display cells: Korean characters take two."""

    def write_text(self, text: str) -> None:
        """Write paragraphs, separated by a blank line."""
        from gpuwl.cli.show import layout  # rich counts cells, and English help does without

        indent = " " * self.current_indent
        for number, paragraph in enumerate(text.split("\n\n")):
            lines = layout.wrapped(paragraph, indent=indent, most=self.width)
            self.write("\n" * bool(number) + "".join(f"{line}\n" for line in lines))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write rows of what stands left and what it means."""
        from gpuwl.cli.show import layout

        rows = list(rows)
        left = min(col_max, max(len(name) for name, _ in rows)) + col_spacing
        for name, words in rows:
            head = f"{'':{self.current_indent}}{name:<{left}}"
            lines = layout.wrapped(words, indent=head, hanging=" " * len(head), most=self.width)
            self.write("".join(f"{line.rstrip()}\n" for line in lines))


class Option(click.Option):
    """An option that stands in a group of its kind and has its words in the catalogues."""

    def __init__(self, *names: Any, group: str = "", **more: Any) -> None:  # noqa: ANN401 - click's own
        super().__init__(*names, **more)
        self.group = group


class _Helped(click.Command):
    """Help in the order in which a person reads it."""

    def get_help(self, ctx: click.Context) -> str:
        """Return the whole help."""
        wide = _WideFormatter(width=ctx.terminal_width, max_width=ctx.max_content_width)
        formatter = ctx.make_formatter() if language() == "en" else wide
        self.format_help(ctx, formatter)
        return formatter.getvalue().rstrip("\n")

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write how the command is called."""
        pieces = " ".join(self.collect_usage_pieces(ctx))
        formatter.write_usage(ctx.command_path, pieces, f"{_text('usage') or 'Usage'}: ")

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write usage, text, commands, options and examples."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        if isinstance(self, click.Group):
            _format_commands(self, formatter)
        self.format_options(ctx, formatter)
        _format_examples(ctx, formatter)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the command does."""
        self.help = _text(_key(ctx)) or self.help
        super().format_help_text(ctx, formatter)

    def get_short_help_str(self, limit: int = 45) -> str:
        """Return the first sentence, whole: a list of commands is no place to cut."""
        del limit
        words = _text((self.full_name or self.name or "").replace("-", "_").replace(" ", "_"))
        first = (words or self.help or "").strip().split("\n\n")[0].replace("\n", " ")
        return re.split(r"[.:] ", first)[0].rstrip(".")

    full_name: str | None = None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, those of one kind together."""
        for group in GROUPS:
            shown = [one for one in self.get_params(ctx) if getattr(one, "group", "") == group]
            records = [record for one in shown if (record := _record(ctx, one))]
            if records:
                with formatter.section(_text(f"options_{group or 'own'}") or "Options"):
                    formatter.write_dl(records)

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 - click's signature
        """Run the command, unless an option stands before it that it does not have."""
        if not isinstance(self, click.Group):
            _refuse_strangers(ctx)
        return super().invoke(ctx)


class Command(_Helped):
    """A command of gpuwl."""


class Group(_Helped, click.Group):
    """A command that leads on to others."""

    command_class = Command
    group_class = type

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command, which then knows by which words it is called."""
        super().add_command(cmd, name)
        if isinstance(cmd, _Helped):
            path = "" if self.name in {None, "cli"} else f"{self.name}_"
            cmd.full_name = f"{path}{name or cmd.name}"


def command(name: str | None = None) -> Callable[[Callable[..., Any]], Command]:
    """Return a decorator that makes a command of gpuwl."""
    return click.command(name, cls=Command)


def _format_commands(group: click.Group, formatter: click.HelpFormatter) -> None:
    rows = [(name, one.get_short_help_str()) for name, one in group.commands.items()]
    with formatter.section(_text("commands") or "Commands"):
        formatter.write_dl(rows)


def _record(ctx: click.Context, parameter: click.Parameter) -> tuple[str, str] | None:
    """Return what a parameter looks like and what it means."""
    if not isinstance(parameter, click.Option):
        return None  # the usage line shows the arguments
    name = str(parameter.name).removeprefix("_click_default_")
    own = f"option_{_key(ctx)}_{name}"
    parameter.help = _text(own) or _text(f"option_{name}") or parameter.help
    return parameter.get_help_record(ctx)


def _format_examples(ctx: click.Context, formatter: click.HelpFormatter) -> None:
    lines = (_text(f"{_key(ctx)}_examples") or "").strip().splitlines()
    if lines:
        with formatter.section(_text("examples") or "Examples"):
            for line in lines:
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")


def _refuse_strangers(ctx: click.Context) -> None:
    """Raise UsageError for an option before the command that means nothing to it."""
    known = {parameter.name for parameter in ctx.command.params}
    strange = sorted(ctx.ensure_object(App).typed() - known)
    if strange:
        words = _listed([f"--{name.replace('_', '-')}" for name in strange])
        raise click.UsageError(f"{ctx.command_path} has no {words}", ctx)


def _listed(words: Sequence[str]) -> str:
    return " and no ".join(words)
