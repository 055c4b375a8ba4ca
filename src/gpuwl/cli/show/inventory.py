"""The inventory for people: bars on a terminal, a plain table elsewhere, then what there is to say."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from gpuwl.cli.show import layout
from gpuwl.inventory import document, stranded, words
from gpuwl.inventory.model import Amount, Inventory, Use
from gpuwl.inventory.palette import key
from gpuwl.inventory.sums import HolderRow, NodeRow, ResourceRow
from gpuwl.inventory.view import Row, View
from gpuwl.texts import text

if TYPE_CHECKING:
    from gpuwl.cli.console import Reporter
    from gpuwl.inventory.page import Caption

Span = tuple[str, str]
"""A piece of a line, and rich's style of it."""
Line = list[Span]

COLOURS = {
    Use.CONTAINER: "green",
    Use.SLICE: "cyan",
    Use.PASSTHROUGH: "blue",
    Use.VGPU: "magenta",
    Use.DRA: "yellow",
    Use.UNKNOWN: "white",
}
COLUMNS: dict[type[Row], tuple[str, ...]] = {
    ResourceRow: (
        *("use", "resource", "nodes", "advertised", "used", "free", "closed", "largest"),
        *("waiting", "asked"),
    ),
    NodeRow: ("node", "label", "use", "resource", "advertised", "used", "free", "closed", "marks"),
    HolderRow: ("namespace", "workload", "use", "resource", "pods", "held", "waiting", "asked"),
}
WORDS = ("use", "resource", "node", "label", "namespace", "workload", "marks")
"""Columns that hold no figures."""
FILLINGS = {"held": "█", "free": "░", "closed": "▒"}
PLAIN = {"held": "#", "free": ".", "closed": "x"}
"""Where the output's encoding has no blocks."""
NARROWEST_BAR, WIDEST_BAR = 8, 48
NAMED = 6
"""Nodes and findings that are named; the rest is counted."""


def print_inventory(reporter: "Reporter", found: Inventory, view: View, caption: "Caption") -> None:
    """Print the inventory."""
    drawn = bars(found, view, layout.screen()) if reporter.for_people else table(found, view)
    for line in drawn:
        reporter.spans(line)
    for line in remarks(found, view, caption):
        reporter.spans(line, detail=True)


def table(found: Inventory, view: View) -> list[Line]:
    """Return the rows in columns, figures at the right."""
    rows = view.rows(found)
    if not rows:
        return [[(words.headline(found, view.use), "")]]
    names = [name for name in COLUMNS[view.kind] if _occurs(name, rows)]
    head = [text(f"inventory.column_{name}") for name in names]
    body = [[_cell(name, getattr(row, name)) for name in names] for row in rows]
    right = [name not in WORDS for name in names]
    return [[(line, "")] for line in layout.columns([head, *body], right=right)]


def _occurs(name: str, rows: Sequence[Row]) -> bool:
    return name != "workload" or any(getattr(row, name) for row in rows)


def _cell(name: str, value: object) -> str:
    if value is None and name in WORDS:
        return "-"
    if value is None:
        return text("inventory.unknown")
    if isinstance(value, Use):
        return text(f"inventory.use_{key(value)}")
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


def bars(found: Inventory, view: View, width: int) -> list[Line]:
    """Return a bar for each row, as long as a line of `width` cells has room for it."""
    rows = [row for row in view.rows(found) if not isinstance(row, HolderRow)]
    if not rows:
        return table(found, view)
    names = [_name(row) for row in rows]
    figures = [words.figures(row) for row in rows]
    widest = max(cell_len("".join(part for part, _ in name)) for name in names)
    said = max(map(cell_len, figures))
    room = width - widest - said - 4
    if room < NARROWEST_BAR:
        return _in_two_lines(list(zip(rows, names, figures, strict=True)), width)
    size = min(WIDEST_BAR, room)
    return [
        [*name, (" " * (widest - _cells(name) + 2), ""), *_bar(row, size), (f"  {figure}", "")]
        for row, name, figure in zip(rows, names, figures, strict=True)
    ]


