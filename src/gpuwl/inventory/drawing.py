"""The whole picture: lanes one below the other, nodes at the left and the queue beside them."""

from dataclasses import dataclass
from itertools import pairwise

from gpuwl.inventory.lanes import Lane, Panel
from gpuwl.inventory.lanes import lanes as lanes_of
from gpuwl.inventory.model import Inventory, Queue, Use, Workload
from gpuwl.inventory.palette import key
from gpuwl.inventory.panels import Size, panel, size_for
from gpuwl.inventory.shapes import Box, Shape, Squares, Words, cells, shortened, squares
from gpuwl.inventory.words import counted, figures
from gpuwl.texts import text

WIDTH = 1120
QUEUE = 250
"""Width of the queue at the right of each lane."""
MARGIN = 16
WAITERS = 6
"""Workloads of a queue that are named; the others are counted."""
MOST_WAITING = 17
"""Slots of one workload in the queue that are drawn."""


@dataclass(frozen=True)
class Drawing:
    """Shapes on a ground of this size, from the upper left corner."""

    width: float
    height: float
    shapes: list[Shape]


def draw(found: Inventory, use: Use | None = None, headline: tuple[str, ...] = ()) -> Drawing:
    """Return the picture of the split; `headline` are lines above it."""
    lanes = lanes_of(found, use)
    size = size_for(sum(len(lane.panels) for lane in lanes))
    shapes: list[Shape] = []
    y: float = MARGIN
    for number, line in enumerate(headline):
        y += 26 if number == 0 else 19
        shapes.append(Words(MARGIN, y, line, "title" if number == 0 else "small dim"))
    for lane in lanes:
        drawn, height = _lane(lane, size, y + 8)
        shapes += drawn
        y += height + 8
    drawn, height = _legend(lanes, y + 10)
    return Drawing(WIDTH, round(y + 10 + height + MARGIN), shapes + drawn)


def _lane(lane: Lane, size: Size, top: float) -> tuple[list[Shape], float]:
    head = _head(lane, top + 32)
    nodes, nodes_height = _flow(lane, size, top + 46)
    queue, queue_height = _queue(lane, top + 46)
    height = 46 + max(nodes_height, queue_height, 8) + 14
    ground: list[Shape] = [
        Box(MARGIN, top + 6, WIDTH - 2 * MARGIN, height - 6, "lane"),
        Box(MARGIN, top + 6, 5, height - 6, f"main-{key(lane.use)}"),
    ]
    return [*ground, *head, *nodes, *queue], height


def _head(lane: Lane, y: float) -> list[Shape]:
    left = MARGIN + 18
    if lane.row is None:
        words = text("inventory.lane_nothing", nodes=len(lane.panels))
        return [Words(left, y, words, "use")]
    use = text(f"inventory.use_{key(lane.use)}")
    name = shortened(lane.row.resource, 50)
    return [
        Words(left, y, use, f"use text-{key(lane.use)}", lane.row.resource, name),
        Words(WIDTH - MARGIN - 14, y, figures(lane.row), "figures"),
    ]


def _flow(lane: Lane, size: Size, top: float) -> tuple[list[Shape], float]:
    """Let nodes flow from left to right and on to the next row, as high as its highest."""
    gap = size.padding + size.gap
    room = WIDTH - 2 * MARGIN - 18 - (QUEUE if lane.queue else 0)
    columns = max(1, int((room + gap) // (size.width + gap)))
    starts = [*range(0, len(lane.panels), columns), len(lane.panels)]
    shapes: list[Shape] = []
    y = top
    for start, end in pairwise(starts):
        drawn, height = _row(lane, lane.panels[start:end], size, y)
        shapes += drawn
        y += height + gap
    return shapes, y - gap - top if lane.panels else 0


def _row(lane: Lane, panels: tuple[Panel, ...], size: Size, y: float) -> tuple[list[Shape], float]:
    shapes: list[Shape] = []
    x: float = MARGIN + 18
    highest = 0.0
    for one in panels:
        drawn, height = panel(one, lane, size, x, y)
        shapes += drawn
        highest = max(highest, height)
        x += size.width + size.padding + size.gap
    return shapes, highest


def _queue(lane: Lane, top: float) -> tuple[list[Shape], float]:
    """Draw who waits: a box with a broken line for each slot that is asked for."""
    if not lane.queue or lane.row is None:
        return [], 0
    left = WIDTH - MARGIN - QUEUE + 12
    shapes: list[Shape] = [Words(left, top + 10, text("inventory.queue"), "small strong")]
    y = top + 16
    for who, queue in lane.queue[:WAITERS]:
        shapes += _waiter(lane, who, queue, left, y)
        y += 40
    hidden = len(lane.queue) - WAITERS
    if hidden > 0:
        y += 14
        shapes.append(Words(left, y, text("inventory.more", count=hidden), "small dim"))
    return shapes, y - top


def _waiter(lane: Lane, who: Workload, queue: Queue, left: float, y: float) -> list[Shape]:
    shown = min(queue.slots, MOST_WAITING)
    side, step = (13, 16) if shown <= 12 else (9, 11)
    places = [(left + n * step, y + 3) for n in range(shown)]
    count = f"/ {queue.slots}" if queue.slots > shown else ""
    title = f"{who.namespace}/{who.name}\n{queue.message or ''}".strip()
    css = f"waits waits-{key(lane.use)}"
    name = shortened(f"{who.namespace}/{who.name.partition('/')[2]}", 26)
    asks = counted("inventory.asks", queue.pods, asked=queue.slots)
    return [
        Squares(squares(places, side), css, title),
        Words(left + shown * step + 3, y + 12, count, "small"),
        Words(left, y + 30, f"{name} · {asks}", "small", title),
    ]


def _legend(lanes: list[Lane], y: float) -> tuple[list[Shape], float]:
    """Explain fillings, those that occur."""
    runs = [(run.what, lane) for lane in lanes for one in lane.panels for run in one.runs]
    entries = {what: f"{what} {what}-{key(lane.use)}" for what, lane in reversed(runs)}
    if "held" in entries:
        entries["held"] = "held " + next(f"{key(la.use)}-0" for what, la in runs if what == "held")
    if waiting := next((lane for lane in lanes if lane.queue), None):
        entries["waits"] = f"waits waits-{key(waiting.use)}"
    shapes: list[Shape] = []
    x: float = MARGIN
    for what in ("held", "free", "closed", "unknown", "waits"):
        if what in entries:
            words = text(f"inventory.legend_{what}")
            shapes.append(Squares(squares([(x, y)], 12), entries[what]))
            shapes.append(Words(x + 18, y + 10, words, "small"))
            x += 18 + 6 * cells(words) + 22
    return shapes, 16 if shapes else 0
