"""The top level command and what hangs below it."""

import click

from gpuwl import __version__
from gpuwl.cli import checking, lab, local, resetting, verifying
from gpuwl.cli.options import consent, lab_nodes, plane, shared_or_junit

HELP = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(context_settings=HELP)
@shared_or_junit
@plane
@lab_nodes
@consent
@click.version_option(__version__, message="%(prog)s %(version)s")
def cli() -> None:
    """A lab on the GPU Operator's sandbox workloads, on a real kube-scheduler.

    A node label picks what the operator puts on a node and so the name of the GPU resource that
    the node advertises. The scheduler compares names as strings, so the inventory splits. The lab
    shows it in eight steps; the checker finds nodes whose label and resource disagree.

    Start with: gpuwl run --all --local
    """


for command in (
    lab.run,
    lab.step,
    lab.steps,
    lab.explain,
    checking.check,
    verifying.verify,
    resetting.reset,
    local.local,
):
    cli.add_command(command)
