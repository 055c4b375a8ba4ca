"""The README's tables and the code say the same."""

import re
import signal
from pathlib import Path

import click

from gpuwl import errors
from gpuwl.cli import commands, entry, local
from gpuwl.steps import STEPS

REPOSITORY = Path(__file__).parents[2]
README = (REPOSITORY / "README.md").read_text()


def rows(header: str) -> list[list[str]]:
    """Return the cells of the table that follows a header line."""
    body = README.split(header, 1)[1].split("\n\n", 1)[0].strip().splitlines()[1:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in body]


def test_the_step_table() -> None:
    expected = [[str(s.number), s.title, ", ".join(s.artifacts)] for s in STEPS]
    assert rows("| step | shows | writes |") == expected


def test_the_exit_codes() -> None:
    listed = {int(code) for row in rows("| code | when |") for code in row[0].split(", ")}
    raised = {
        error.exit_code
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, errors.GpuwlError)
    }
    signals = {128 + signal.SIGTERM, 128 + signal.SIGHUP}
    assert listed == raised | signals | {0, entry.BUG, entry.INTERRUPTED, entry.PIPE_CLOSED}


def test_the_option_table() -> None:
    listed = {
        row[0].strip("`").replace("\\|", "|"): row[1] for row in rows("| option | variable | |")
    }
    expected = {
        _usage(option): option.envvar
        for option in commands.cli.params
        if isinstance(option, click.Option) and option.envvar
    }
    assert {re.sub("`, `", ", ", usage): name for usage, name in listed.items()} == expected


def _usage(option: click.Option) -> str:
    if option.is_flag:
        return ", ".join(option.opts)
    choices = option.type.choices if isinstance(option.type, click.Choice) else ()
    metavar = option.metavar or "|".join(map(str, choices))
    return f"{option.opts[0]} {metavar}"


def test_every_command_is_named() -> None:
    for command in commands.cli.commands:
        assert f"gpuwl {command}" in README
    for command in local.local.commands:
        assert f"gpuwl local {command}" in README


def test_the_rights_are_those_that_are_tested() -> None:
    assert f"```yaml\n{(REPOSITORY / 'docs/clusterrole.yaml').read_text()}```\n" in README
