"""Other nodes than the lab's own, and clusters that are in real use."""

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Run

from gpuwl.k8s import kubelets, objects
from gpuwl.k8s.client import Cluster
from gpuwl.lab import paths, survey
from gpuwl.lab.local_plane import lab_nodes
from gpuwl.lab.names import NODE_NAMES
from gpuwl.lab.names import lab_nodes as three_nodes

pytestmark = pytest.mark.cluster

OTHERS = ("b-node", "a-node", "c.node")


def add_node(cluster: Cluster, name: str, **amounts: str) -> None:
    node = lab_nodes()[0]
    node["metadata"] = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    gpus = {f"nvidia.com/{resource}": amount for resource, amount in amounts.items()}
    for field in ("capacity", "allocatable"):
        node["status"][field] = {**node["status"][field], **gpus}
    cluster.create(paths.NODES, node)


def renew_lease(cluster: Cluster, name: str, *, seconds_ago: float) -> None:
    renewed = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=seconds_ago)
    spec = {
        "holderIdentity": name,
        "leaseDurationSeconds": 40,
        "renewTime": renewed.isoformat(timespec="microseconds").replace("+00:00", "Z"),
    }
    body = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": spec,
    }
    found = cluster.find(f"{kubelets.LEASES}/{name}")
    if found:
        cluster.merge_patch(f"{kubelets.LEASES}/{name}", {"spec": spec})
    else:
        cluster.create(kubelets.LEASES, body)


@pytest.fixture(autouse=True)
def no_leases(cluster: Cluster) -> Iterator[None]:
    """Leave no node with a live kubelet to the next test."""
    yield
    for lease in cluster.get(kubelets.LEASES)["items"]:
        path = f"{kubelets.LEASES}/{lease['metadata']['name']}"
        cluster.delete(path, uid=lease["metadata"]["uid"])


def seen(cluster: Cluster) -> dict[str, Any]:
    """What a run could change: nodes with labels and GPUs, Pods, the namespace."""
    nodes = {
        node["metadata"]["name"]: (
            objects.label_of(node),
            objects.gpu_resources(node, "capacity"),
            objects.gpu_resources(node),
        )
        for node in cluster.get(paths.NODES)["items"]
    }
    return {
        "nodes": nodes,
        "pods": cluster.get("/api/v1/pods")["items"],
        "namespace": cluster.find(paths.THE_NAMESPACE),
    }


@pytest.fixture
def others(cluster: Cluster) -> tuple[str, str, str]:
    for name in OTHERS:
        add_node(cluster, name)
    return OTHERS


@pytest.mark.usefixtures("others")
def test_a_run_on_other_nodes_touches_no_others(cluster: Cluster, gpuwl: Run, root: Path) -> None:
    done = gpuwl("run", "--all", "--lab-nodes", ",".join(OTHERS))
    assert done.returncode == 0, done.stderr
    assert (root / "out/01-nodes.txt").read_text() == (
        "a-node vm-passthrough\nb-node container\nc.node vm-vgpu\n"
    )
    assert (root / "out/03-resources.txt").read_text() == (
        "a-node nvidia.com/GA102GL_A10 2\nb-node nvidia.com/gpu 4\n"
        "c.node nvidia.com/NVIDIA_A10-12Q 4\n"
    )
    assert (root / "out/06-placement.txt").read_text() == (
        "job-container b-node\nvmi-passthrough a-node\nvmi-vgpu c.node\n"
    )
    for name in NODE_NAMES:
        assert seen(cluster)["nodes"][name] == (None, {}, {})


@pytest.mark.usefixtures("others")
def test_what_gpuwl_set_itself_gives_no_cause_to_ask(gpuwl: Run) -> None:
    for _ in range(2):
        done = gpuwl("run", "--all", env={"GPUWL_LAB_NODES": ",".join(OTHERS)})
        assert done.returncode == 0, done.stderr
        assert "warning" not in done.stderr


