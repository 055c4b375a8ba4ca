"""Nodes of a dump without their owner's words: what scheduler and checker read stays.

The rule is a list of what is public: everything else gets another word, the same one wherever it
occurs, so that selectors, spreading and tolerations decide as before. Messages are dropped.
"""

import functools
import re
from dataclasses import dataclass, field
from typing import Any

from gpuwl.k8s.objects import AMOUNTS, Object

HOSTNAME = "kubernetes.io/hostname"

# Keys of labels and taints that say nothing of an owner, and whose values do not either.
_PUBLIC = re.compile(
    r"(?:beta\.)?kubernetes\.io/(?:arch|os)"
    r"|node-role\.kubernetes\.io/(?:control-plane|master|worker|infra)"
    r"|nvidia\.com/gpu(?:\.workload\.config|\.deploy\.[a-z-]+)?"
    r"|nvidia\.com/gpu\.(?:present|count|product|memory|family|replicas|sharing-strategy|compute\.\w+)"
    r"|nvidia\.com/(?:mig|mps|vgpu)\.(?:capable|strategy|present)"
)
# Keys that say nothing, with values that may: a zone, a type of machine, a version.
_PUBLIC_KEY = re.compile(
    r"(?:topology|failure-domain\.beta)\.kubernetes\.io/(?:zone|region)"
    r"|(?:beta\.kubernetes\.io|node\.kubernetes\.io)/instance-type"
    r"|kubernetes\.io/hostname"
    r"|node(?:\.cloudprovider)?\.kubernetes\.io/(?:not-ready|unreachable|unschedulable|uninitialized"
    r"|(?:memory|disk|pid)-pressure|network-unavailable|out-of-service"
    r"|exclude-from-external-load-balancers)"
    r"|feature\.node\.kubernetes\.io/(?:cpu|pci|usb|memory|network|storage)-[A-Za-z0-9_.-]+"
    r"|kubevirt\.io/schedulable|(?:cpu-model|cpu-feature|machine-type)\.node\.kubevirt\.io/[\w.-]+"
)
_PUBLIC_VALUE = re.compile(r"(?:true|false|present|[0-9]{1,6})?")
# https://kubernetes.io/docs/reference/node/node-labels lists no more; vendors' names are public too.
_PUBLIC_RESOURCE = re.compile(
    r"cpu|memory|pods|ephemeral-storage|storage|hugepages-\w+|attachable-volumes-[a-z-]+"
    r"|(?:nvidia\.com|amd\.com|intel\.com|habana\.ai|rdma|devices\.kubevirt\.io)/.*",
    re.DOTALL,
)
_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable")


# Most keys of a large dump occur on every node.
_is_public = functools.cache(_PUBLIC.fullmatch)
_is_public_key = functools.cache(_PUBLIC_KEY.fullmatch)


@dataclass
class Map:
    """What each hidden word became, by what it was: names of nodes, keys, values, resources."""

    nodes: dict[str, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    resources: dict[str, str] = field(default_factory=dict)

    def key(self, text: str) -> str:
        """Return the key of a label or taint as it may be shown."""
        if _is_public(text) or _is_public_key(text):
            return text
        return self.keys.setdefault(text, f"key-{len(self.keys)}")

    def value(self, key: str, value: object) -> str:
        """Return the value of a label or taint as it may be shown."""
        text = str(value)
        if text in self.nodes:
            return self.nodes[text]
        if _is_public(key) or _PUBLIC_VALUE.fullmatch(text):
            return text
        return self.values.setdefault(text, f"value-{len(self.values)}")

    def resource(self, name: str) -> str:
        """Return the name of a resource as it may be shown."""
        if _PUBLIC_RESOURCE.fullmatch(name):
            return name
        return self.resources.setdefault(name, f"example.com/resource-{len(self.resources)}")


def anonymise(nodes: list[Object]) -> tuple[list[Object], Map]:
    """Return the nodes as node-00000, node-00001, … in their order, and what became what.

    `nodes` are as `dump.essence` returns them. What is no public word in labels, taints and resources is
    replaced; of conditions stay the type, if it is a kubelet's, and the status.
    """
    hidden = Map({_name(node): f"node-{i:05d}" for i, node in enumerate(nodes)})
    return [_shown(node, hidden) for node in nodes], hidden


def _shown(node: Object, hidden: Map) -> Object:
    labels = _mapping(node["metadata"].get("labels"))
    shown = {hidden.key(key): hidden.value(key, value) for key, value in labels.items()}
    name = hidden.nodes[_name(node)]
    if HOSTNAME in shown:
        shown[HOSTNAME] = name
    spec, status = dict(node["spec"]), dict(node["status"])
    if "taints" in spec:
        spec["taints"] = [_taint(taint, hidden) for taint in _objects(spec["taints"])]
    if "conditions" in status:
        status["conditions"] = [_condition(one) for one in _objects(status["conditions"])]
        status["conditions"] = [one for one in status["conditions"] if one]
    for amounts in (part for part in AMOUNTS if part in status):
        found = _mapping(status[amounts])
        status[amounts] = {hidden.resource(name): amount for name, amount in found.items()}
    return {**node, "metadata": {"name": name, "labels": shown}, "spec": spec, "status": status}


def _taint(taint: Object, hidden: Map) -> Object:
    key = str(taint.get("key"))
    shown = {"key": hidden.key(key), "effect": taint.get("effect")}
    if taint.get("value") is not None:
        shown["value"] = hidden.value(key, taint["value"])
    return shown


def _condition(condition: Object) -> Object:
    if condition.get("type") not in _CONDITIONS:
        return {}
    return {name: condition[name] for name in ("type", "status") if name in condition}


def _name(node: Object) -> str:
    return str(node["metadata"]["name"])


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
