"""Pod templates are found in every kind, counted, and ask what the scheduler says they ask."""

import itertools
from fractions import Fraction
from typing import Any

import pytest

from gpuwl.k8s import objects, pods
from gpuwl.k8s.client import Cluster
from gpuwl.k8s.objects import Object
from gpuwl.lab import paths
from gpuwl.system import waiting

POD: Object = {"containers": [{"name": "c", "image": "i"}]}


def job(**spec: Any) -> Object:
    return {"spec": {**spec, "template": {"spec": POD}}}


def nested(path: str, **fields: Any) -> Object:
    """Return {"a": {"b": {…fields}}} for the path "a.b"."""
    for key in reversed(path.split(".")):
        fields = {key: fields}
    return fields


COUNTED: dict[str, tuple[Object, int]] = {
    "Pod": ({"kind": "Pod", "spec": POD}, 1),
    "Deployment": (job(replicas=3), 3),
    "Deployment of none": (job(replicas=0), 0),
    "Job": (job(parallelism=4, completions=10), 4),
    "Job with few completions": (job(parallelism=4, completions=2), 2),
    "Job of completions alone": (job(completions=5), 1),
    "CronJob": (nested("spec.jobTemplate", **job(parallelism=2)), 2),
    "JobSet": ({"spec": {"replicatedJobs": [{"replicas": 3, "template": job(parallelism=2)}]}}, 6),
    "PyTorchJob": (
        nested("spec.pytorchReplicaSpecs.Worker", replicas=5, template={"spec": POD}),
        5,
    ),
    "RayCluster": (
        {"spec": {"workerGroupSpecs": [{"replicas": 2, "numOfHosts": 4, **job()["spec"]}]}},
        8,
    ),
    "RayCluster that grows": (
        {"spec": {"workerGroupSpecs": [{"minReplicas": 2, **job()["spec"]}]}},
        2,
    ),
    "TrainingRuntime": (
        nested("spec", mlPolicy={"numNodes": 2}, numNodes=2, template={"spec": POD}),
        2,
    ),
    "LeaderWorkerSet": (
        nested(
            "spec", replicas=3, leaderWorkerTemplate={"size": 4, "workerTemplate": {"spec": POD}}
        ),
        9,
    ),
    "its leader": (
        nested(
            "spec", replicas=3, leaderWorkerTemplate={"size": 4, "leaderTemplate": {"spec": POD}}
        ),
        3,
    ),
    "an unreadable count": (job(replicas="{{ n }}"), 1),
}


@pytest.mark.parametrize("name", COUNTED)
def test_templates_are_found_by_shape_and_counted(name: str) -> None:
    item, count = COUNTED[name]
    found = pods.templates(item)
    assert [each.count for each in found] == [count]
    value: Any = item
    for step in found[0].path:
        value = value[step]
    assert value is POD


def test_a_template_says_whose_it_is() -> None:
    item = {"kind": "DaemonSet", "metadata": {"namespace": "n", "generateName": "d-"}}
    item["spec"] = {"template": {"metadata": {"labels": {"a": "b"}}, "spec": POD}}
    found = pods.templates(item)[0]
    assert (found.kind, found.namespace, found.name) == ("DaemonSet", "n", "d-")
    assert found.metadata == {"labels": {"a": "b"}}
    assert found.per_node


NO_TEMPLATE: dict[str, Object] = {
    "status": {"status": POD},
    "schema": {"spec": {"openAPIV3Schema": {"properties": POD}}},
    "policy": {"spec": {"rules": [{"validate": {"pattern": {"spec": POD}}}]}},
    "a list of names": {"spec": {"containers": ["a", "b"]}},
    "an empty list": {"spec": {"containers": []}},
    "nameless": {"spec": {"containers": [{"port": 1}]}},
    "text": {"data": {"pod.yaml": "spec: {containers: [{name: a}]}"}},
}


@pytest.mark.parametrize("name", NO_TEMPLATE)
def test_what_only_looks_like_a_template_is_none(name: str) -> None:
    assert pods.templates(NO_TEMPLATE[name]) == []


def test_an_object_deeper_than_python_can_recurse_is_walked() -> None:
    item: Object = {"spec": POD}
    for _ in range(5000):
        item = {"a": [item]}
    assert len(pods.templates(item)) == 1


def test_vms_are_found_in_all_their_kinds_with_their_devices() -> None:
    gpus = [{"name": "a", "deviceName": "nvidia.com/A"}, {"claimName": "c", "requestName": "r"}]
    vmi = {"domain": {"devices": {"gpus": gpus, "hostDevices": [{"deviceName": "nvidia.com/B"}]}}}
    vm = {"spec": {"template": {"spec": vmi}}}
    pool = {"spec": {"replicas": 3, "virtualMachineTemplate": vm}}
    for item, count in ((vm, 1), (pool, 3), ({"spec": vmi}, 1)):
        (found,) = pods.vm_templates(item)
        assert (found.spec, found.count) == (vmi, count)
    devices = pods.vm_devices(vmi)
    assert [(each.list, each.name, each.claim, each.request) for each in devices] == [
        ("gpus", "nvidia.com/A", "", ""),
        ("gpus", "", "c", "r"),
        ("hostDevices", "nvidia.com/B", "", ""),
    ]
    assert devices[2].path == ("domain", "devices", "hostDevices", 0)
    assert [each.path for each in pods.vm_devices({"gpus": gpus})] == [("gpus", 0), ("gpus", 1)]


