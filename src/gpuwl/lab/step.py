"""What a step is: data, and one function."""

from collections.abc import Callable
from dataclasses import dataclass

from gpuwl.lab.context import Context
from gpuwl.lab.names import LabNode

Nodes = tuple[LabNode, LabNode, LabNode]


@dataclass(frozen=True)
class Requirement:
    """Something that an earlier step provides; `holds` only reads the cluster."""

    what: str
    provided_by: int
    holds: Callable[[Context], bool]


@dataclass(frozen=True)
class Why:
    """What `gpuwl explain` tells: why the step matters, what to look at, what goes wrong."""

    matters: str
    look: str
    pitfalls: str


@dataclass(frozen=True)
class Step:
    """One step of the lab.

    `artifacts` are the files it writes, relative to the root. `by_hand` returns the shell lines
    that do the same with kubectl, run in the root. `changes_nodes` and `makes_pods` say what it does
    to a cluster.
    """

    number: int
    slug: str
    title: str
    why: Why
    requires: tuple[Requirement, ...]
    artifacts: tuple[str, ...]
    run: Callable[[Context], None]
    by_hand: Callable[[Nodes], str]
    changes_nodes: bool = False
    makes_pods: bool = False
