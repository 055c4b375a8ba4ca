"""What a Pod asks of the GPUs, where it is, and on whose behalf."""

from dataclasses import dataclass
from typing import Any

from gpuwl.checker import LABEL_KEY
from gpuwl.inventory.model import Workload
from gpuwl.inventory.nodes import counts, part, shown
from gpuwl.k8s import pods
from gpuwl.k8s.objects import Object

_OVER = ("Succeeded", "Failed")
_LONGEST_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class Ask:
    """Slots by resource that a Pod asks for; `node` is None while it waits for one."""

    slots: dict[str, int]
    node: str | None
    workload: Workload
    gated: bool = False
    selects: str | None = None
    message: str | None = None


def read(pod: Object) -> Ask | None:
    """Return what a Pod asks; None: no GPU, or nothing that the scheduler still counts.

    It counts a Pod until it has run its course, a terminating one too. A terminating Pod without a
    node gets none any more (kubernetes/pkg/scheduler/eventhandlers.go).
    """
    spec = part(pod, "spec")
    if not _mentions_gpu(spec) or part(pod, "status").get("phase") in _OVER:
        return None
    claimed = _through_claims(part(pod, "status"))
    slots = {
        shown(name): int(n)
        for name, n in pods.requests(spec).items()
        if counts(name) and n > 0 and name not in claimed
    }
    node = spec.get("nodeName")
    if not slots or (not node and part(pod, "metadata").get("deletionTimestamp")):
        return None
    if node:
        return Ask(slots, shown(node), workload_of(part(pod, "metadata")))
    return _waiting(pod, spec, slots)


def waits_with_claims(pod: Object) -> Workload | None:
    """Return the workload of a Pod that has ResourceClaims and no node, None for any other."""
    spec, metadata = part(pod, "spec"), part(pod, "metadata")
    if not spec.get("resourceClaims") or spec.get("nodeName") or metadata.get("deletionTimestamp"):
        return None
    return None if part(pod, "status").get("phase") in _OVER else workload_of(metadata)


def _through_claims(status: Object) -> set[str]:
    """Return the names that DRA provides to a Pod: the claim on it counts, not the name (KEP-5004)."""
    made = part(status, "extendedResourceClaimStatus").get("requestMappings")
    return {str(part({"": one}, "").get("resourceName")) for one in _list(made)}


def _waiting(pod: Object, spec: Object, slots: dict[str, int]) -> Ask:
    selects = part(spec, "nodeSelector").get(LABEL_KEY)
    return Ask(
        slots,
        None,
        workload_of(part(pod, "metadata")),
        gated=bool(spec.get("schedulingGates")),
        selects=None if selects is None else shown(selects),
        message=_scheduler_says(part(pod, "status")),
    )


def workload_of(metadata: Object) -> Workload:
    """Return the workload that a Pod belongs to, by its controller.

    A ReplicaSet stands for its Deployment, whose name it carries before the hash that its Pods
    carry as a label. A mirror Pod, which a Node owns, is its own.
    """
    namespace = shown(metadata.get("namespace") or "default")
    owner = _controller(metadata)
    kind, name = owner.get("kind"), owner.get("name")
    if not isinstance(kind, str) or not isinstance(name, str) or kind == "Node":
        return Workload(namespace, f"Pod/{shown(metadata.get('name'))}")
    ending = f"-{part(metadata, 'labels').get('pod-template-hash')}"
    if kind == "ReplicaSet" and name.endswith(ending):
        kind, name = "Deployment", name.removesuffix(ending)
    return Workload(namespace, f"{shown(kind)}/{shown(name)}")


def _controller(metadata: Object) -> Object:
    found = metadata.get("ownerReferences")
    owners = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    return next(
        (one for one in owners if one.get("controller") is True), owners[0] if owners else {}
    )


def _scheduler_says(status: Object) -> str | None:
    conditions = status.get("conditions")
    for one in conditions if isinstance(conditions, list) else ():
        if isinstance(one, dict) and one.get("type") == "PodScheduled" and one.get("message"):
            return " ".join(shown(word) for word in str(one["message"]).split())[:_LONGEST_MESSAGE]
    return None


def _mentions_gpu(spec: Object) -> bool:
    """Tell cheaply whether it is worth to count: most Pods name no GPU."""
    named = [part(spec, "overhead")] if "overhead" in spec else []
    for field in ("containers", "initContainers"):
        for container in _list(spec.get(field)):
            resources = part(container, "resources")
            if resources:
                named += [part(resources, "limits"), part(resources, "requests")]
    return any(counts(name) for amounts in named for name in amounts)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