@pytest.mark.usefixtures("others")
@pytest.mark.parametrize("command", [("run", "--all"), ("step", "1"), ("run", "--to", "3")])
def test_a_live_kubelet_stops_it(cluster: Cluster, gpuwl: Run, command: tuple[str, ...]) -> None:
    renew_lease(cluster, "a-node", seconds_ago=3)
    before = seen(cluster)
    done = gpuwl(*command, "--lab-nodes", ",".join(OTHERS))
    assert done.returncode == 3
    assert "node a-node: its kubelet is alive" in done.stderr
    assert (
        "node a-node: would change labels nvidia.com/gpu.workload.config: none -> " in done.stderr
    )
    assert "node b-node: would change labels " in done.stderr, "each node's changes are listed"
    assert "node b-node: its kubelet" not in done.stderr
    assert "--yes" in done.stderr
    assert seen(cluster) == before


@pytest.mark.usefixtures("others")
def test_a_stale_lease_does_not(cluster: Cluster, gpuwl: Run) -> None:
    renew_lease(cluster, "a-node", seconds_ago=3600)
    assert gpuwl("run", "--all", "--lab-nodes", ",".join(OTHERS)).returncode == 0


def test_nodes_with_gpus_are_shown_with_what_would_change(
    cluster: Cluster, gpuwl: Run, root: Path
) -> None:
    add_node(cluster, "a-node", gpu="8")
    add_node(cluster, "b-node", **{"mig-1g.10gb": "7"})
    add_node(cluster, "c.node", gpu="0")
    before = seen(cluster)
    done = gpuwl("run", "--all", "--lab-nodes", "a-node,b-node,c.node", "--output", "json")
    assert done.returncode == 3
    details = json.loads(done.stdout)["error"]["details"]
    assert "node a-node: it advertises GPUs already: nvidia.com/gpu=8" in details
    assert "node a-node: would change capacity nvidia.com/gpu: 8 -> 4" in details
    assert "node b-node: would change allocatable nvidia.com/mig-1g.10gb: 7 -> none" in details
    assert [line for line in details if line.startswith("node c.node: ")] == [
        "node c.node: would change labels nvidia.com/gpu.workload.config: none -> vm-vgpu",
        "node c.node: would change capacity nvidia.com/NVIDIA_A10-12Q: none -> 4",
        "node c.node: would change capacity nvidia.com/gpu: 0 -> none",
        "node c.node: would change allocatable nvidia.com/NVIDIA_A10-12Q: none -> 4",
        "node c.node: would change allocatable nvidia.com/gpu: 0 -> none",
        "node c.node: Pods of the lab would go there",
    ]
    assert seen(cluster) == before
    assert not root.exists()

    done = gpuwl("run", "--all", "--lab-nodes", "a-node,b-node,c.node", "--yes")
    assert done.returncode == 0, done.stderr
    assert "warning: node a-node: would change capacity nvidia.com/gpu: 8 -> 4" in done.stderr
    assert (root / "out/consistency.txt").read_text() == "OK=3\n"


@pytest.mark.usefixtures("others")
def test_a_use_that_somebody_gave_a_node_is_not_taken_without_a_word(
    cluster: Cluster, gpuwl: Run
) -> None:
    label = {"metadata": {"labels": {"nvidia.com/gpu.workload.config": "container"}}}
    cluster.merge_patch(paths.node("a-node"), label)
    done = gpuwl("run", "--to", "1", "--lab-nodes", ",".join(OTHERS))
    assert done.returncode == 3
    assert "node a-node: it has a use already: nvidia.com/gpu.workload.config=container" in (
        done.stderr
    )


