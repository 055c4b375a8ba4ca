"""The commands that lead on: `help`, `version`."""

import click

from gpuwl import __version__
from gpuwl.cli import options
from gpuwl.cli.app import App
from gpuwl.cli.helping import Group, command


@command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@options.language
@click.pass_context
def help_(context: click.Context, words: tuple[str, ...]) -> int:
    """Show the help of a command."""
    found = context.find_root()
    for word in words:
        group = found.command
        named = group.get_command(found, word) if isinstance(group, Group) else None
        if named is None:
            raise click.UsageError(f"No such command {word!r}.", found)
        found = click.Context(named, info_name=word, parent=found)
    context.ensure_object(App).reporter.raw(found.get_help() + "\n")
    return 0


@command()
@options.output("text", "json")
@click.pass_obj
def version(app: App) -> int:
    """Show gpuwl's version."""
    app.command = "version"
    app.payload["gpuwl"] = __version__
    app.reporter.result(f"gpuwl {__version__}")
    return 0
