"""The command `check`: the standalone checker in this process."""

import sys

import click

from gpuwl.cli import options
from gpuwl.cli.app import App
from gpuwl.cli.helping import command
from gpuwl.errors import InputError


@command()
@click.argument("file", required=False, metavar="FILE|-")
@click.option("--accept", multiple=True, metavar="VALUE=PATTERN")
@click.option("--ignore", multiple=True, metavar="PATTERN")
@click.option("--require", type=click.IntRange(0, 999_999_999), metavar="N", default=0)
@click.option("--print-script", is_flag=True)
@options.output("text", "json")
@click.pass_obj
def check(  # noqa: PLR0913, PLR0917 - one for each option
    app: App,
    file: str | None,
    accept: tuple[str, ...],
    ignore: tuple[str, ...],
    require: int,
    print_script: bool,
) -> int:
    """Judge a dump of nodes (kubectl get nodes -o json); - reads standard input.

    Prints MISMATCH lines and exits with 1, or OK=<n> and exits with 0; 2 where FILE is no dump.
    """
    app.document_done = True  # the checker prints its own document
    if print_script:
        from gpuwl.lab import check_script

        app.reporter.raw(check_script.render())
        return 0
    if file is None:
        raise click.UsageError("name a file, or - for standard input")
    arguments = ["--output", app.settings.output, "--require", str(require)]
    arguments += [word for pattern in accept for word in ("--accept", pattern)]
    arguments += [word for pattern in ignore for word in ("--ignore", pattern)]
    return _judge([*arguments, "--", file])


def _judge(arguments: list[str]) -> int:
    from gpuwl import checker

    if sys.__stdout__ is None:  # the caller closed it, and what stands in for it leads nowhere
        raise InputError("standard output is closed: the verdict could not be written")
    sys.stdout.flush()
    return checker.main(arguments)
