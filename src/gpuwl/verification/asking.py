"""What a Pod asks the scheduler for, and whether that is what the lab's Pod asks for (steps 4 to 7).

One way for manifests and for Pods of the cluster. A field that changes neither the request for GPUs nor
where the Pod may go is a person's own business.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gpuwl.findings import shown
from gpuwl.k8s import quantity
from gpuwl.k8s.objects import Object
from gpuwl.lab import manifests
from gpuwl.lab.names import LabPod
from gpuwl.texts import text
from gpuwl.verification.outcome import brief

PLACING = frozenset(
    {
        "affinity", "ephemeralContainers", "initContainers", "nodeName", "nodeSelector", "overhead",
        "priority", "priorityClassName", "resourceClaims", "resources", "runtimeClassName",
        "schedulerName", "schedulingGates", "tolerations", "topologySpreadConstraints",
    }
)  # fmt: skip
"""Fields of a Pod's spec that decide where it may go, or that ask for more
(https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/)."""
HARMLESS = {"schedulerName": "default-scheduler", "priority": 0}
"""What the API server sets where a Pod says nothing."""
MACHINE = frozenset({"cpu", "memory", "ephemeral-storage"})
"""Resources that each node has: asking for them asks for no other node."""
SET_BY_SERVER = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
"""Tolerations that the admission plugin DefaultTolerationSeconds adds to every Pod."""


@dataclass(frozen=True)
class Deviation:
    """A field that says something else: `expected` and `found` in words, None for not set."""

    path: str
    expected: str | None
    found: str | None


def sides(deviation: Deviation) -> tuple[str, str]:
    """Return both sides in words."""
    unset = text("verify.not_set")
    return deviation.expected or unset, deviation.found or unset


def deviations(pod: Object, lab_pod: LabPod, taints: Sequence[Object]) -> Iterator[Deviation]:
    """Yield what a Pod, or a manifest, asks otherwise; `taints` are those of the cluster's nodes."""
    expected = manifests.pod(lab_pod)
    yield from _differing("", expected, pod, ("apiVersion", "kind"))
    yield from _differing(
        "metadata", expected["metadata"], pod.get("metadata"), ("name", "namespace")
    )
    spec = pod.get("spec")
    if not isinstance(spec, dict):
        yield Deviation("spec", "spec", None if spec is None else brief(spec))
        return
    yield from _placing(expected["spec"], spec, lab_pod, taints)
    containers = spec.get("containers")
    if not isinstance(containers, list) or len(containers) != 1:
        count = len(containers) if isinstance(containers, list) else 0
        yield Deviation("spec.containers", "1", str(count))
    else:
        yield from _container(expected["spec"]["containers"][0], containers[0])
    yield from _volumes(spec.get("volumes"))


def _differing(
    path: str, expected: Object, found: object, keys: Sequence[str]
) -> Iterator[Deviation]:
    there = found if isinstance(found, dict) else {}
    for key in keys:
        if there.get(key) != expected[key]:
            value = there.get(key)
            yield Deviation(
                f"{path}.{key}".lstrip("."),
                str(expected[key]),
                None if value is None else brief(value),
            )


def _placing(
    expected: Object, spec: Object, lab_pod: LabPod, taints: Sequence[Object]
) -> Iterator[Deviation]:
    for key in sorted(PLACING & spec.keys() - {"tolerations", "nodeSelector"}):
        if not _is_empty(spec[key]) and HARMLESS.get(key) != spec[key]:
            yield Deviation(f"spec.{key}", None, brief(spec[key]))
    selector, wanted = spec.get("nodeSelector") or {}, expected.get("nodeSelector") or {}
    if selector != wanted:
        yield Deviation("spec.nodeSelector", _selector(wanted), _selector(selector))
    for one in spec.get("tolerations") or ():
        if not _is_idle(one, lab_pod, taints):
            yield Deviation("spec.tolerations", None, brief(one))


def _selector(value: object) -> str | None:
    if not isinstance(value, dict):
        return brief(value)
    return shown(", ".join(f"{key}={one}" for key, one in value.items())) or None


def _is_empty(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(_is_empty, value.values()))
    return value is None or value in ([], "")


def _is_idle(toleration: object, lab_pod: LabPod, taints: Sequence[Object]) -> bool:
    """Tell whether a toleration opens no node.

    ExtendedResourceToleration, where it is on, adds one for each extended resource that is asked for
    (https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/).
    """
    if not isinstance(toleration, dict):
        return False
    key = toleration.get("key")
    if key in SET_BY_SERVER or key == lab_pod.resource:
        return True
    return not any(_tolerates(toleration, taint) for taint in taints)


def _tolerates(toleration: Object, taint: Object) -> bool:
    """Tell whether a toleration has to do with a taint, whatever the value."""
    same_key = toleration.get("key") in (None, "", taint.get("key"))
    return same_key and toleration.get("effect") in (None, "", taint.get("effect"))


def _container(expected: Object, found: object) -> Iterator[Deviation]:
    path, there = "spec.containers[0]", found if isinstance(found, dict) else {}
    yield from _differing(path, expected, there, ("name", "image"))
    for port in there.get("ports") or ():
        if isinstance(port, dict) and port.get("hostPort"):
            yield Deviation(f"{path}.ports", None, f"hostPort {brief(port['hostPort'])}")
    resources = there.get("resources")
    asked: dict[str, Any] = resources if isinstance(resources, dict) else {}
    limits = expected["resources"]["limits"]
    yield from _amounts(f"{path}.resources.limits", limits, asked.get("limits"), needed=True)
    yield from _amounts(f"{path}.resources.requests", limits, asked.get("requests"), needed=False)
    if asked.get("claims"):
        yield Deviation(f"{path}.resources.claims", None, brief(asked["claims"]))


def _amounts(path: str, expected: Object, found: object, *, needed: bool) -> Iterator[Deviation]:
    there = found if isinstance(found, dict) else {}
    for name in sorted({*(expected if needed else ()), *there} - MACHINE, key=str):
        if name not in expected:
            yield Deviation(f"{path}.{shown(name)}", None, brief(there[name]))
        elif quantity.amount(there.get(name)) != quantity.amount(expected[name]):
            value = there.get(name)
            words = None if value is None else brief(value)
            yield Deviation(f"{path}.{name}", str(expected[name]), words)


def asks_twice(manifest: Object, lab_pod: LabPod) -> bool:
    """Tell whether a manifest has the GPU in requests too."""
    (container,) = manifest["spec"]["containers"]
    requests = (container.get("resources") or {}).get("requests") or {}
    return lab_pod.resource in requests


def _volumes(volumes: object) -> Iterator[Deviation]:
    """Yield volumes that stand on some nodes only."""
    for volume in volumes if isinstance(volumes, list) else ():
        tied = isinstance(volume, dict) and {"persistentVolumeClaim", "ephemeral"} & volume.keys()
        if tied:
            yield Deviation("spec.volumes", None, brief(volume))
