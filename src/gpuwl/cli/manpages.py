"""Manual pages, one for each command, from the same words as the help: man(7) macros.

`make render` writes them to docs/man; the wheel installs them below share/man.
"""

from collections.abc import Iterator
from pathlib import Path

import click

from gpuwl import __version__
from gpuwl.cli.helping import Group


def pages(command: click.Command) -> dict[str, str]:
    """Return the pages of a command and of what hangs below it, by file name (`gpuwl-run.1`)."""
    top = click.Context(command, info_name="gpuwl", max_content_width=10_000, terminal_width=10_000)
    return {f"{name.replace(' ', '-')}.1": _page(name, context) for name, context in _all(top)}


def write(command: click.Command, folder: Path) -> None:
    """Write the pages into a folder, in place of those that are there."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.1"):
        old.unlink()
    for name, page in pages(command).items():
        folder.joinpath(name).write_text(page, encoding="utf-8")


def _all(context: click.Context) -> Iterator[tuple[str, click.Context]]:
    yield context.command_path, context
    if isinstance(context.command, Group):
        for name, command in context.command.commands.items():
            yield from _all(click.Context(command, info_name=name, parent=context))


def _page(name: str, context: click.Context) -> str:
    """Turn the sections of a help text into those of a manual page."""
    title = name.replace(" ", "-")
    short = context.command.get_short_help_str()
    if name == "gpuwl":
        short = "see where GPU workloads can go, and judge labels and advertised resources"
    usage, *blocks = context.get_help().split("\n\n")
    lines = [
        f'.TH {title.upper()} 1 "" "gpuwl {__version__}" "gpuwl"',
        ".SH NAME",
        f"{_escaped(title)} \\- {_escaped(short)}",
        ".SH SYNOPSIS",
        _escaped(usage.removeprefix("Usage: ")),
        ".SH DESCRIPTION",
    ]
    for block in blocks:
        lines += _block(block)
    return "\n".join([*lines, *_see_also(name, context)]) + "\n"


def _block(block: str) -> list[str]:
    head, *rest = block.splitlines()
    if head.startswith(" "):
        return [".PP", *(_escaped(line.strip()) for line in (head, *rest))]
    return [f".SH {head.rstrip(':').upper()}", ".nf", *map(_escaped, rest), ".fi"]


def _see_also(name: str, context: click.Context) -> list[str]:
    below = context.command.commands if isinstance(context.command, Group) else ()
    others = [f"{name} {one}" for one in below] or [name.rpartition(" ")[0] or "gpuwl"]
    return [".SH SEE ALSO", *(f".BR {_escaped(o.replace(' ', '-'))} (1)" for o in others)]


def _escaped(text: str) -> str:
    """Escape what roff reads as its own: backslashes, hyphens, a dot or quote that begins a line."""
    words = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{words}" if words[:1] in {".", "'"} else words


if __name__ == "__main__":
    import sys

    from gpuwl.cli.commands import cli

    write(cli, Path(sys.argv[1]))
