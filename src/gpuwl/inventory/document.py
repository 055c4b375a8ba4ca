"""The inventory as data for programs: the fields of `--output json`."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Any

from gpuwl.inventory import stranded, sums
from gpuwl.inventory.model import Inventory, Mark, Use


class By(StrEnum):
    """What a row of the table stands for."""

    RESOURCE = "resource"
    NODE = "node"
    NAMESPACE = "namespace"
    WORKLOAD = "workload"


Row = sums.ResourceRow | sums.NodeRow | sums.HolderRow

_LISTS = {By.NODE: "nodes", By.NAMESPACE: "namespaces", By.WORKLOAD: "workloads"}


def rows(found: Inventory, by: By, use: Use | None) -> Sequence[Row]:
    """Return the rows of a view."""
    if by is By.RESOURCE:
        return sums.by_resource(found, use)
    if by is By.NODE:
        return sums.by_node(found, use)
    return sums.by_holder(found, use, workloads=by is By.WORKLOAD)


def document(found: Inventory, by: By, use: Use | None, shown: Sequence[Row]) -> dict[str, Any]:
    """Return what is known as plain data; null stands for unknown. `shown` are the view's rows."""
    verdicts = stranded.stranded(found, use)
    content: dict[str, Any] = {
        "verdict": verdict(found, verdicts),
        "known": {"pods": found.knows_pods, "slices": found.has_slices},
        "seen": {"nodes": len(found.nodes), "gpuNodes": len(found.in_view()), "pods": found.pods},
        "resources": _data(shown if by is By.RESOURCE else sums.by_resource(found, use)),
        "stranded": [asdict(one) for one in verdicts],
        "marks": {str(mark): names for mark, names in marked(found).items()},
        "findings": [{"node": node, "reason": reason} for node, reason in findings(found)],
        "strays": {name: asdict(share) for name, share in found.strays.items()},
    }
    if by in _LISTS:
        content[_LISTS[by]] = _data(shown)
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
        (node.name, node.finding)
        for node in found.nodes.values()
        if node.finding and node.selected
    ]


def _data(shown: Sequence[Row]) -> list[dict[str, Any]]:
    return [asdict(row) for row in shown]
