"""One pass over Nodes, then Pods: what is kept of each is a few numbers."""

from collections.abc import Callable

from gpuwl.errors import InputError
from gpuwl.inventory import nodes, pods
from gpuwl.inventory.model import Inventory, Mark, Node, Queue, Share, Supply
from gpuwl.inventory.slices import Claims
from gpuwl.k8s.objects import Object

Selects = Callable[[dict[str, str]], bool]


def every_node(labels: dict[str, str]) -> bool:  # noqa: ARG001 - a selector that selects all
    """Select every node."""
    return True


def see_pods(found: Inventory) -> None:
    """Take note that Pods are in view after all: what no Pod asks for is then free."""
    found.pods = 0
    for node in found.nodes.values():
        for supply in node.supplies.values():
            supply.requested = 0


def finished(found: Inventory) -> Inventory:
    """Mark what shows only once all Pods are in."""
    for node in found.nodes.values():
        if any(supply.over for supply in node.supplies.values()):
            node.marks.add(Mark.OVERCOMMITTED)
    return found


def add_node(found: Inventory, item: Object, selects: Selects = every_node) -> None:
    """Add a Node; raises InputError for one that is there already."""
    node = nodes.read(item, knows_pods=found.knows_pods, selects=selects)
    if node.name in found.nodes:
        raise InputError(f"the node {node.name} is there twice")
    found.nodes[node.name] = node
    for name in node.supplies:
        _know(found, name)


def add_pod(found: Inventory, item: Object, claims: Claims) -> None:
    """Add a Pod, after all Nodes and all that DRA has."""
    found.pods = (found.pods or 0) + 1
    waiting = pods.waits_with_claims(item)
    if waiting and not claims.wait(found, item, waiting):
        found.unclaimed += 1
    ask = pods.read(item)
    if ask is None:
        return
    node = found.nodes.get(ask.node) if ask.node else None
    for name, slots in ask.slots.items():
        _know(found, name)
        if node:
            _hold(node, name, slots, ask)
        elif ask.node:
            _count(found.strays.setdefault(name, Share()), slots)
        else:
            _wait(found, name, slots, ask)


def _know(found: Inventory, name: str) -> None:
    if name not in found.uses:
        found.uses[name] = nodes.use_of(name)


def _hold(node: Node, name: str, slots: int, ask: pods.Ask) -> None:
    supply = node.supplies.get(name)
    if supply is None:
        supply = node.supplies[name] = Supply(0, 0)
    supply.requested = (supply.requested or 0) + slots
    _count(supply.holders.setdefault(ask.workload, Share()), slots)


def _wait(found: Inventory, name: str, slots: int, ask: pods.Ask) -> None:
    queue = found.queues.setdefault((name, ask.workload), Queue())
    _count(queue, slots)
    queue.gated += ask.gated
    queue.selects = queue.selects or ask.selects
    queue.message = queue.message or ask.message


def _count(share: Share, slots: int) -> None:
    share.pods += 1
    share.slots += slots
