"""The rows of every table: per resource, node, namespace and workload.

Of each row `advertised = used + free + closed`, so `0 <= used <= advertised`, and what Pods ask for
beyond that is `over`. None is unknown.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpuwl.inventory.model import Amount, Inventory, Mark, Node, Queue, Share, Supply, Use, total

USES = tuple(Use)


@dataclass(frozen=True)
class ResourceRow:
    """One resource in the whole cluster.

    `nodes` advertise it. `free` can be had by new Pods, `closed` is left on nodes that take none
    (cordoned, not ready), `largest` is the largest free piece on one node. `waiting` Pods, `gated`
    of them behind scheduling gates, ask for `asked` slots.
    """

    use: Use
    resource: str
    nodes: int
    advertised: Amount
    requested: Amount
    used: Amount
    over: Amount
    free: Amount
    closed: Amount
    largest: Amount
    waiting: Amount
    asked: Amount
    gated: Amount


@dataclass(frozen=True)
class NodeRow:
    """One resource on one node."""

    node: str
    label: str | None
    use: Use
    resource: str
    advertised: Amount
    requested: Amount
    used: Amount
    over: Amount
    free: Amount
    closed: Amount
    marks: tuple[str, ...]


@dataclass(frozen=True)
class HolderRow:
    """What a namespace, or one workload in it, holds of a resource and waits for."""

    namespace: str
    workload: str | None
    use: Use
    resource: str
    pods: int
    held: int
    waiting: int
    asked: int
    gated: int


def by_resource(found: Inventory, use: Use | None = None) -> list[ResourceRow]:
    """Return a row for each resource that a node advertises or a Pod asks for."""
    supplies: dict[str, list[tuple[Node, Supply]]] = defaultdict(list)
    for node in found.in_view():
        for name, supply in node.supplies.items():
            supplies[name].append((node, supply))
    queues = _queues(found)
    names = (name for name in found.uses if name in supplies or name in queues)
    return [
        _resource_row(found, name, supplies.get(name, []), queues.get(name, Queue()))
        for name in _in_order(found, names, use)
    ]


def by_node(found: Inventory, use: Use | None = None) -> list[NodeRow]:
    """Return a row for each resource of each node, in the order of the input."""
    return [
        _node_row(found, node, name)
        for node in found.in_view()
        for name in _in_order(found, node.supplies, use)
    ]


def by_holder(found: Inventory, use: Use | None = None, *, workloads: bool) -> list[HolderRow]:
    """Return a row for each resource of each namespace, or of each workload."""
    held: dict[tuple[str, str | None, str], Share] = defaultdict(Share)
    asked: dict[tuple[str, str | None, str], Queue] = defaultdict(Queue)
    for node in found.in_view():
        for name, supply in node.supplies.items():
            for (namespace, workload), share in supply.holders.items():
                _add(held[namespace, workload if workloads else None, name], share)
    for (name, (namespace, workload)), queue in found.queues.items():
        _add_queue(asked[namespace, workload if workloads else None, name], queue)
    rows = [
        _holder_row(found, key, held.get(key, Share()), asked.get(key, Queue()))
        for key in {**held, **asked}
        if use in {None, found.uses[key[2]]}
    ]
    return sorted(rows, key=lambda row: (row.namespace, row.workload or "", *_order(row)))


def _in_order(found: Inventory, names: Iterable[str], use: Use | None) -> list[str]:
    wanted = [name for name in names if use in {None, found.uses[name]}]
    return sorted(wanted, key=lambda name: (USES.index(found.uses[name]), name))


def _order(row: HolderRow) -> tuple[int, str]:
    return USES.index(row.use), row.resource


def _queues(found: Inventory) -> dict[str, Queue]:
    queues: dict[str, Queue] = {}
    for (name, _), queue in found.queues.items():
        _add_queue(queues.setdefault(name, Queue()), queue)
    return queues


def _add(to: Share, share: Share) -> None:
    to.pods += share.pods
    to.slots += share.slots


def _add_queue(to: Queue, queue: Queue) -> None:
    _add(to, queue)
    to.gated += queue.gated


def _resource_row(
    found: Inventory, name: str, supplies: Sequence[tuple[Node, Supply]], queue: Queue
) -> ResourceRow:
    left = [(node.is_open, supply.left) for node, supply in supplies]
    free = [amount for is_open, amount in left if is_open]
    known = all(amount is not None for _, amount in left)
    seen = found.knows_pods
    return ResourceRow(
        use=found.uses[name],
        resource=name,
        nodes=sum(supply.advertised != 0 for _, supply in supplies),
        advertised=total(supply.advertised for _, supply in supplies),
        requested=total(supply.requested for _, supply in supplies),
        used=total(supply.used for _, supply in supplies),
        over=total(supply.over for _, supply in supplies),
        free=total(free) if known else None,
        closed=total(amount for is_open, amount in left if not is_open) if known else None,
        largest=max((amount or 0 for amount in free), default=0) if known else None,
        waiting=queue.pods if seen else None,
        asked=queue.slots if seen else None,
        gated=queue.gated if seen else None,
    )


def _node_row(found: Inventory, node: Node, name: str) -> NodeRow:
    supply = node.supplies[name]
    known = supply.left is not None
    return NodeRow(
        node=node.name,
        label=node.label,
        use=found.uses[name],
        resource=name,
        advertised=supply.advertised,
        requested=supply.requested,
        used=supply.used,
        over=supply.over,
        free=supply.left if node.is_open or not known else 0,
        closed=supply.left if not node.is_open or not known else 0,
        marks=tuple(mark for mark in Mark if mark in node.marks),
    )


def _holder_row(
    found: Inventory, key: tuple[str, str | None, str], held: Share, queue: Queue
) -> HolderRow:
    namespace, workload, name = key
    return HolderRow(
        namespace=namespace,
        workload=workload,
        use=found.uses[name],
        resource=name,
        pods=held.pods,
        held=held.slots,
        waiting=queue.pods,
        asked=queue.slots,
        gated=queue.gated,
    )
