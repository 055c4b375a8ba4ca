"""The split as lanes: one for each resource, with its nodes and its queue, before it is drawn."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from gpuwl.inventory import sums
from gpuwl.inventory.model import Inventory, Mark, Node, Queue, Supply, Use, Workload
from gpuwl.inventory.palette import SHADES


@dataclass(frozen=True)
class Run:
    """Equal slots of one node side by side: `what` is held, free, closed or unknown."""

    what: str
    slots: int
    holder: Workload | None = None


@dataclass(frozen=True)
class Panel:
    """One node in a lane."""

    node: Node
    runs: tuple[Run, ...]
    over: int

    @property
    def slots(self) -> int:
        """All its slots."""
        return sum(run.slots for run in self.runs)


@dataclass(frozen=True)
class Lane:
    """One resource: figures, nodes, who waits, and which holder has which shade.

    `row` is None for the nodes whose label promises GPUs and that advertise none.
    """

    use: Use
    row: sums.ResourceRow | None
    panels: tuple[Panel, ...]
    queue: tuple[tuple[Workload, Queue], ...]
    shades: dict[Workload, int]


def lanes(found: Inventory, use: Use | None = None) -> list[Lane]:
    """Return the lanes in the order of the table."""
    made = [_lane(found, row) for row in sums.by_resource(found, use)]
    nothing = [node for node in found.in_view() if Mark.NOTHING in node.marks]
    if nothing and use is None:
        panels = tuple(Panel(node, (), 0) for node in nothing)
        made.append(Lane(Use.UNKNOWN, None, panels, (), {}))
    return made


def _lane(found: Inventory, row: sums.ResourceRow) -> Lane:
    name = row.resource
    panels = tuple(
        Panel(node, tuple(_runs(node, supply)), supply.over or 0)
        for node in found.in_view()
        if (supply := node.supplies.get(name)) and (supply.advertised != 0 or supply.requested)
    )
    queue = [(who, queue) for (wanted, who), queue in found.queues.items() if wanted == name]
    queue.sort(key=lambda pair: (-pair[1].slots, pair[0]))
    return Lane(row.use, row, panels, tuple(queue), _shades(panels))


def _runs(node: Node, supply: Supply) -> Iterator[Run]:
    """Yield what each slot is; where more is asked for than is there, all are held."""
    if supply.advertised is None or supply.requested is None:
        yield Run("unknown", supply.advertised or 1)
        return
    room = supply.advertised
    for holder, share in sorted(supply.holders.items(), key=lambda pair: (-pair[1].slots, pair[0])):
        taken = min(room, share.slots)
        if taken:
            yield Run("held", taken, holder)
        room -= taken
    if room:
        yield Run("free" if node.is_open else "closed", room)


def _shades(panels: tuple[Panel, ...]) -> dict[Workload, int]:
    """Give the largest holders a shade each; who is not in it gets the last one."""
    held: Counter[Workload] = Counter()
    for panel in panels:
        for run in panel.runs:
            if run.holder:
                held[run.holder] += run.slots
    largest = sorted(held, key=lambda who: (-held[who], who))[: SHADES - 1]
    return {who: number for number, who in enumerate(largest)}
