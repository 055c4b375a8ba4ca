"""One node as shapes, in three sizes: with its words, with its name, or as squares alone."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpuwl.inventory.lanes import Lane, Panel, Run
from gpuwl.inventory.palette import SHADES, key
from gpuwl.inventory.shapes import Box, Shape, Squares, Words, shortened, squares, wrapped
from gpuwl.texts import text

MOST_SQUARES = 64
"""Slots of one node that are drawn one by one; more are drawn as shares of a bar."""
HOLDERS = 3
FINDING_LINES = 3


@dataclass(frozen=True)
class Size:
    """How large nodes are drawn, in units of the drawing: side of a square, gap, squares a row.

    `name` is the height of a name, 0 for none; `words` tells whether label, holders and findings
    stand there too.
    """

    side: float
    gap: float
    columns: int
    name: float
    words: bool
    padding: float

    @property
    def width(self) -> float:
        """Width of a node's panel."""
        return self.columns * (self.side + self.gap) - self.gap + 2 * self.padding


DETAILED = Size(side=20, gap=4, columns=8, name=13, words=True, padding=9)
NAMED = Size(side=11, gap=2, columns=8, name=9, words=False, padding=5)
DENSE = Size(side=5, gap=1, columns=4, name=0, words=False, padding=1.5)


def size_for(nodes: int) -> Size:
    """Return the largest size at which that many nodes are still one picture."""
    if nodes <= 30:
        return DETAILED
    return NAMED if nodes <= 400 else DENSE


def panel(one: Panel, lane: Lane, size: Size, x: float, y: float) -> tuple[list[Shape], float]:
    """Return a node's shapes with its upper left corner at x, y, and its height."""
    drawn: list[Shape] = []
    left, top = x + size.padding, y + size.padding
    if size.name:
        top += size.name
        drawn.append(_name(one, size, left, top))
        top += size.name * 0.45
    if size.words:
        top += 12
        drawn.append(Words(left, top, _label(one), "small dim"))
        top += 9
    grid, height = _grid(one, lane, size, left, top)
    drawn += grid
    top += height
    if size.words:
        lines, height = _below(one, lane, left, top)
        drawn += lines
        top += height
    bottom = top + size.padding
    return [_ground(one, size, (x, y), bottom - y), *drawn], bottom - y


def _ground(one: Panel, size: Size, corner: tuple[float, float], height: float) -> Box:
    troubled = bool(one.node.finding or one.over)
    css = "node troubled" if troubled else "node shut" if not one.node.is_open else "node"
    return Box(*corner, size.width, height, css, about(one))


def about(one: Panel) -> str:
    """Return what a pointer on a node shows."""
    marks = [text(f"inventory.mark_{mark}") for mark in sorted(one.node.marks)]
    label = one.node.label or text("inventory.no_label")
    lines = [f"{one.node.name} ({label})", ", ".join(marks), one.node.finding or ""]
    return "\n".join(line for line in lines if line)


def _name(one: Panel, size: Size, left: float, top: float) -> Words:
    room = size.width - 2 * size.padding
    flag = " ⚠" if one.node.finding or one.over or one.node.marks else ""
    most = int(room / (size.name * 0.62)) - len(flag)
    css = "name" if size.words else "tiny name"
    return Words(left, top, shortened(one.node.name, most) + flag, css)


def _label(one: Panel) -> str:
    return shortened(one.node.label or text("inventory.no_label"), 30)


def _grid(one: Panel, lane: Lane, size: Size, left: float, top: float) -> tuple[list[Shape], float]:
    if one.slots > MOST_SQUARES:
        return _bar(one, lane, size, left, top), size.side
    step = size.side + size.gap
    places = [
        (round(left + n % size.columns * step, 1), round(top + n // size.columns * step, 1))
        for n in range(one.slots)
    ]
    drawn: list[Shape] = []
    for run in one.runs:
        taken, places = places[: run.slots], places[run.slots :]
        drawn.append(Squares(squares(taken, size.side), _css(run, lane), _title(run)))
    rows = max(1, -(-one.slots // size.columns))
    return drawn, rows * step - size.gap


def _bar(one: Panel, lane: Lane, size: Size, left: float, top: float) -> list[Shape]:
    """Draw a node of very many slots as shares of its width."""
    width = size.width - 2 * size.padding
    drawn: list[Shape] = []
    for run in one.runs:
        share = width * run.slots / one.slots
        drawn.append(
            Box(round(left, 2), top, round(share, 2), size.side, _css(run, lane), _title(run))
        )
        left += share
    return drawn


def _css(run: Run, lane: Lane) -> str:
    if run.what == "held" and run.holder:
        return f"held {key(lane.use)}-{lane.shades.get(run.holder, SHADES - 1)}"
    return f"{run.what} {run.what}-{key(lane.use)}"


def _title(run: Run) -> str:
    words = (
        f"{run.holder.namespace}/{run.holder.name}" if run.holder else text(f"inventory.{run.what}")
    )
    return f"{words}: {run.slots}"


def _below(one: Panel, lane: Lane, left: float, top: float) -> tuple[list[Shape], float]:
    """Return who holds cards, what is marked, and what `gpuwl check` found."""
    drawn: list[Shape] = []
    y = top + 3
    for run in _named(one):
        y += 14
        drawn.append(Squares(squares([(left, y - 8)], 8), _css(run, lane)))
        drawn.append(Words(left + 12, y, _holder(run), "small", _title(run)))
    for css, line in _remarks(one):
        y += 14
        drawn.append(Words(left, y, line, css))
    return drawn, y - top if drawn else 0


def _named(one: Panel) -> list[Run]:
    return [run for run in one.runs if run.holder][:HOLDERS]


def _holder(run: Run) -> str:
    assert run.holder is not None  # noqa: S101 - only runs with a holder are named
    return shortened(run.holder.name.partition("/")[2], 22) + f" {run.slots}"


def _remarks(one: Panel) -> Iterator[tuple[str, str]]:
    hidden = sum(1 for run in one.runs if run.holder) - HOLDERS
    if hidden > 0:
        yield "small dim", text("inventory.more", count=hidden)
    if one.slots > MOST_SQUARES:
        yield "small", text("inventory.slots", count=one.slots)
    for mark in sorted(one.node.marks):
        yield "small warn", "⚠ " + text(f"inventory.mark_{mark}")
    for line in wrapped(one.node.finding or "", 33, FINDING_LINES):
        yield "small warn", line
