"""The manifests of an attempt (steps 4 to 7), compared by meaning: any YAML style will do.

The lab's manifests hold just what they need, so whatever else is set is told; only what changes
nothing is passed over: empty fields, the API's own defaults, labels and annotations of the Pod.
"""

import contextlib
from collections.abc import Hashable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

import yaml

from gpuwl.lab import manifests
from gpuwl.lab.names import LabPod
from gpuwl.verification import files
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.findings import Difference, Findings, brief, first_few, shown

DEFAULTS: dict[str, object] = {
    "spec.dnsPolicy": "ClusterFirst",
    "spec.enableServiceLinks": True,
    "spec.preemptionPolicy": "PreemptLowerPriority",
    "spec.priority": 0,
    "spec.restartPolicy": "Always",
    "spec.schedulerName": "default-scheduler",
    "spec.terminationGracePeriodSeconds": 30,
    "spec.containers[0].imagePullPolicy": "IfNotPresent",
    "spec.containers[0].terminationMessagePath": "/dev/termination-log",
    "spec.containers[0].terminationMessagePolicy": "File",
}
"""What the API server sets where a Pod says nothing
(https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/)."""
WITHOUT_MEANING = ("metadata.labels", "metadata.annotations")
LIMITS = "spec.containers[0].resources.limits."
MULTIPLES = {"k": 3, "M": 6, "G": 9, "m": -3, "u": -6, "n": -9}
"""Powers of ten behind a quantity
(https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/)."""


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice in a mapping, as YAML asks and PyYAML does not."""

    def construct_mapping(
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: FBT001, FBT002 - PyYAML's signature
    ) -> dict[Hashable, Any]:
        keys = [(key.tag, key.value) for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        twice = next((value for (tag, value) in keys if keys.count((tag, value)) > 1), None)
        if twice is not None:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {twice} stands twice", node.start_mark
            )
        return super().construct_mapping(node, deep)


def matches(attempt: Attempt, lab_pod: LabPod) -> Findings:
    """Check that a manifest's file says what the lab's Pod is, and nothing more."""
    data = files.read(attempt.artifacts, lab_pod.manifest)
    if data is None:
        yield files.missing(lab_pod.manifest)
    else:
        yield from first_few(compare(data, lab_pod), lab_pod.manifest)


def compare(data: bytes, lab_pod: LabPod) -> Iterator[Difference]:
    """Yield what differs between a manifest in YAML and the lab's Pod."""
    try:
        documents = [one for one in yaml.load_all(data, _Loader) if one is not None]
        deviations = [d for one in documents for d in _deviations(manifests.pod(lab_pod), one, "")]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        words = " ".join(str(error).split()) or "nested too deeply"
        yield Difference(lab_pod.manifest, "YAML", shown(words))
        return
    if len(documents) != 1:
        yield Difference(lab_pod.manifest, "one Pod", f"{len(documents)} documents")
        return
    for path, expected, found in deviations:
        yield Difference(f"{lab_pod.manifest}, {path or 'document'}", expected, found)


def _deviations(expected: object, found: object, path: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in expected:
            yield from _deviations(expected[key], found.get(key), f"{path}.{key}".lstrip("."))
        for key in sorted(found.keys() - expected.keys(), key=str):
            if not _is_idle(inner := f"{path}.{key}".lstrip("."), found[key]):
                yield shown(inner), "not set", brief(found[key])
    elif isinstance(expected, list) and isinstance(found, list) and len(found) == 1:
        yield from _deviations(expected[0], found[0], f"{path}[0]")
    elif isinstance(expected, list) and isinstance(found, list):
        yield path, "one", f"{len(found)}"
    elif not _is_same(expected, found, path):
        yield path, brief(expected), "not set" if found is None else brief(found)


def _is_idle(path: str, value: object) -> bool:
    """Tell whether a field that the lab does not set changes nothing."""
    if value is None or value in ({}, [], ""):
        return True
    return path in WITHOUT_MEANING or (path in DEFAULTS and DEFAULTS[path] == value)


def _is_same(expected: object, found: object, path: str) -> bool:
    if path.startswith(LIMITS):
        return quantity(found) == quantity(expected)
    return type(found) is type(expected) and found == expected


def quantity(value: object) -> Decimal | None:
    """Return a Kubernetes quantity (`1`, `"1"`, `1000m`) as a number, None where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    text = str(value)
    power = MULTIPLES.get(text[-1:], 0)
    with contextlib.suppress(InvalidOperation):
        number = Decimal(text[:-1] if power else text)
        return number.scaleb(power) if number.is_finite() else None
    return None
