"""What nodes have of each GPU resource, who holds it and who waits: plain data that `collect` fills.

An amount is a whole number of slots (cards, shares of cards, slices); None is an amount that cannot
be known from what was given, and never stands for 0.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

Amount = int | None


class Use(StrEnum):
    """What a resource is for; the order is that of every table."""

    CONTAINER = "container"
    SLICE = "container slice"
    PASSTHROUGH = "vm-passthrough"
    VGPU = "vm-vgpu"
    DRA = "DRA class"
    UNKNOWN = "unknown"


class Mark(StrEnum):
    """What is worth knowing about a node; the order is that of every list."""

    OVERCOMMITTED = "over-committed"
    TWICE = "advertises-twice"
    UNREADABLE = "unreadable-amount"
    NOTHING = "advertises-nothing"
    NOT_READY = "not-ready"
    CORDONED = "cordoned"
    STALE = "stale-labels"
    UNLABELLED = "unlabelled"


class Workload(NamedTuple):
    """Who asks: a namespace and the Pod's owner as `Kind/name`, `Pod/name` where nobody owns it."""

    namespace: str
    name: str


@dataclass(slots=True)
class Share:
    """What the Pods of one workload ask together: number of Pods, number of slots."""

    pods: int = 0
    slots: int = 0


@dataclass(slots=True)
class Queue(Share):
    """Pods of one workload that have no node.

    `gated` of them have scheduling gates. `selects` is the label value that their nodeSelector asks
    for, `message` what the scheduler said of one of them.
    """

    gated: int = 0
    selects: str | None = None
    message: str | None = None


@dataclass(slots=True)
class Supply:
    """One resource on one node: what it advertises, and who of the Pods on it asked for how much.

    `requested` is what they ask together, None where the Pods are not in view.
    """

    advertised: Amount
    requested: Amount
    holders: dict[Workload, Share] = field(default_factory=dict)

    @property
    def used(self) -> Amount:
        """The part of `advertised` that is asked for; the rest of `requested` is `over`."""
        if self.advertised is None or self.requested is None:
            return None
        return min(self.advertised, self.requested)

    @property
    def over(self) -> Amount:
        """How much more is asked for than is there."""
        if self.advertised is None or self.requested is None:
            return None
        return max(0, self.requested - self.advertised)

    @property
    def left(self) -> Amount:
        """What nobody asks for."""
        if self.advertised is None or self.requested is None:
            return None
        return max(0, self.advertised - self.requested)


@dataclass(slots=True)
class Node:
    """One node: its label value, its marks, and its resources by name.

    `finding` is what `gpuwl check` says of it. `selected` is False where -l leaves it out.
    """

    name: str
    label: str | None = None
    marks: set[Mark] = field(default_factory=set)
    supplies: dict[str, Supply] = field(default_factory=dict)
    finding: str | None = None
    selected: bool = True

    @property
    def is_open(self) -> bool:
        """Tell whether the scheduler gives it new Pods: it is ready and not cordoned."""
        return not self.marks & {Mark.CORDONED, Mark.NOT_READY}


@dataclass(slots=True)
class Inventory:
    """All of a cluster's GPUs.

    `queues` has the waiting Pods by resource and workload, `strays` the slots that Pods hold on
    nodes that are not in view, by resource. `uses` knows the use of each resource that was seen.
    `unclaimed` Pods wait with claims that are not in view. `refused` is why ResourceSlices are not.
    """

    nodes: dict[str, Node] = field(default_factory=dict)
    queues: dict[tuple[str, Workload], Queue] = field(default_factory=dict)
    strays: dict[str, Share] = field(default_factory=dict)
    uses: dict[str, Use] = field(default_factory=dict)
    pods: Amount = None
    has_slices: bool = False
    unclaimed: int = 0
    refused: str | None = None

    @property
    def knows_pods(self) -> bool:
        """Tell whether Pods are in view; without them nothing is known of requests and queues."""
        return self.pods is not None

    def in_view(self) -> list[Node]:
        """Return the nodes with GPUs, or with a label that promises some, that were asked for."""
        nodes = self.nodes.values()
        return [one for one in nodes if one.selected and (one.supplies or one.label is not None)]


def total(amounts: Iterable[Amount]) -> Amount:
    """Return the sum; None where a part of it is unknown."""
    result = 0
    for amount in amounts:
        if amount is None:
            return None
        result += amount
    return result
