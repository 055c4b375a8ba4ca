"""Manifests of an attempt by hand: any style of YAML, but only what the lab's Pods hold."""

from itertools import pairwise

import pytest

from gpuwl.lab import manifests
from gpuwl.lab.names import IMAGE, JOB_CONTAINER, JOB_CROSS, PODS, LabPod
from gpuwl.verification import manifest

BLOCK = f"""\
apiVersion: v1
kind: Pod
metadata:
  name: job-container
  namespace: gpu-vm
spec:
  containers:
  - name: cuda
    image: {IMAGE}
    resources:
      limits:
        nvidia.com/gpu: 1
"""
FLOW = f"""\
# by hand
{{apiVersion: v1, kind: Pod, metadata: {{namespace: gpu-vm, name: "job-container"}},
 spec: {{containers: [{{resources: {{limits: {{nvidia.com/gpu: '1'}}}}, image: {IMAGE}, name: cuda}}]}}}}
"""
DRY_RUN = f"""\
---
apiVersion: v1
kind: Pod
metadata:
  creationTimestamp: null
  labels: {{run: job-container}}
  name: job-container
  namespace: gpu-vm
spec:
  containers:
  - image: {IMAGE}
    name: cuda
    resources:
      limits: {{"nvidia.com/gpu": 1000m}}
  dnsPolicy: ClusterFirst
  restartPolicy: Always
  tolerations: []
status: {{}}
"""
ANCHORS = BLOCK.replace("limits:", "limits: &one").replace("apiVersion: v1", "apiVersion: &v v1")


def differing(text: str, lab_pod: LabPod = JOB_CONTAINER) -> dict[str, str]:
    prefix = f"{lab_pod.manifest}, "
    found = manifest.compare(text.encode(), lab_pod)
    return {one.what.removeprefix(prefix): one.found for one in found}


@pytest.mark.parametrize(
    "text", [BLOCK, FLOW, DRY_RUN, ANCHORS], ids=["block", "flow", "dry run", "anchors"]
)
def test_any_style_of_the_same_pod_is_the_pod(text: str) -> None:
    assert differing(text) == {}


@pytest.mark.parametrize("lab_pod", PODS, ids=[pod.name for pod in PODS])
def test_the_lab_s_own_manifests_match(lab_pod: LabPod) -> None:
    assert differing(manifests.to_yaml(manifests.pod(lab_pod)), lab_pod) == {}


LIMITS = "      limits:\n        nvidia.com/gpu: 1\n"


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        (
            LIMITS,
            LIMITS + "      requests: {nvidia.com/gpu: 1}\n",
            "spec.containers[0].resources.requests",
        ),
        (LIMITS, LIMITS + "  tolerations: [{operator: Exists}]\n", "spec.tolerations"),
        (LIMITS, LIMITS + "  affinity: {nodeAffinity: {}}\n", "spec.affinity"),
        (LIMITS, LIMITS + "  nodeName: lab-node-0\n", "spec.nodeName"),
        (LIMITS, LIMITS + "  nodeSelector: {a: b}\n", "spec.nodeSelector"),
        (LIMITS, LIMITS + "  schedulerName: mine\n", "spec.schedulerName"),
        (LIMITS, LIMITS + "  initContainers: [{name: a}]\n", "spec.initContainers"),
        (LIMITS, LIMITS + "  - {name: second, image: x}\n", "spec.containers"),
        (LIMITS, LIMITS + "        cpu: 1\n", "spec.containers[0].resources.limits.cpu"),
        ("gpu: 1", "gpu: 2", "spec.containers[0].resources.limits.nvidia.com/gpu"),
        ("gpu: 1", "gpu: true", "spec.containers[0].resources.limits.nvidia.com/gpu"),
        ("gpu: 1", "gpu: 0x" + "f" * 5000, "document"),
        ("name: cuda", "name: gpu", "spec.containers[0].name"),
        (IMAGE, "cuda:latest", "spec.containers[0].image"),
        ("  namespace: gpu-vm\n", "", "metadata.namespace"),
        ("kind: Pod", "kind: Deployment", "kind"),
    ],
)
def test_what_the_lab_forbids_is_named(old: str, new: str, where: str) -> None:
    assert old in BLOCK
    found = differing(BLOCK.replace(old, new))
    assert len(found) == 1
    assert where in {*found, "document" if JOB_CONTAINER.manifest in found else ""}


def test_the_selector_of_the_cross_pod_is_the_only_one() -> None:
    text = manifests.to_yaml(manifests.pod(JOB_CROSS))
    assert set(differing(text.replace("vm-passthrough", "container"), JOB_CROSS)) == {
        "spec.nodeSelector.nvidia.com/gpu.workload.config"
    }
    more = text.replace("  nodeSelector:\n", "  nodeSelector:\n    zone: a\n")
    assert set(differing(more, JOB_CROSS)) == {"spec.nodeSelector.zone"}


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in pairwise("abcdefghi")
)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "just words",
        "- a\n- list\n",
        "a: [unclosed",
        "{{{{",
        "[" * 5000,
        BLOCK + "---\n" + BLOCK,
        BLOCK.replace("kind: Pod\n", "kind: Pod\nkind: Pod\n"),
        "!!python/object/apply:os.system ['true']",
        "\x00",
        "? {a: b}\n: c\n",
        BLOCK.replace("  name: job-container\n", "  name: &a [*a]\n"),
        BOMB,
    ],
    ids=[
        "empty", "scalar", "list", "unclosed", "unhashable", "deep", "two documents", "key twice",
        "object tag", "control character", "mapping as key", "recursive", "alias bomb",
    ],
)  # fmt: skip
def test_what_is_no_pod_is_said_in_short(text: str) -> None:
    found = list(manifest.compare(text.encode(), JOB_CONTAINER))
    assert found
    assert all(len(one.found) < 2000 and one.found.isprintable() for one in found)


@pytest.mark.parametrize(
    ("value", "number"),
    [(1, 1), ("1.00", 1), ("1000m", 1), ("1e0", 1), ("1k", 1000), (1.0, 1), ("1x", None), ("", None),
     (None, None), (True, None), ("NaN", None), ("Infinity", None)],
)  # fmt: skip
def test_quantities_are_compared_as_numbers(value: object, number: int | None) -> None:
    assert manifest.quantity(value) == number
