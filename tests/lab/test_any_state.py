"""The same bytes from any starting state, by a whole run and by each step that may run alone."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from tests.conftest import finish_namespace
from tests.lab import expected
from tests.lab_fixtures import Lab, make_pod, remove_pod, set_resources

from gpuwl.k8s.client import Cluster
from gpuwl.k8s.objects import Object
from gpuwl.lab import paths
from gpuwl.lab.names import LABEL_KEY

pytestmark = pytest.mark.cluster

Spoil = Callable[[Cluster], None]


@dataclass(frozen=True)
class State:
    """A way to spoil a finished lab.

    `refused` are the steps whose preconditions it breaks: alone they must refuse. `judged` are the
    steps that it makes come out negative: the cluster does not show then what the lab is about.
    """

    name: str
    spoil: Spoil
    refused: frozenset[int] = field(default=frozenset())
    judged: frozenset[int] = field(default=frozenset())

    def __str__(self) -> str:
        return self.name


def state(
    name: str, *, refused: tuple[int, ...] = (), judged: tuple[int, ...] = ()
) -> Callable[[Spoil], Spoil]:
    def add(spoil: Spoil) -> Spoil:
        STATES.append(State(name, spoil, frozenset(refused), frozenset(judged)))
        return spoil

    return add


STATES: list[State] = []
GPU = {"limits": {"nvidia.com/gpu": "1"}}


def label(client: Cluster, node: str, value: str | None) -> None:
    body = {"metadata": {"labels": {LABEL_KEY: value}}}
    client.merge_patch(paths.node(node), body)


@state("finished")
def finished(client: Cluster) -> None:
    pass


@state("labels missing", refused=(7,))
def labels_missing(client: Cluster) -> None:
    for number in range(3):
        label(client, f"lab-node-{number}", None)


@state("labels swapped", refused=(7,), judged=(8,))
def labels_swapped(client: Cluster) -> None:
    label(client, "lab-node-0", "vm-vgpu")
    label(client, "lab-node-2", "container")


@state("label with a typo", refused=(7,), judged=(8,))
def label_with_a_typo(client: Cluster) -> None:
    label(client, "lab-node-2", "vm-gpu")


@state("typo resource left", judged=(8,))
def typo_resource(client: Cluster) -> None:
    set_resources(client, "lab-node-1", **{"GA102GL-A10": "2"})


@state("another mode's resource left", refused=(4,), judged=(7, 8))
def other_mode(client: Cluster) -> None:
    set_resources(client, "lab-node-1", gpu="8")


@state("resource in capacity alone", refused=(4, 6), judged=(8,))
def capacity_alone(client: Cluster) -> None:
    status = {"allocatable": {"nvidia.com/gpu": None}}
    client.merge_patch(f"{paths.node('lab-node-0')}/status", {"status": status})


@state("resource set back to zero", refused=(4, 6), judged=(8,))
def zero(client: Cluster) -> None:
    set_resources(client, "lab-node-0", gpu="0")


@state("fewer cards than the lab has")
def fewer(client: Cluster) -> None:
    set_resources(client, "lab-node-1", GA102GL_A10="1")


@state("resources on the wrong nodes", refused=(4, 5, 6, 7), judged=(8,))
def wrong_nodes(client: Cluster) -> None:
    set_resources(client, "lab-node-0", **{"gpu": None, "NVIDIA_A10-12Q": "4"})
    set_resources(client, "lab-node-1", GA102GL_A10=None, gpu="4")
    set_resources(client, "lab-node-2", **{"NVIDIA_A10-12Q": None, "GA102GL_A10": "2"})


@state("no Pods", refused=(6,))
def no_pods(client: Cluster) -> None:
    for name in ("job-container", "vmi-passthrough", "vmi-vgpu", "job-cross"):
        remove_pod(client, name)


@state("a Pod that asks for more", refused=(6,))
def asks_for_more(client: Cluster) -> None:
    remove_pod(client, "job-container")
    make_pod(client, "job-container", resources={"limits": {"nvidia.com/gpu": "2"}})


@state("a Pod that asks for another name", refused=(6,))
def asks_for_another(client: Cluster) -> None:
    remove_pod(client, "vmi-passthrough")
    make_pod(client, "vmi-passthrough", resources={"limits": {"nvidia.com/GA102GL-A10": "1"}})


@state("a Pod with a selector", refused=(6,))
def with_a_selector(client: Cluster) -> None:
    remove_pod(client, "job-container")
    selector = {"kubernetes.io/hostname": "lab-node-0"}
    make_pod(client, "job-container", resources=GPU, nodeSelector=selector)


@state("a Pod with a toleration", refused=(6,))
def with_a_toleration(client: Cluster) -> None:
    remove_pod(client, "job-container")
    make_pod(client, "job-container", resources=GPU, tolerations=[{"operator": "Exists"}])


@state("a Pod for another scheduler", refused=(6,))
def another_scheduler(client: Cluster) -> None:
    remove_pod(client, "job-container")
    make_pod(client, "job-container", resources=GPU, schedulerName="nobody")


@state("a Pod behind a scheduling gate", refused=(6,))
def gated(client: Cluster) -> None:
    remove_pod(client, "job-container")
    make_pod(client, "job-container", resources=GPU, schedulingGates=[{"name": "example.com/g"}])


@state("a Pod whose nodeName was written by hand", refused=(6,))
def node_name_by_hand(client: Cluster) -> None:
    remove_pod(client, "job-container")
    make_pod(client, "job-container", resources=GPU, nodeName="lab-node-0")


@state("a Pod bound to the wrong node", refused=(6,))
def bound_elsewhere(client: Cluster) -> None:
    remove_pod(client, "job-container")
    make_pod(client, "job-container", resources=GPU, nodeName="lab-node-2")
    scheduled = [{"type": "PodScheduled", "status": "True"}]
    client.merge_patch(
        f"{paths.pod('job-container')}/status", {"status": {"conditions": scheduled}}
    )


@state("a Pod on a node that is gone", refused=(6,))
def on_a_gone_node(client: Cluster) -> None:
    remove_pod(client, "vmi-passthrough")
    limits = {"limits": {"nvidia.com/GA102GL_A10": "1"}}
    make_pod(client, "vmi-passthrough", resources=limits, nodeName="gone")
    scheduled = [{"type": "PodScheduled", "status": "True"}]
    status = {"status": {"conditions": scheduled}}
    client.merge_patch(f"{paths.pod('vmi-passthrough')}/status", status)


@state("a Pod that is being deleted", refused=(6,))
def being_deleted(client: Cluster) -> None:
    found = client.get(paths.pod("job-container"))
    client.delete(paths.pod("job-container"), uid=found["metadata"]["uid"], grace_period=300)


@state("a Pod that failed", refused=(6,))
def failed(client: Cluster) -> None:
    body = {"status": {"phase": "Failed", "reason": "Evicted"}}
    client.merge_patch(f"{paths.pod('job-container')}/status", body)


@state("a Pod that succeeded", refused=(6,))
def succeeded(client: Cluster) -> None:
    client.merge_patch(f"{paths.pod('vmi-passthrough')}/status", {"status": {"phase": "Succeeded"}})


@state("job-cross holds all cards", refused=(6,))
def cross_holds_all(client: Cluster) -> None:
    for name in ("job-container", "job-cross"):
        remove_pod(client, name)
    limits = {"limits": {"nvidia.com/gpu": "4"}}
    make_pod(client, "job-cross", resources=limits, nodeName="lab-node-0")


@state("a VM holds the containers' cards", refused=(6,))
def vm_holds_cards(client: Cluster) -> None:
    for name in ("job-container", "vmi-vgpu"):
        remove_pod(client, name)
    limits = {"limits": {"nvidia.com/gpu": "3", "nvidia.com/NVIDIA_A10-12Q": "1"}}
    make_pod(client, "vmi-vgpu", resources=limits)
    make_pod(client, "job-container", resources={"limits": {"nvidia.com/gpu": "4"}})


@state("job-cross without its selector")
def cross_without_selector(client: Cluster) -> None:
    remove_pod(client, "job-cross")
    make_pod(client, "job-cross", resources=GPU)


@state("somebody else's Pods beside ours")
def other_pods(client: Cluster) -> None:
    make_pod(client, "somebody-elses", resources=GPU)
    make_pod(client, "another", metadata={"finalizers": ["example.com/hold"]})


@state("namespace gone", refused=(4, 5, 6, 7))
def namespace_gone(client: Cluster) -> None:
    for pod in client.get(paths.PODS)["items"]:
        remove_pod(client, pod["metadata"]["name"])
    namespace_terminating(client)
    finish_namespace(client, client.get(paths.THE_NAMESPACE))
    assert client.find(paths.THE_NAMESPACE) is None


@state("namespace being deleted", refused=(4, 5, 6, 7))
def namespace_terminating(client: Cluster) -> None:
    found = client.get(paths.THE_NAMESPACE)
    client.delete(paths.THE_NAMESPACE, uid=found["metadata"]["uid"])
    assert client.get(paths.THE_NAMESPACE)["metadata"]["deletionTimestamp"]


@state("namespace with a quota being deleted", refused=(4, 5, 6, 7))
def namespace_with_quota_terminating(client: Cluster) -> None:
    hard = {"hard": {"pods": "0"}}
    quota = {"metadata": {"name": "left-behind"}, "spec": hard}
    client.create(f"{paths.THE_NAMESPACE}/resourcequotas", quota)
    path = f"{paths.THE_NAMESPACE}/resourcequotas/left-behind/status"
    client.merge_patch(path, {"status": {**hard, "used": {"pods": "0"}}})
    namespace_terminating(client)


@pytest.mark.parametrize("state", STATES, ids=str)
def test_a_whole_run_reaches_the_same_bytes(state: State, lab: Lab, cluster: Cluster) -> None:
    assert lab("run", "--to", "7").code == 0
    state.spoil(cluster)
    lab.run_all("--yes")  # some of the Pods are not of our making
    assert lab.wrong_files() == {}
    assert lab.files() == expected.EVERY_FILE
    assert placements(cluster).items() >= PLACED.items()


def test_a_namespace_whose_release_was_answered_to_nobody(
    lab: Lab, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request is sent again then, and the second one finds nothing to release."""
    assert lab("run", "--to", "7").code == 0
    namespace_terminating(cluster)
    replace = Cluster.replace

    def twice(client: Cluster, path: str, body: Object) -> Object:
        replace(client, path, body)
        return replace(client, path, body)

    monkeypatch.setattr(Cluster, "replace", twice)
    lab.run_all()
    assert lab.wrong_files() == {}


