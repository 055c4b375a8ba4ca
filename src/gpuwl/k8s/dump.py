"""The nodes of somebody's dump, as nodes that a local control plane can be started with.

Kept is what a scheduler decides by: name, labels, taints, unschedulable, capacity, allocatable,
conditions. Dropped is what belongs to the machines or their owner: managed fields, annotations,
images, addresses, ids.
"""

import json
from pathlib import Path
from typing import Any

from gpuwl.checker import Check, NotNodesError, Rules, Source, read_document
from gpuwl.errors import InputError
from gpuwl.k8s.anonymise import anonymise as anonymised
from gpuwl.k8s.anonymise import traces
from gpuwl.k8s.objects import Object

_GO_ESCAPES = str.maketrans(
    {
        "<": "\\u003c",
        ">": "\\u003e",
        "&": "\\u0026",
        "\u2028": "\\u2028",
        "\u2029": "\\u2029",
    }
)
"""What Go's encoding/json escapes beyond what JSON asks for
(https://pkg.go.dev/encoding/json#HTMLEscape); in JSON these stand in strings only."""

SPEC = ("taints", "unschedulable")
STATUS = ("capacity", "allocatable", "conditions")


def read(path: Path, *, anonymise: bool) -> list[Object]:
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
        self.found: list[Object] = []
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


def _refuse_duplicates(path: Path, nodes: list[Object]) -> None:
    seen: set[str] = set()
    for node in nodes:
        name = node["metadata"]["name"]
        if name in seen:
            raise InputError(f"{path} holds the node {name} twice")
        seen.add(name)


def essence(node: dict[str, Any]) -> Object:
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


def kubectl_json(node_list: bytes) -> str:
    """Return what `kubectl get nodes -o json` prints for the API server's NodeList.

    That is `kubectl_list` with sorted keys, four-space indent and Go's escapes. Raises ValueError
    where the input is not a NodeList in JSON.
    """
    return go_json(kubectl_list(node_list))


def kubectl_list(node_list: bytes) -> dict[str, Any]:
    """Return the API server's NodeList as the `List` that kubectl makes of it.

    That is without a resource version, its items with apiVersion and kind and without
    managedFields. Raises ValueError where the input is not a NodeList in JSON.
    """
    answer = json.loads(node_list)
    if not isinstance(answer, dict) or answer.get("kind") != "NodeList":
        raise ValueError("the API server's answer is not a NodeList")
    return {
        "apiVersion": "v1",
        "items": [_item(node) for node in answer.get("items") or ()],
        "kind": "List",
        "metadata": {"resourceVersion": ""},
    }


def go_json(value: object) -> str:
    """Return a value the way Go's MarshalIndent prints it with sorted keys and four blanks."""
    text = json.dumps(value, indent=4, sort_keys=True, ensure_ascii=False)
    return text.translate(_GO_ESCAPES) + "\n"


def _item(node: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in node["metadata"].items() if key != "managedFields"}
    return {**node, "apiVersion": "v1", "kind": "Node", "metadata": metadata}
