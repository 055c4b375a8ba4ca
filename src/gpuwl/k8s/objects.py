"""Reading Nodes, Pods and Namespaces as the API server returns them (plain dictionaries)."""

from typing import Any

from gpuwl.checker import LABEL_KEY, PREFIX
from gpuwl.k8s import quantity

Object = dict[str, Any]

AMOUNTS = ("capacity", "allocatable")
"""The fields of a node's status that hold its resources; the scheduler goes by the second."""


def label_of(node: Object) -> str | None:
    """Return the value of the workload label, None where the node does not carry it."""
    return values(node, "labels").get(LABEL_KEY)


def gpu_resources(node: Object, field: str = "allocatable") -> dict[str, str]:
    """Return the nvidia.com/ names of `status.allocatable` (or `capacity`) with their quantities."""
    found = values(node, field)
    return {name: amount for name, amount in found.items() if name.startswith(PREFIX)}


def values(node: Object, field: str) -> dict[str, str]:
    """Return the `labels` of a node, or the `capacity` or `allocatable` of its status."""
    holder = node["metadata"] if field == "labels" else node.get("status") or {}
    found: dict[str, str] = holder.get(field) or {}
    return found


def advertised(node: Object) -> dict[str, str]:
    """Return the nvidia.com/ names that count for the scheduler: allocatable and not zero."""
    found = gpu_resources(node).items()
    return {name: amount for name, amount in found if not quantity.is_zero(amount)}


def node_of(pod: Object) -> str:
    """Return `spec.nodeName`, empty where the Pod has no node."""
    return pod["spec"].get("nodeName") or ""


def phase_of(item: Object) -> str:
    """Return `status.phase`, empty where there is none."""
    return (item.get("status") or {}).get("phase") or ""


def is_terminating(item: Object) -> bool:
    """Tell whether an object is being deleted."""
    return bool(item["metadata"].get("deletionTimestamp"))


def is_managed_by(item: Object, manager: str) -> bool:
    """Tell whether a field manager of that name made or changed an object."""
    managers = item["metadata"].get("managedFields") or ()
    return any(entry.get("manager") == manager for entry in managers)


def is_over(pod: Object) -> bool:
    """Tell whether a Pod is being deleted or has run its course: it holds its place no longer."""
    return is_terminating(pod) or phase_of(pod) in {"Succeeded", "Failed"}


def condition(item: Object, kind: str) -> Object:
    """Return the condition of that type, an empty dictionary where there is none."""
    for found in (item.get("status") or {}).get("conditions") or ():
        if found.get("type") == kind:
            return dict(found)
    return {}


def scheduled(pod: Object) -> Object:
    """Return the PodScheduled condition."""
    return condition(pod, "PodScheduled")


def is_scheduled(pod: Object) -> bool:
    """Tell whether the scheduler placed the Pod; a bare nodeName is no placement."""
    return scheduled(pod).get("status") == "True" and bool(node_of(pod))
