"""The top level command and what hangs below it."""

import click

from gpuwl import __version__
from gpuwl.cli import (
    checking,
    inventorying,
    lab,
    leading,
    local,
    options,
    placing,
    resetting,
    reviewing,
    verifying,
)
from gpuwl.cli.helping import Group

HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=Group, context_settings=HELP)
@options.everywhere
@click.version_option(__version__, message="%(prog)s %(version)s")
def cli() -> None:
    """Run the lab, judge dumps of nodes, look at a cluster's split. `help.toml` has the words."""


for command in (
    lab.run,
    lab.step,
    lab.steps,
    lab.explain,
    verifying.verify,
    resetting.reset,
    checking.check,
    reviewing.review,
    inventorying.inventory,
    placing.place,
    local.local,
    leading.help_,
    leading.version,
    leading.completion,
):
    cli.add_command(command)
