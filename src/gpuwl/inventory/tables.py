"""A view's rows for other programs: CSV, and the text format of Prometheus."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields

from gpuwl.inventory.sums import HolderRow, NodeRow, ResourceRow
from gpuwl.inventory.view import Row

UNKNOWN = "unknown"
_FORMULA = ("=", "+", "-", "@")
"""A spreadsheet would run a cell that begins so (OWASP, CSV injection)."""

_HELP = {
    "nodes": "Nodes that advertise the resource.",
    "advertised": "Slots that nodes advertise.",
    "requested": "Slots that the Pods on the nodes ask for, as the scheduler counts.",
    "used": "Slots that are asked for, at most those advertised.",
    "over": "Slots asked for beyond those advertised.",
    "free": "Slots that new Pods can have.",
    "closed": "Slots left on nodes that take no new Pods.",
    "largest": "Largest free piece on one node.",
    "waiting": "Pods that wait for a node.",
    "asked": "Slots that waiting Pods ask for.",
    "gated": "Waiting Pods behind scheduling gates.",
    "pods": "Pods that hold slots.",
    "held": "Slots that Pods hold.",
}


def to_csv(rows: Sequence[Row], kind: type[Row]) -> str:
    """Return rows as CSV (RFC 4180) with a header; what is not known is `unknown`."""
    written = io.StringIO()
    writer = csv.writer(written)
    writer.writerow(field.name for field in fields(kind))
    writer.writerows([_cell(value) for value in asdict(row).values()] for row in rows)
    return written.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return UNKNOWN
    words = " ".join(value) if isinstance(value, (list, tuple)) else str(value)
    return f"'{words}" if words.startswith(_FORMULA) else words


def to_prometheus(rows: Sequence[Row], kind: type[Row]) -> str:
    """Return rows in Prometheus' text format, for node-exporter's textfile collector.

    An unknown figure has no sample. Source of the format and its escapes:
    https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
    """
    names = [field.name for field in fields(kind) if field.name in _HELP]
    return "".join(line for name in names for line in _metric(name, rows, kind))


def _metric(name: str, rows: Sequence[Row], kind: type[Row]) -> Iterator[str]:
    metric = f"gpuwl_{_SCOPES[kind]}_{name}"
    yield f"# HELP {metric} {_HELP[name]}\n# TYPE {metric} gauge\n"
    for row in rows:
        amount = getattr(row, name)
        if amount is not None:
            yield f"{metric}{{{_labels(row)}}} {amount}\n"


_SCOPES: dict[type[Row], str] = {
    ResourceRow: "resource",
    NodeRow: "node",
    HolderRow: "holder",
}


def _labels(row: Row) -> str:
    names = [field.name for field in fields(row) if field.name not in {*_HELP, "marks"}]
    known = {name: value for name in names if (value := getattr(row, name)) is not None}
    return ",".join(f'{name}="{_escaped(str(value))}"' for name, value in known.items())


def _escaped(value: str) -> str:
    return re.sub(r'["\\]', r"\\\g<0>", value).replace("\n", "\\n")
