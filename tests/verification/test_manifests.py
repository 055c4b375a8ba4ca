"""Manifests of an attempt by hand: any style of YAML, but only what the lab's Pods hold."""

from itertools import pairwise

import pytest

from gpuwl.findings import Severity
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


TAINTS = [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]


def differing(text: str, lab_pod: LabPod = JOB_CONTAINER) -> dict[str, str]:
    found = manifest.compare(text.encode(), "x.manifest", lab_pod, TAINTS)
    errors = [one for one in found if one.severity is Severity.ERROR]
    return {one.what.removesuffix(" is wrong"): str(one.found) for one in errors}


@pytest.mark.parametrize(
    "text", [BLOCK, FLOW, DRY_RUN, ANCHORS], ids=["block", "flow", "dry run", "anchors"]
)
def test_any_style_of_the_same_pod_is_the_pod(text: str) -> None:
    assert differing(text) == {}


@pytest.mark.parametrize("lab_pod", PODS, ids=[pod.name for pod in PODS])
def test_the_lab_s_own_manifests_match(lab_pod: LabPod) -> None:
    assert differing(manifests.to_yaml(manifests.pod(lab_pod)), lab_pod) == {}


EXTRA = {
    "restartPolicy": "  restartPolicy: Never\n",
    "command": "    command: [sleep, '60']\n",
    "env": "    env: [{name: A, value: b}]\n",
    "cpu and memory": "        cpu: 500m\n        memory: 1Gi\n",
    "requests of cpu": "      requests: {cpu: 1, memory: 64Mi}\n",
    "a toleration of a taint that no node has": "  tolerations: [{key: other, operator: Exists}]\n",
    "a volume that any node has": "  volumes: [{name: tmp, emptyDir: {}}]\n",
    "a port": "    ports: [{containerPort: 80}]\n",
    "nothing said of affinity": "  affinity: {nodeAffinity: {}}\n",
    "a grace period": "  terminationGracePeriodSeconds: 5\n",
    "priority 0": "  priority: 0\n",
}


@pytest.mark.parametrize("name", EXTRA)
def test_what_changes_neither_request_nor_placement_is_right(name: str) -> None:
    assert differing(BLOCK + EXTRA[name]) == {}


@pytest.mark.parametrize(
    "text", [BLOCK.replace("\n", "\r\n"), "\ufeff" + BLOCK], ids=["CRLF", "BOM"]
)
def test_windows_manifests_are_right(text: str) -> None:
    assert differing(text) == {}


def test_requests_equal_to_limits_are_right_with_a_note() -> None:
    text = BLOCK + "      requests: {nvidia.com/gpu: 1}\n"
    (note,) = manifest.compare(text.encode(), "x.manifest", JOB_CONTAINER)
    assert note.severity is Severity.NOTE
    assert "the limit is enough" in note.what


LIMITS = "      limits:\n        nvidia.com/gpu: 1\n"


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        (
            LIMITS,
            LIMITS + "      requests: {nvidia.com/gpu: 2}\n",
            "spec.containers[0].resources.requests.nvidia.com/gpu",
        ),
        (
            LIMITS,
            LIMITS + "        nvidia.com/GA102GL_A10: 1\n",
            "spec.containers[0].resources.limits.nvidia.com/GA102GL_A10",
        ),
        (LIMITS, LIMITS + "  tolerations: [{key: dedicated}]\n", "spec.tolerations"),
        (LIMITS, LIMITS + "    ports: [{hostPort: 80}]\n", "spec.containers[0].ports"),
        (LIMITS, LIMITS + "  volumes: [{persistentVolumeClaim: {}}]\n", "spec.volumes"),
        (LIMITS, LIMITS + "  tolerations: [{operator: Exists}]\n", "spec.tolerations"),
        (LIMITS, LIMITS + "  affinity: {nodeAffinity: {required: [x]}}\n", "spec.affinity"),
        (LIMITS, LIMITS + "  nodeName: lab-node-0\n", "spec.nodeName"),
        (LIMITS, LIMITS + "  nodeSelector: {a: b}\n", "spec.nodeSelector"),
        (LIMITS, LIMITS + "  schedulerName: mine\n", "spec.schedulerName"),
        (LIMITS, LIMITS + "  initContainers: [{name: a}]\n", "spec.initContainers"),
        (LIMITS, LIMITS + "  - {name: second, image: x}\n", "spec.containers"),
        ("gpu: 1", "gpu: 2", "spec.containers[0].resources.limits.nvidia.com/gpu"),
        ("gpu: 1", "gpu: true", "spec.containers[0].resources.limits.nvidia.com/gpu"),
        ("gpu: 1", "gpu: 0x" + "f" * 5000, "it is not YAML"),
        ("name: cuda", "name: gpu", "spec.containers[0].name"),
        (IMAGE, "cuda:latest", "spec.containers[0].image"),
        ("  namespace: gpu-vm\n", "", "metadata.namespace"),
        ("kind: Pod", "kind: Deployment", "kind"),
    ],
)
def test_what_the_lab_forbids_is_named(old: str, new: str, where: str) -> None:
    assert old in BLOCK
    found = differing(BLOCK.replace(old, new))
    assert list(found) == [where]


def test_the_selector_of_the_cross_pod_is_the_only_one() -> None:
    text = manifests.to_yaml(manifests.pod(JOB_CROSS))
    assert differing(text.replace("vm-passthrough", "container"), JOB_CROSS) == {
        "spec.nodeSelector": "nvidia.com/gpu.workload.config=container"
    }
    more = text.replace("  nodeSelector:\n", "  nodeSelector:\n    zone: a\n")
    assert set(differing(more, JOB_CROSS)) == {"spec.nodeSelector"}


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
    found = list(manifest.compare(text.encode(), "x.manifest", JOB_CONTAINER))
    assert found
    assert all(len(str(one.found)) < 2000 and str(one.found).isprintable() for one in found)
