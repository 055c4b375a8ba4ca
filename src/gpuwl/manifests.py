"""The manifests of the lab's Pods, as dictionaries and as YAML."""

from typing import Any

import yaml

from gpuwl.names import CONTAINER_NAME, IMAGE, LABEL_KEY, NAMESPACE, LabPod

Object = dict[str, Any]

_DEFAULT_TOLERATIONS = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
"""What the admission plugin DefaultTolerationSeconds adds to every Pod."""


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
    return _request(found) == _request(pod(lab_pod))


def _request(manifest: Object) -> Object:
    """Return the parts of a Pod that decide where it may go, with the server's defaults left out."""
    spec = manifest["spec"]
    return {
        "containers": [_container(c) for c in spec.get("containers") or ()],
        "initContainers": spec.get("initContainers") or [],
        "nodeSelector": spec.get("nodeSelector") or {},
        "affinity": spec.get("affinity") or {},
        "scheduler": spec.get("schedulerName", "default-scheduler"),
        "gates": spec.get("schedulingGates") or [],
        "spread": spec.get("topologySpreadConstraints") or [],
        "tolerations": [
            t for t in spec.get("tolerations") or () if t.get("key") not in _DEFAULT_TOLERATIONS
        ],
    }


def _container(container: Object) -> tuple[str, str, Object, Object]:
    resources = container.get("resources") or {}
    limits = {key: str(value) for key, value in (resources.get("limits") or {}).items()}
    requests = {key: str(value) for key, value in (resources.get("requests") or limits).items()}
    return container["name"], container["image"], limits, requests