NUMBERS = itertools.count()


def container(
    amounts: dict[str, str] | None = None, *, always: bool = False, **fields: Any
) -> Object:
    resources = {**({"limits": amounts} if amounts else {}), **fields}
    made: Object = {"name": f"c{next(NUMBERS)}", "image": "i", "resources": resources}
    return {**made, "restartPolicy": "Always"} if always else made


N = "nvidia.com/gpu"
ASKED: dict[str, tuple[Object, dict[str, Any]]] = {
    "limits are requests": ({"containers": [container({N: "2"})]}, {N: 2}),
    "a request of its own": (
        {"containers": [container({"cpu": "2"}, requests={"cpu": "500m"})]},
        {"cpu": Fraction(1, 2)},
    ),
    "containers add up": ({"containers": [container({N: "2"}), container({N: "1"})]}, {N: 3}),
    "the largest init container": (
        {"containers": [container({N: "1"})], "initContainers": [container({N: "3"}), container({N: "2"})]},
        {N: 3},
    ),
    "a sidecar before an init container": (
        {
            "containers": [container({N: "1"})],
            "initContainers": [container({N: "2"}, always=True), container({N: "3"})],
        },
        {N: 5},
    ),
    "a sidecar behind an init container": (
        {
            "containers": [container({N: "1"})],
            "initContainers": [container({N: "4"}), container({N: "2"}, always=True)],
        },
        {N: 4},
    ),
    "overhead": ({"containers": [container({"memory": "1Mi"})], "overhead": {"memory": "1"}}, {"memory": 2**20 + 1}),
    "the Pod's own requests": (
        {"containers": [container({"cpu": "1", N: "1"})], "resources": {"requests": {"cpu": "3"}}},
        {"cpu": 3, N: 1},
    ),
    "the Pod's own limit": (
        {"containers": [container()], "resources": {"limits": {"cpu": "3"}}},
        {"cpu": 3},
    ),
    "the Pod's own limit and a container's request": (
        {"containers": [container(requests={"cpu": "1"})], "resources": {"limits": {"cpu": "3"}}},
        {"cpu": 1},
    ),
    "parts of a thousandth": (
        {"containers": [container(requests={"cpu": "300u"}), container(requests={"cpu": "300u"})]},
        {"cpu": Fraction(1, 1000)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_requests_are_counted(name: str) -> None:
    spec, asked = ASKED[name]
    assert pods.requests(spec) == asked


def test_strangers_shapes_count_as_nothing() -> None:
    spec = {"containers": [{"resources": []}, {"resources": {"limits": {N: [], "cpu": "lots"}}}, 7]}
    assert pods.requests({**spec, "initContainers": {}, "overhead": "x"}) == {}


REAL = [name for name in ASKED if name not in ("overhead", "parts of a thousandth")]
"""Overhead needs a RuntimeClass, and the server refuses parts of a thousandth."""


@pytest.mark.parametrize("name", REAL)
def test_the_scheduler_counts_the_same(cluster: Cluster, name: str) -> None:
    """It binds a Pod to a node that has exactly what we say, and to none that has less."""
    spec, asked = ASKED[name]
    less = [{**asked, key: _less(key, asked)} for key in asked]
    for index, amounts in enumerate((asked, *less)):
        _node(cluster, f"exact-{index}", amounts)
    cluster.create(paths.NAMESPACES, {"metadata": {"name": "gpu-vm"}})
    body = {
        "metadata": {"name": "asks"},
        "spec": {**spec, "nodeSelector": {"gpuwl.dev/exact": "yes"}},
    }
    cluster.create(paths.PODS, body)
    assert _placed(cluster) == "exact-0"


def _less(key: str, asked: dict[str, Any]) -> Any:
    return asked[key] - (Fraction(1, 1000) if key == "cpu" else 1)


def _node(cluster: Cluster, name: str, amounts: dict[str, Any]) -> None:
    listed = {
        key: f"{int(amount * 1000)}m" if key == "cpu" else str(amount)
        for key, amount in {"cpu": 8, "memory": 2**30, **amounts}.items()
    }
    status = {"allocatable": {"pods": "10", **listed}, "capacity": {"pods": "10", **listed}}
    metadata = {"name": name, "labels": {"gpuwl.dev/exact": "yes"}}
    cluster.create(paths.NODES, {"metadata": metadata, "status": status})


def _placed(cluster: Cluster) -> str | None:
    return waiting.until(
        lambda: objects.node_of(cluster.get(paths.pod("asks"))) or None, seconds=10
    )