def test_a_pod_whose_kubelet_lives_has_its_grace_period(
    cluster: Cluster, gpuwl: Run, tmp_path: Path
) -> None:
    """Only without a kubelet, or on our own control plane, a Pod has to be ended at once."""
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}  # a cluster like any other
    done = gpuwl("run", "--all", env=env)
    assert done.returncode == 0, done.stderr
    renew_lease(cluster, "lab-node-0", seconds_ago=1)
    for name in ("job-container", "vmi-vgpu"):
        found = cluster.get(paths.pod(name))
        cluster.delete(paths.pod(name), uid=found["metadata"]["uid"], grace_period=0)
        make_bound_pod(cluster, name, "lab-node-0" if name == "job-container" else "lab-node-2")
    done = gpuwl("run", "--all", "--yes", "--timeout", "0.5", env=env)
    assert done.returncode == 4
    left = cluster.get(paths.pod("job-container"))["metadata"]
    assert left["deletionGracePeriodSeconds"] == 2
    assert "Pod job-container is still being deleted after 2.5 s" in done.stderr
    found = cluster.get(paths.pod("job-container"))
    cluster.delete(paths.pod("job-container"), uid=found["metadata"]["uid"], grace_period=0)
    done = gpuwl("run", "--all", "--yes", env=env)
    assert done.returncode == 0, done.stderr


def make_bound_pod(cluster: Cluster, name: str, node: str) -> None:
    container = {"name": "other", "image": "other"}
    spec = {"containers": [container], "nodeName": node, "terminationGracePeriodSeconds": 2}
    cluster.create(paths.PODS, {"metadata": {"name": name}, "spec": spec})


def test_the_labs_own_nodes_are_never_asked_about(cluster: Cluster, gpuwl: Run) -> None:
    for name in NODE_NAMES:
        renew_lease(cluster, name, seconds_ago=1)
    status = {field: {"nvidia.com/gpu": "8"} for field in ("capacity", "allocatable")}
    cluster.merge_patch(f"{paths.node(NODE_NAMES[1])}/status", {"status": status})
    done = gpuwl("run", "--all")
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr


@pytest.mark.parametrize("resource", ["gpu", "GA102GL_A10", "NVIDIA_A10-12Q"])
def test_a_node_outside_the_lab_that_could_take_a_pod_stops_it(
    cluster: Cluster, gpuwl: Run, resource: str
) -> None:
    add_node(cluster, "stranger", **{resource: "1"})
    before = seen(cluster)
    done = gpuwl("run", "--all")
    assert done.returncode == 3
    assert f"node stranger is not of the lab and advertises nvidia.com/{resource}=1" in done.stderr
    assert seen(cluster) == before
    # what makes no Pod has nothing to fear from it
    assert gpuwl("run", "--to", "3").returncode == 0
    assert gpuwl("step", "8").returncode == 0


@pytest.mark.parametrize("amounts", [{"gpu": "0"}, {"mig-1g.10gb": "2"}])
def test_a_node_outside_that_could_not_does_not(
    cluster: Cluster, gpuwl: Run, amounts: dict[str, str]
) -> None:
    add_node(cluster, "stranger", **amounts)
    done = gpuwl("run", "--all")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("names", ["a,b", "a,b,c,d", "a,a,b", "a,b,B", "a,b,-c", "a,,b", ""])
def test_names_that_cannot_be_nodes_are_refused(gpuwl: Run, names: str) -> None:
    done = gpuwl("run", "--all", "--lab-nodes", names)
    assert done.returncode == 2
    assert "--lab-nodes" in done.stderr


def test_a_large_cluster_is_looked_through_in_pages(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for index in range(4):
        add_node(cluster, f"stranger-{index}", gpu=str(index))
    whole = survey.survey(cluster, three_nodes())
    monkeypatch.setattr(survey, "PAGE", 2)
    before = cluster.requests
    assert survey.survey(cluster, three_nodes()) == whole
    assert cluster.requests - before == 1 + 4, "the namespace, and four pages"
    assert set(whole.nodes) == set(NODE_NAMES)
    assert whole.outside == {f"stranger-{i}": {"nvidia.com/gpu": str(i)} for i in (1, 2, 3)}