PLACED = {
    "job-container": "lab-node-0",
    "vmi-passthrough": "lab-node-1",
    "vmi-vgpu": "lab-node-2",
    "job-cross": None,
}


def placements(client: Cluster) -> dict[str, str | None]:
    pods = client.get(paths.PODS)["items"]
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in pods}


@pytest.mark.parametrize("state", STATES, ids=str)
def test_each_step_alone_reaches_its_bytes_or_refuses(
    state: State, lab: Lab, cluster: Cluster
) -> None:
    lab("run", "--to", "7")
    for name in lab.files():
        (lab.root / name).unlink()
    state.spoil(cluster)
    # backwards, so that no step finds what another one has mended
    outcomes = {number: lab("step", str(number), "--yes").code for number in range(7, 0, -1)}
    expected_outcomes = dict.fromkeys(outcomes, 0)
    expected_outcomes |= dict.fromkeys(state.judged - {8}, 1) | dict.fromkeys(state.refused, 3)
    assert outcomes == expected_outcomes
    done = {number for number, code in outcomes.items() if code == 0}
    assert lab.wrong_files({name for number in done for name in expected.OF_STEP[number]}) == {}
    for number in state.refused:
        assert lab.files().isdisjoint(expected.OF_STEP[number])


@pytest.mark.parametrize("state", [s for s in STATES if 8 in s.judged], ids=str)
def test_step_8_tells_the_truth_about_a_spoilt_cluster(
    state: State, lab: Lab, cluster: Cluster
) -> None:
    lab.run_all()
    state.spoil(cluster)
    done = lab("step", "8")
    assert done.code == 1
    written = (lab.root / "out/consistency.txt").read_text()
    assert written.startswith("MISMATCH=lab-node-")
    assert all(line in done.err for line in written.splitlines())
