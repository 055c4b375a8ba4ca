"""The commands that lead on: `help`, `version`, `completion`."""

import click

from gpuwl import __version__
from gpuwl.cli import options
from gpuwl.cli.app import App
from gpuwl.cli.helping import Group, command

COMPLETE = "_GPUWL_COMPLETE"
"""The variable by which a shell's script asks for completions; click reads it."""
SHELLS = ("bash", "zsh", "fish")


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


@command()
@click.argument("shell", type=click.Choice(SHELLS))
@options.language
@click.pass_context
def completion(context: click.Context, shell: str) -> int:
    """Print a completion script for a shell."""
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"no completion for {shell}")
    script = made(context.find_root().command, {}, "gpuwl", COMPLETE).source()
    context.ensure_object(App).reporter.raw(script + "\n")
    return 0
