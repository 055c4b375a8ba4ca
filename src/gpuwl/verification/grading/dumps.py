"""Dumps as `kubectl get nodes -o json` prints them, of nodes that a case asks for."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpuwl.k8s.dump import go_json
from gpuwl.lab.names import CONTAINER, GPU, LABEL_KEY, VM_VGPU
from gpuwl.verification.grading.vocabulary import Vocabulary

Table = Mapping[str, str]


@dataclass(frozen=True)
class Node:
    """A node of a case; `fits` is None where it carries no label and is not judged."""

    name: str
    fits: bool | None
    body: dict[str, Any] = field(repr=False)


class Maker:
    """Makes nodes and dumps by one source of randomness."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.words = Vocabulary(rng)

    def good(self, label: str, *names: str, **more: Any) -> Node:  # noqa: ANN401 - as node()
        """Return a node that agrees: with these names, or with one of the label's kind."""
        named = self.some(*(names or (self.good_name(label),)))
        return self.node(label, named, fits=True, **more)

    def bad(self, label: str, *names: str, **more: Any) -> Node:  # noqa: ANN401 - as node()
        """Return a node that disagrees, with these names; without any it advertises nothing."""
        return self.node(label, self.some(*names), fits=False, **more)

    def unlabelled(self, *names: str, **more: Any) -> Node:  # noqa: ANN401 - as node()
        """Return a node that is not judged."""
        return self.node(None, self.some(*names), fits=None, **more)

    def some(self, *names: str) -> dict[str, str]:
        """Return an amount that is not zero for each name, in the given order."""
        return {name: self.words.amount() for name in names}

    def node(  # noqa: PLR0913 - one keyword per part of a Node
        self,
        label: str | None,
        allocatable: Table,
        *,
        fits: bool | None,
        of_use: bool = False,
        capacity: Table | None = None,
        labels: Table | None = None,
        annotations: Table | None = None,
    ) -> Node:
        """Return a node; `capacity` is as `allocatable` where not given."""
        name = self.words.node(of_use=of_use)
        carried = {"kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", **(labels or {})}
        if label is not None:
            carried[LABEL_KEY] = label
        usual = {"cpu": str(self.rng.randrange(8, 129)), "memory": "131072Mi", "pods": "110"}
        metadata: dict[str, Any] = {"name": name, "labels": carried, "uid": self._uid()}
        if annotations:
            metadata["annotations"] = dict(annotations)
        status = {
            "allocatable": {**usual, **allocatable, "hugepages-2Mi": "0"},
            "capacity": {**usual, **(allocatable if capacity is None else capacity)},
            "nodeInfo": {"kubeletVersion": "v1.37.2", "operatingSystem": "linux"},
        }
        body = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {}}
        return Node(name, fits, {**body, "status": status})

    def shuffled(self, nodes: Sequence[Node]) -> list[Node]:
        """Return the nodes in another order."""
        return self.rng.sample(nodes, len(nodes))

    def good_name(self, label: str) -> str:
        """Return a name of the label's kind."""
        if label == CONTAINER:
            return GPU
        return self.words.profile() if label == VM_VGPU else self.words.device()

    def _uid(self) -> str:
        digits = f"{self.rng.getrandbits(128):032x}"
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _listing(nodes: Sequence[Node]) -> dict[str, Any]:
    items = [node.body for node in nodes]
    return {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}


def pretty(nodes: Sequence[Node]) -> bytes:
    """Return the dump as kubectl prints it."""
    return go_json(_listing(nodes)).encode()


def compact(nodes: Sequence[Node]) -> bytes:
    """Return the dump on one line, as `jq -c` and `kubectl get --raw` print it."""
    return json.dumps(_listing(nodes), separators=(",", ":")).encode()


def reordered(nodes: Sequence[Node]) -> bytes:
    """Return the dump as `jq .` indents it, with the keys of each object in another order."""
    return (json.dumps(_turned(_listing(nodes)), indent=2) + "\n").encode()


def _turned(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return {key: _turned(value[key]) for key in sorted(value, reverse=True)}
    return [_turned(one) for one in value] if isinstance(value, list) else value
