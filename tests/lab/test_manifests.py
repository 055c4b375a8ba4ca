"""The manifests to the byte, and which Pods of a cluster ask the same."""

import copy

import pytest
import yaml
from tests.lab import expected

from gpuwl.k8s.objects import Object
from gpuwl.lab import manifests
from gpuwl.lab.names import JOB_CONTAINER, JOB_CROSS, PODS, VMI_VGPU, LabPod


@pytest.mark.parametrize("lab_pod", PODS, ids=lambda pod: pod.name)
def test_each_manifest_to_the_byte(lab_pod: LabPod) -> None:
    text = manifests.to_yaml(manifests.pod(lab_pod))
    assert text == expected.MANIFESTS[lab_pod.manifest]
    assert yaml.safe_load(text) == manifests.pod(lab_pod)


def stored(lab_pod: LabPod) -> Object:
    """Return a Pod as the API server stores it, with the defaults that it adds."""
    pod = copy.deepcopy(manifests.pod(lab_pod))
    (container,) = pod["spec"]["containers"]
    limits = {name: str(amount) for name, amount in container["resources"]["limits"].items()}
    container["resources"] = {"limits": limits, "requests": dict(limits)}
    container |= {
        "imagePullPolicy": "IfNotPresent",
        "terminationMessagePath": "/dev/termination-log",
    }
    tolerations = [
        {
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        }
        for key in ("not-ready", "unreachable")
    ]
    pod["spec"] |= {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
        "tolerations": tolerations,
        "nodeName": "lab-node-0",
        "securityContext": {},
        "enableServiceLinks": True,
    }
    pod["metadata"] |= {"uid": "1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return pod


@pytest.mark.parametrize("lab_pod", PODS, ids=lambda pod: pod.name)
def test_what_the_server_stored_asks_the_same(lab_pod: LabPod) -> None:
    assert manifests.asks_the_same(stored(lab_pod), lab_pod)
    assert manifests.asks_the_same(manifests.pod(lab_pod), lab_pod)
    assert manifests.deviations(stored(lab_pod), lab_pod) == {}


def test_no_pod_of_the_lab_asks_what_another_does() -> None:
    for one in PODS:
        for other in PODS:
            assert manifests.asks_the_same(stored(one), other) == (one is other)


CONTAINER = {"name": "cuda", "image": "busybox"}
OTHERWISE: list[Object] = [
    {"nodeSelector": {"kubernetes.io/hostname": "lab-node-0"}},
    {"affinity": {"nodeAffinity": {}}},
    {"schedulerName": "mine"},
    {"schedulingGates": [{"name": "example.com/wait"}]},
    {"topologySpreadConstraints": [{"maxSkew": 1}]},
    {"tolerations": [{"operator": "Exists"}]},
    {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Equal", "value": "x"}]},
    {"tolerations": [{"key": "example.com/dedicated", "operator": "Exists"}]},
    {"initContainers": [CONTAINER]},
    {"containers": []},
    {"containers": [CONTAINER]},
]


@pytest.mark.parametrize("change", OTHERWISE, ids=range(len(OTHERWISE)))
def test_whatever_bears_on_the_placement_is_a_difference(change: Object) -> None:
    pod = stored(JOB_CONTAINER)
    pod["spec"] |= change
    assert not manifests.asks_the_same(pod, JOB_CONTAINER)
    assert set(manifests.deviations(pod, JOB_CONTAINER)) == set(change)


@pytest.mark.parametrize(
    "limits",
    [
        {},
        {"nvidia.com/gpu": "2"},
        {"nvidia.com/GPU": "1"},
        {"nvidia.com/gpu": "1", "cpu": "1"},
        {"nvidia.com/gpu": "1", "nvidia.com/NVIDIA_A10-12Q": "1"},
    ],
    ids=range(5),
)
def test_other_amounts_or_names_are_a_difference(limits: dict[str, str]) -> None:
    pod = stored(JOB_CONTAINER)
    pod["spec"]["containers"][0]["resources"] = {"limits": limits, "requests": limits}
    assert not manifests.asks_the_same(pod, JOB_CONTAINER)


def test_a_second_container_is_a_difference() -> None:
    pod = stored(JOB_CONTAINER)
    pod["spec"]["containers"].append(CONTAINER)
    assert not manifests.asks_the_same(pod, JOB_CONTAINER)


def test_defaults_that_a_limit_range_set_are_none() -> None:
    pod = stored(JOB_CONTAINER)
    pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "1"
    pod["spec"]["containers"][0]["resources"]["requests"] |= {"cpu": "100m", "memory": "1Gi"}
    assert not manifests.asks_the_same(pod, JOB_CONTAINER)
    pod["metadata"]["annotations"] = {"kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu"}
    assert manifests.asks_the_same(pod, JOB_CONTAINER)


def test_the_toleration_that_admission_adds_for_a_resource_is_none() -> None:
    pod = stored(JOB_CONTAINER)
    pod["spec"]["tolerations"].append({"key": "nvidia.com/gpu", "operator": "Exists"})
    assert manifests.asks_the_same(pod, JOB_CONTAINER)
    pod["spec"]["tolerations"].append({"key": "nvidia.com/other", "operator": "Exists"})
    assert not manifests.asks_the_same(pod, JOB_CONTAINER)


def test_a_pod_holds_otherwise_what_its_manifest_does_not_say() -> None:
    pod = stored(VMI_VGPU)
    assert not manifests.holds_otherwise(pod, VMI_VGPU, "nvidia.com/gpu")
    assert not manifests.holds_otherwise(pod, VMI_VGPU, VMI_VGPU.resource)
    pod["spec"]["initContainers"] = [{"resources": {"limits": {"nvidia.com/gpu": "3"}}}]
    assert manifests.holds_otherwise(pod, VMI_VGPU, "nvidia.com/gpu")
    crossed = stored(JOB_CROSS)
    crossed["spec"]["nodeSelector"] = {}
    assert not manifests.holds_otherwise(crossed, JOB_CROSS, "nvidia.com/gpu")
    assert manifests.holds_otherwise({"spec": {}}, JOB_CROSS, "nvidia.com/gpu")
