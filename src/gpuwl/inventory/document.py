"""The inventory as data for programs: the fields of `--output json`."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from gpuwl.inventory import stranded, sums
from gpuwl.inventory.model import Inventory, Mark
from gpuwl.inventory.view import By, Row, View

_LISTS = {By.NODE: "nodes", By.NAMESPACE: "namespaces", By.WORKLOAD: "workloads"}


def document(found: Inventory, view: View) -> dict[str, Any]:
    """Return what is known as plain data; null stands for unknown."""
    verdicts = stranded.stranded(found, view.use)
    rows = view.rows(found)
    by_resource = view.by is By.RESOURCE
    content: dict[str, Any] = {
        "verdict": verdict(found, verdicts),
        "known": {"pods": found.knows_pods, "slices": found.has_slices},
        "seen": {"nodes": len(found.nodes), "gpuNodes": len(found.in_view()), "pods": found.pods},
        "resources": _data(rows if by_resource else sums.by_resource(found, view.use)),
        "stranded": [asdict(one) for one in verdicts],
        "marks": {str(mark): names for mark, names in marked(found).items()},
        "findings": [{"node": node, "reason": reason} for node, reason in findings(found)],
        "strays": {name: asdict(share) for name, share in found.strays.items()},
    }
    if view.by in _LISTS:
        content[_LISTS[view.by]] = _data(rows)
    return content


def verdict(found: Inventory, verdicts: Sequence[stranded.Stranded]) -> str:
    """Return `stranded`, `none`, or `unknown` where the Pods are not in view."""
    if not found.knows_pods:
        return "unknown"
    return "stranded" if verdicts else "none"


def marked(found: Inventory) -> dict[Mark, list[str]]:
    """Return the names of the nodes that carry each mark."""
    nodes: dict[Mark, list[str]] = defaultdict(list)
    for node in found.in_view():
        for mark in node.marks:
            nodes[mark].append(node.name)
    return {mark: nodes[mark] for mark in Mark if mark in nodes}


def findings(found: Inventory) -> list[tuple[str, str]]:
    """Return what `gpuwl check` says, as pairs of node and reason."""
    return [
        (node.name, node.finding) for node in found.nodes.values() if node.finding and node.selected
    ]


def _data(shown: Sequence[Row]) -> list[dict[str, Any]]:
    return [asdict(row) for row in shown]
