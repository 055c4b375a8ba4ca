"""What a shell can complete beyond commands and options."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def step_numbers(
    _context: click.Context, _parameter: click.Parameter, typed: str
) -> "list[CompletionItem]":
    """Complete the number of a step, with its title as help."""
    from click.shell_completion import CompletionItem

    from gpuwl.steps import STEPS

    return [
        CompletionItem(str(step.number), help=step.title)
        for step in STEPS
        if str(step.number).startswith(typed)
    ]


def components(
    _context: click.Context, _parameter: click.Parameter, typed: str
) -> "list[CompletionItem]":
    """Complete the name of a component of the local control plane."""
    from gpuwl.controlplane.binaries.cache import NAMES

    return _matching(NAMES, typed)


def plane_names(
    _context: click.Context, _parameter: click.Parameter, typed: str
) -> "list[CompletionItem]":
    """Complete the name of a local control plane of this user."""
    from gpuwl.controlplane import state

    return _matching(state.names(), typed)


def _matching(names: Iterable[str], typed: str) -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in names if name.startswith(typed)]
