"""The manifests of the lab's Pods, as dictionaries and as YAML."""

from typing import Any

import yaml

from gpuwl.k8s.objects import Object
from gpuwl.lab.names import CONTAINER_NAME, IMAGE, LABEL_KEY, NAMESPACE, PREFIX, LabPod

_DEFAULT_TOLERATIONS = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
"""What the admission plugin DefaultTolerationSeconds adds to every Pod."""
_LIMIT_RANGER = "kubernetes.io/limit-ranger"
"""The annotation by which the admission plugin LimitRanger says that it set defaults."""


def pod(lab_pod: LabPod) -> Object:
    """Return the manifest: one container, limits only, a node selector only where the lab has one.

    Extended resources go into limits alone, since the API server copies limits to requests and
    refuses requests that differ
    (https://kubernetes.io/docs/tasks/configure-pod-container/extended-resource/).
    """
    container = {
        "name": CONTAINER_NAME,
        "image": IMAGE,
        "resources": {"limits": {lab_pod.resource: 1}},
    }
    selector = {"nodeSelector": {LABEL_KEY: lab_pod.selects}} if lab_pod.selects else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": lab_pod.name, "namespace": NAMESPACE},
        "spec": {**selector, "containers": [container]},
    }


def to_yaml(manifest: Object) -> str:
    """Return a manifest in block style, keys in the order people write them."""
    return yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True, default_flow_style=False)


def asks_the_same(found: Object, lab_pod: LabPod) -> bool:
    """Tell whether a Pod of the cluster asks the scheduler for exactly what the lab's Pod does."""
    return not deviations(found, lab_pod)


def deviations(found: Object, lab_pod: LabPod) -> dict[str, tuple[Any, Any]]:
    """Return what a Pod of the cluster asks otherwise: part of the spec → (expected, found)."""
    expected, there = _request(pod(lab_pod)), _request(found)
    return {
        part: (expected[part], there[part]) for part in expected if expected[part] != there[part]
    }


def holds_otherwise(found: Object, lab_pod: LabPod, resource: str) -> bool:
    """Tell whether a Pod of the cluster asks for another amount of a resource than it should."""
    return _amounts(found, resource) != _amounts(pod(lab_pod), resource)


def _amounts(manifest: Object, resource: str) -> list[str]:
    spec = manifest["spec"]
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    limits = [(c.get("resources") or {}).get("limits") or {} for c in containers]
    return [str(amounts[resource]) for amounts in limits if resource in amounts]


def _request(manifest: Object) -> Object:
    """Return the parts of a Pod that decide where it may go, with the server's defaults left out."""
    spec = manifest["spec"]
    defaulted = _LIMIT_RANGER in (manifest["metadata"].get("annotations") or {})
    containers = [_container(c, defaulted=defaulted) for c in spec.get("containers") or ()]
    return {
        "containers": containers,
        "initContainers": spec.get("initContainers") or [],
        "nodeSelector": spec.get("nodeSelector") or {},
        "affinity": spec.get("affinity") or {},
        "schedulerName": spec.get("schedulerName", "default-scheduler"),
        "schedulingGates": spec.get("schedulingGates") or [],
        "topologySpreadConstraints": spec.get("topologySpreadConstraints") or [],
        "tolerations": [t for t in spec.get("tolerations") or () if not _is_added(t, containers)],
    }


def _is_added(toleration: Object, containers: list[Any]) -> bool:
    """Tell whether an admission plugin adds this toleration to such a Pod.

    ExtendedResourceToleration, where it is on, adds one for each extended resource that is asked for
    (https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/).
    """
    key = toleration.get("key")
    for_resource = toleration.get("operator") == "Exists" and any(key in c[2] for c in containers)
    return key in _DEFAULT_TOLERATIONS or for_resource


def _container(container: Object, *, defaulted: bool) -> tuple[str, str, Object, Object]:
    resources = container.get("resources") or {}
    limits = _quantities(resources.get("limits"), gpus_only=defaulted)
    requests = _quantities(resources.get("requests"), gpus_only=defaulted)
    return container["name"], container["image"], limits, requests or limits


def _quantities(amounts: Object | None, *, gpus_only: bool) -> Object:
    found = {name: str(amount) for name, amount in (amounts or {}).items()}
    return {name: q for name, q in found.items() if not gpus_only or name.startswith(PREFIX)}
