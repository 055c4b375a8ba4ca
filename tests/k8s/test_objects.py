"""Reading objects of the API, with the nulls and gaps that they have in the field."""

from typing import Any

import pytest

from gpuwl.k8s import objects
from gpuwl.k8s.client import resource_of
from gpuwl.lab import names, paths

LABEL = "nvidia.com/gpu.workload.config"


@pytest.mark.parametrize(
    ("metadata", "label"),
    [
        ({}, None),
        ({"labels": None}, None),
        ({"labels": {}}, None),
        ({"labels": {LABEL: ""}}, ""),
        ({"labels": {LABEL: "vm-vgpu", "x": "y"}}, "vm-vgpu"),
    ],
    ids=range(5),
)
def test_a_label(metadata: dict[str, Any], label: str | None) -> None:
    assert objects.label_of({"metadata": metadata}) == label


@pytest.mark.parametrize(
    "node", [{"metadata": {}}, {"status": {}}, {"status": {"allocatable": None}}], ids=range(3)
)
def test_a_node_that_advertises_nothing(node: dict[str, Any]) -> None:
    assert objects.gpu_resources(node) == {}
    assert objects.advertised(node) == {}


def test_only_names_of_the_vendor_that_are_not_zero_are_advertised() -> None:
    amounts = {
        "cpu": "1",
        "nvidia.com/gpu": "0",
        "nvidia.com/A": "2",
        "nvidia.company/x": "1",
        "amd.com/gpu": "1",
    }
    node = {"status": {"allocatable": amounts, "capacity": {"nvidia.com/gpu": "4"}}}
    assert objects.gpu_resources(node) == {"nvidia.com/gpu": "0", "nvidia.com/A": "2"}
    assert objects.advertised(node) == {"nvidia.com/A": "2"}
    assert objects.gpu_resources(node, "capacity") == {"nvidia.com/gpu": "4"}


def pod(node: str | None = None, status: str | None = None, **more: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": "False"}]
    conditions += [{"type": "PodScheduled", "status": status}] if status else []
    return {
        "metadata": {},
        "spec": {"nodeName": node},
        "status": {"conditions": conditions, **more},
    }


@pytest.mark.parametrize(
    ("found", "placed"),
    [
        (pod(), False),
        (pod("a"), False),
        (pod("a", "False"), False),
        (pod(None, "True"), False),
        (pod("", "True"), False),
        (pod("a", "True"), True),
        ({"spec": {}}, False),
    ],
    ids=range(7),
)
def test_a_bare_node_name_is_no_placement(found: dict[str, Any], *, placed: bool) -> None:
    assert objects.is_scheduled(found) is placed


@pytest.mark.parametrize(
    ("phase", "over"),
    [("Pending", False), ("Running", False), ("Succeeded", True), ("Failed", True), (None, False)],
)
def test_a_pod_that_has_run_its_course_is_over(phase: str | None, *, over: bool) -> None:
    assert objects.is_over(pod("a", "True", phase=phase)) is over


def test_a_pod_that_is_being_deleted_is_over() -> None:
    found = pod("a", "True")
    found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert objects.is_over(found)
    assert objects.is_terminating(found)


def test_the_labs_table() -> None:
    assert [(n.name, n.value, n.resource, n.amount) for n in names.lab_nodes()] == [
        ("lab-node-0", "container", "nvidia.com/gpu", "4"),
        ("lab-node-1", "vm-passthrough", "nvidia.com/GA102GL_A10", "2"),
        ("lab-node-2", "vm-vgpu", "nvidia.com/NVIDIA_A10-12Q", "4"),
    ]
    assert names.LABEL_KEY == LABEL


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (paths.NODES, "nodes"),
        (f"{paths.NODES}?limit=20", "nodes"),
        (paths.node("a"), "nodes/a"),
        (f"{paths.node('a')}/status", "nodes/a/status"),
        (paths.PODS, "pods in gpu-vm"),
        (paths.pod("x"), "pods/x in gpu-vm"),
        (paths.THE_NAMESPACE, "namespaces/gpu-vm"),
        (f"{paths.THE_NAMESPACE}/finalize", "namespaces/gpu-vm/finalize"),
        (paths.VERSION, "version"),
    ],
)
def test_an_error_names_the_resource_as_people_do(path: str, said: str) -> None:
    assert resource_of(path) == said