def _in_two_lines(
    rows: "Sequence[tuple[ResourceRow | NodeRow, Line, str]]", width: int
) -> list[Line]:
    lines: list[Line] = []
    for row, name, figure in rows:
        room = width - cell_len(figure) - 4
        bar = _bar(row, min(WIDEST_BAR, room)) if room >= NARROWEST_BAR else []
        lines += [name, [("  ", ""), *bar, (f"  {figure}", "")]]
    return lines


def _cells(line: Line) -> int:
    return sum(cell_len(part) for part, _ in line)


def _name(row: ResourceRow | NodeRow) -> Line:
    colour = COLOURS[row.use]
    if isinstance(row, NodeRow):
        return [(row.node, "bold"), (f" {row.resource}", colour)]
    return [(text(f"inventory.use_{key(row.use)}"), f"bold {colour}"), (f" {row.resource}", "")]


def _bar(row: ResourceRow | NodeRow, size: int) -> Line:
    """Return held, free and closed slots to scale; whatever is more than nothing shows."""
    shares: list[tuple[str, Amount]] = [
        ("held", row.used),
        ("free", row.free),
        ("closed", row.closed),
    ]
    fillings = FILLINGS if layout.can_show("".join(FILLINGS.values())) else PLAIN
    if row.advertised is None or row.used is None:
        return [("?" * size, "dim")]
    cells = _to_scale([amount or 0 for _, amount in shares], row.advertised, size)
    styles = {"held": COLOURS[row.use], "free": COLOURS[row.use], "closed": "dim"}
    drawn = [
        (fillings[what] * count, styles[what])
        for (what, _), count in zip(shares, cells, strict=True)
    ]
    return [*drawn, (" " * (size - sum(cells)), "")]


def _to_scale(amounts: list[int], whole: int, size: int) -> list[int]:
    """Share `size` cells out by amounts; the largest gives up what rounding took too much."""
    if not whole:
        return [0 for _ in amounts]
    cells = [max(1, round(amount * size / whole)) if amount else 0 for amount in amounts]
    cells[cells.index(max(cells))] += size - sum(cells)
    return cells


def remarks(found: Inventory, view: View, caption: "Caption") -> list[Line]:
    """Return the verdict, what to ask next, and the nodes to look at."""
    lines: list[Line] = []
    for one in stranded.stranded(found, view.use):
        lines += [[], *_verdict(one, caption)]
    marks = words.mark_words(found)
    if marks:
        lines += [[], [(text("inventory.heading_marks"), "bold")]]
        lines += [[(f"  {mark}: {_listed(nodes)}", "yellow")] for mark, nodes in marks]
    findings = document.findings(found)
    if findings:
        lines += [[], [(text("inventory.heading_findings"), "bold")]]
        lines += [[(f"  {node} {reason}", "yellow")] for node, reason in findings[:NAMED]]
    if len(findings) > NAMED:
        lines.append([("  " + text("inventory.more", count=len(findings) - NAMED), "dim")])
    notes = words.notes(found)
    return [*lines, *([[]] if notes else []), *([(note, "dim")] for note in notes)]


def _verdict(one: stranded.Stranded, caption: "Caption") -> list[Line]:
    command = words.place_command(one, caption.options)
    lines: list[Line] = [[(sentence, "bold red")] for sentence in words.sentences(one)]
    if one.message:
        lines.append([("  " + text("inventory.scheduler_says", message=one.message), "")])
    if command:
        lines.append([("  " + text("inventory.ask_place"), "")])
        lines.append([(f"    {command}", "cyan")])
    return lines


def _listed(nodes: Sequence[str]) -> str:
    hidden = len(nodes) - NAMED
    return ", ".join(nodes[:NAMED]) + (
        " " + text("inventory.more", count=hidden) if hidden > 0 else ""
    )
