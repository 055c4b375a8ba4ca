"""The nodes of somebody's dump, as nodes that a local control plane can be started with.

Kept is what a scheduler decides by: name, labels, taints, unschedulable, capacity, allocatable,
conditions. Dropped is what belongs to the machines or their owner: managed fields, annotations,
images, addresses, ids.
"""

from pathlib import Path
from typing import Any

from gpuwl.checker import Check, NotNodesError, Rules, Source, read_document
from gpuwl.controlplane.anonymity import anonymise as anonymised
from gpuwl.controlplane.anonymity import traces
from gpuwl.controlplane.nodes import Node
from gpuwl.errors import InputError

SPEC = ("taints", "unschedulable")
STATUS = ("capacity", "allocatable", "conditions")


def read(path: Path, *, anonymise: bool) -> list[Node]:
    """Return the nodes of a dump, ready to be created; with other names if `anonymise`.

    Takes what the checker takes: List, NodeList, one Node; UTF-8 with or without BOM, UTF-16. The
    file is read as a stream, so its images and managed fields cost no memory. Raises InputError
    where it cannot be read, holds no nodes, or one node twice.
    """
    collector = _collect(path)
    nodes = collector.found
    if not nodes:
        raise InputError(f"{path} holds no node", hint="kubectl get nodes -o json > nodes.json")
    _refuse_duplicates(path, nodes)
    return anonymised(nodes, collector.traces) if anonymise else nodes


class _Collector(Check):
    """Collects the nodes that the checker's reader comes across."""

    def start(self) -> None:
        super().start()
        self.found: list[Node] = []
        self.traces: list[set[str]] = []

    def add(self, item: object, place: str) -> None:
        before = self.nodes
        super().add(item, place)
        if self.nodes > before and not self.problem and isinstance(item, dict):
            self.found.append(essence(item))
            self.traces.append(traces(item))


def _collect(path: Path) -> _Collector:
    collector = _Collector(Rules())
    try:
        with path.open("rb") as stream:
            read_document(Source(stream.read), collector)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except NotNodesError as error:
        raise InputError(f"{path} {error}") from None
    return collector


def _refuse_duplicates(path: Path, nodes: list[Node]) -> None:
    seen: set[str] = set()
    for node in nodes:
        name = node["metadata"]["name"]
        if name in seen:
            raise InputError(f"{path} holds the node {name} twice")
        seen.add(name)


def essence(node: dict[str, Any]) -> Node:
    """Return what is kept of a node."""
    metadata = _kept(node.get("metadata"), ("name", "labels"))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": _kept(node.get("spec"), SPEC),
        "status": _kept(node.get("status"), STATUS),
    }


def _kept(part: object, fields: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(part, dict):
        return {}
    return {field: part[field] for field in fields if part.get(field) is not None}
