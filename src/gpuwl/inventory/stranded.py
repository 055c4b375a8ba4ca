"""The verdict of the lab: one use has a queue while another has slots that nobody asks for."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpuwl.inventory.model import Inventory, Mark, Node, Queue, Supply, Use
from gpuwl.inventory.sums import USES

CONVERTIBLE = (Use.CONTAINER, Use.PASSTHROUGH, Use.VGPU)
"""Uses that a node's label picks: a node can change from one to another."""


@dataclass(frozen=True)
class Idle:
    """Free slots of another use: how many, and on which nodes, most first."""

    use: Use
    resource: str
    free: int
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class Stranded:
    """A queue beside free slots of other uses.

    `pods` wait for `asked` slots of `resource`; `own` are free under that very name. `message` is what
    the scheduler said of one of the Pods. `move` is the argument of `gpuwl place --move` that asks
    the scheduler whether one of the idle nodes would help, None where no node can be moved.
    """

    use: Use
    resource: str
    pods: int
    asked: int
    own: int
    idle: tuple[Idle, ...]
    move: str | None
    message: str | None


def stranded(found: Inventory, use: Use | None = None) -> list[Stranded]:
    """Return the queues that stand beside free slots of other uses, the longest first."""
    idle = list(_idle(found))
    queues = _queues(found)
    verdicts = [
        one
        for name, queue in queues.items()
        if use in {None, found.uses[name]} and (one := _judged(found, name, queue, idle))
    ]
    return sorted(verdicts, key=lambda one: (-one.asked, one.resource))


def _judged(found: Inventory, name: str, queue: Queue, idle: list[Idle]) -> Stranded | None:
    use = found.uses[name]
    others = [one for one in idle if one.use != use and use in CONVERTIBLE]
    if not others:
        return None
    own = sum(one.free for one in idle if one.resource == name)
    move = _move(found, name, queue, others)
    return Stranded(use, name, queue.pods, queue.slots, own, tuple(others), move, queue.message)


def _queues(found: Inventory) -> dict[str, Queue]:
    """Return the queue of each resource; of what its workloads say, the longest one's words count."""
    queues: dict[str, Queue] = {}
    for (name, _), queue in sorted(found.queues.items(), key=lambda item: -item[1].slots):
        to = queues.setdefault(name, Queue(selects=queue.selects))
        to.pods += queue.pods
        to.slots += queue.slots
        to.message = to.message or queue.message
    return queues


def _idle(found: Inventory) -> Iterator[Idle]:
    names = sorted(found.uses, key=lambda name: (USES.index(found.uses[name]), name))
    for name in names:
        free = [(node, supply.left) for node, supply in _open(found, name) if supply.left]
        if free and found.uses[name] in CONVERTIBLE:
            free.sort(key=lambda pair: -(pair[1] or 0))
            nodes = tuple(node.name for node, _ in free)
            yield Idle(found.uses[name], name, sum(amount or 0 for _, amount in free), nodes)


def _open(found: Inventory, name: str) -> list[tuple[Node, Supply]]:
    nodes = (node for node in found.in_view() if node.is_open)
    return [(node, node.supplies[name]) for node in nodes if name in node.supplies]


def _move(found: Inventory, name: str, queue: Queue, others: list[Idle]) -> str | None:
    """Return NODE=USE:NAME=CARDS for the node whose change costs least.

    That is one of the use that the Pods select, then one whose cards are known, then one where the
    fewest are held.
    """
    nodes = [(idle, found.nodes[node]) for idle in others for node in idle.nodes]
    ranked = sorted(nodes, key=lambda pair: _cost(pair[0], pair[1], queue.selects))
    for idle, node in ranked:
        cards = _cards(idle, node)
        if cards and Mark.TWICE not in node.marks:
            return f"{node.name}={found.uses[name]}:{name}={cards}"
    return None


def _cost(idle: Idle, node: Node, selects: str | None) -> tuple[bool, bool, int, str]:
    held = sum(supply.used or 0 for supply in node.supplies.values())
    return (selects is not None and idle.use != selects, idle.use is Use.VGPU, held, node.name)


def _cards(idle: Idle, node: Node) -> int:
    """Return the node's whole cards; of a node with shares at least one is known."""
    return 1 if idle.use is Use.VGPU else node.supplies[idle.resource].advertised or 0
