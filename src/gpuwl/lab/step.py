"""What a step is: data, and one function."""

from collections.abc import Callable
from dataclasses import dataclass

from gpuwl.lab.context import Context
from gpuwl.lab.names import LabNode
from gpuwl.texts import catalogue, text

Nodes = tuple[LabNode, LabNode, LabNode]


@dataclass(frozen=True)
class Requirement:
    """Something that an earlier step provides; `holds` only reads the cluster.

    `need` is the key of its words in the catalogue `lab`, `names` what is put into them.
    """

    need: str
    provided_by: int
    holds: Callable[[Context], bool]
    names: tuple[tuple[str, str], ...] = ()

    @property
    def what(self) -> str:
        """What is required, in the language that is spoken."""
        return text(f"lab.need_{self.need}", **dict(self.names))


@dataclass(frozen=True)
class Step:
    """One step of the lab.

    `artifacts` are the files it writes, relative to the root. `by_hand` returns the shell lines
    that do the same with kubectl, run in the root. `changes_nodes` and `makes_pods` say what it does
    to a cluster. The words of a step are in the catalogues `lab` and `explain`, by its slug.
    """

    number: int
    slug: str
    requires: tuple[Requirement, ...]
    artifacts: tuple[str, ...]
    run: Callable[[Context], None]
    by_hand: Callable[[Nodes], str]
    changes_nodes: bool = False
    makes_pods: bool = False

    @property
    def title(self) -> str:
        """The title in the language that is spoken."""
        return text(f"lab.title_{self.slug}")

    @property
    def english_title(self) -> str:
        """The title as files have it, whatever language is spoken."""
        return catalogue("en", "lab")[f"title_{self.slug}"]
