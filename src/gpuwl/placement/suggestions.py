"""The fewest moves of nodes that place everything that waits, each tried on the real scheduler."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Protocol

from gpuwl.checker import GPU, PREFIX, VM_PASSTHROUGH
from gpuwl.k8s import objects, pods, quantity
from gpuwl.placement import whatif
from gpuwl.placement.remedies import value_of
from gpuwl.placement.session import Side
from gpuwl.placement.whatif import Change
from gpuwl.placement.world import World

MOST_TRIES = 30
MOST_MOVES = 3


class Asked(Protocol):
    """Who can be asked what if."""

    def after(self, changes: list[Change], *, explain: bool) -> Side:
        """Place the Pods on the changed cluster."""


@dataclass(frozen=True)
class Suggestion:
    """Moves, what they cost, and after how many tries they were found.

    `evicted` are Pods that lose their place and find another; `lost` counts slots by resource name.
    """

    changes: tuple[Change, ...]
    places_all: bool
    tried: int
    evicted: tuple[str, ...] = ()
    lost: dict[str, int] = field(default_factory=dict)


def find(world: World, asked: Asked, side: Side) -> Suggestion:
    """Look for the fewest moves after which every Pod of `side` has a node."""
    if side.all_placed:
        return Suggestion((), places_all=True, tried=0)
    options = list(_options(world, side))
    tried = 0
    for size in range(1, MOST_MOVES + 1):
        for changes in combinations(options, size):
            if len({change.text.partition("=")[0] for change in changes}) < size:
                continue
            if tried == MOST_TRIES:
                return Suggestion((), places_all=False, tried=tried)
            tried += 1
            found = asked.after(list(changes), explain=False)
            if found.all_placed:
                return Suggestion(
                    changes,
                    places_all=True,
                    tried=tried,
                    evicted=tuple(sorted(found.evicted)),
                    lost=_lost(side, found),
                )
    return Suggestion((), places_all=False, tried=tried)


def _lost(before: Side, after: Side) -> dict[str, int]:
    lost = {name: most - after.free.get(name, (0, 0))[0] for name, (most, _) in before.free.items()}
    return {name: count for name, count in lost.items() if count > 0}


def _options(world: World, side: Side) -> Iterator[Change]:
    """Return moves that could help, those first that evict fewest Pods and lose fewest slots."""
    wanted = _wanted(side)
    found: list[tuple[tuple[int, int, str], Change]] = []
    for name, node in world.nodes.items():
        there = {k: quantity.whole(v) for k, v in objects.gpu_resources(node).items()}
        there = {k: count for k, count in there.items() if count}
        if node["spec"].get("unschedulable") and wanted & set(there):
            found.append(((0, 0, name), Change("uncordon", name)))
        for resource in sorted(wanted - set(there)):
            count = _amount(world, resource, there)
            if count:
                change = Change("move", f"{name}={value_of(resource)}:{resource}={count}")
                gone = len(whatif.apply(world, [change]).evicted)
                found.append(((gone, sum(there.values()), name), change))
    return (change for _, change in sorted(found, key=lambda pair: pair[0]))


def _wanted(side: Side) -> set[str]:
    waiting = [one.pod for one in side.outcomes if not one.node]
    asked = {name for pod in waiting for name, n in pods.requests(pod["spec"]).items() if n}
    return {name for name in asked if name.startswith(PREFIX)}


def _amount(world: World, resource: str, there: dict[str, int]) -> int:
    """Return how many of a resource a node would have that has these now: card for card.

    Shares of a card are not cards: how many there are depends on the model, so that nodes with the
    very names tell, and without one no such move is proposed.
    """
    if len(there) != 1:
        return 0
    ((name, count),) = there.items()
    if _is_whole(name) and _is_whole(resource):
        return count
    return _like(world, resource) if _is_whole(name) or _is_whole(resource) else 0


def _like(world: World, resource: str) -> int:
    found = [objects.gpu_resources(node).get(resource) for node in world.nodes.values()]
    counts = [quantity.whole(amount) for amount in found if amount]
    return min((count for count in counts if count), default=0)


def _is_whole(resource: str) -> bool:
    return resource == GPU or value_of(resource) == VM_PASSTHROUGH
