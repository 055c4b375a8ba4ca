"""What stands in the way is said, with the scheduler's or the server's own words, and it is safe."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.faults.proxy import Proxy
from tests.lab_fixtures import Done, Lab, make_pod

from gpuwl.controlplane import plane, process
from gpuwl.errors import SetupError
from gpuwl.k8s import objects
from gpuwl.k8s.client import Cluster
from gpuwl.lab import journal, paths
from gpuwl.lab.changes import Changes
from gpuwl.lab.names import JOB_CONTAINER, LABEL_KEY
from gpuwl.system import waiting

pytestmark = pytest.mark.cluster

SHORT = ("--timeout", "1")


def in_the_way(node: dict[str, Any]) -> Callable[[Cluster], None]:
    return lambda client: patch_node(client, "lab-node-0", node)


def patch_node(client: Cluster, name: str, spec: dict[str, Any]) -> None:
    client.merge_patch(paths.node(name), {"spec": spec})


def taint(key: str, effect: str = "NoSchedule") -> dict[str, Any]:
    return {"taints": [{"key": key, "effect": effect}]}


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"unschedulable": True}, "were unschedulable"),
        (taint("example.com/dedicated"), "untolerated taint"),
        (taint("node.kubernetes.io/not-ready"), "untolerated taint"),
    ],
    ids=["cordoned", "tainted", "not-ready"],
)
def test_a_node_that_takes_no_pod(
    spec: dict[str, Any], words: str, lab: Lab, cluster: Cluster
) -> None:
    patch_node(cluster, "lab-node-0", spec)
    done = lab("run", "--all", *SHORT)
    assert_undecided(done, lab)
    assert words in done.err
    patch_node(cluster, "lab-node-0", {"unschedulable": None, "taints": None})
    lab.run_all()
    assert lab.wrong_files() == {}


def assert_undecided(done: Done, lab: Lab) -> None:
    """The wait of step 4 ran out: its words, its record, and no result of it on disk."""
    assert done.code == 4, done.err
    assert "error: Pod job-container has no node after 1 s\n" in done.err
    assert "kube-scheduler says: 0/" in done.err
    assert not (lab.root / "out/04-container.txt").exists()
    record = json.loads((lab.root / "out/run.json").read_text())["steps"][-1]
    assert (record["number"], record["result"]) == (4, "failed")
    assert record["error"] == "Pod job-container has no node after 1 s"


def test_a_node_whose_cards_somebody_else_holds(lab: Lab, cluster: Cluster) -> None:
    assert lab("run", "--to", "3").code == 0
    make_pod(cluster, "somebody-elses", resources={"limits": {"nvidia.com/gpu": "4"}})
    assert waiting.until(lambda: scheduled(cluster, "somebody-elses"), seconds=10)
    done = lab("run", "--all", *SHORT)
    assert_undecided(done, lab)
    assert "Insufficient nvidia.com/gpu" in done.err
    assert cluster.find(paths.pod("somebody-elses")), "a Pod that is not ours stays"


def scheduled(client: Cluster, name: str) -> bool | None:
    return objects.is_scheduled(client.get(paths.pod(name))) or None


def test_the_files_of_an_earlier_run_stay_when_a_wait_runs_out(lab: Lab, cluster: Cluster) -> None:
    lab.run_all()
    before = lab.contents()
    found = cluster.get(paths.pod("job-container"))
    cluster.delete(paths.pod("job-container"), uid=found["metadata"]["uid"], grace_period=0)
    patch_node(cluster, "lab-node-0", {"unschedulable": True})
    assert lab("step", "4", *SHORT).code == 4
    after = lab.contents()
    assert {name for name in before if after[name] != before[name]} == {"out/run.json"}


@pytest.fixture
def without_node_0(cluster: Cluster) -> Iterator[Callable[[], None]]:
    """Returns a function that deletes lab-node-0; afterwards it is there again."""
    node = cluster.get(paths.node("lab-node-0"))

    def delete() -> None:
        cluster.delete(paths.node("lab-node-0"), uid=node["metadata"]["uid"])

    yield delete
    if cluster.find(paths.node("lab-node-0")) is None:
        kept = {key: node["metadata"][key] for key in ("name", "labels")}
        cluster.create(paths.NODES, {**node, "metadata": kept, "spec": {}})


def test_a_node_that_is_missing(
    without_node_0: Callable[[], None], lab: Lab, cluster: Cluster
) -> None:
    without_node_0()
    nodes = cluster.get(paths.NODES)["items"]
    done = lab("run", "--all")
    assert done.code == 3
    assert "lacks nodes of the lab: lab-node-0\n" in done.err
    assert "  its nodes: lab-node-1, lab-node-2\n" in done.err
    assert "hint: " in done.err
    assert cluster.get(paths.NODES)["items"] == nodes, "nothing was changed"
    assert not lab.root.exists()


def test_a_node_that_goes_while_a_step_waits(
    without_node_0: Callable[[], None], lab: Lab, cluster: Cluster
) -> None:
    patch_node(cluster, "lab-node-0", {"unschedulable": True})

    def refused() -> bool | None:
        pod = cluster.find(paths.pod("job-container"))
        return True if pod and objects.scheduled(pod).get("message") else None

    def delete_when_it_waits() -> None:
        if waiting.until(refused, seconds=30):
            without_node_0()

    thread = threading.Thread(target=delete_when_it_waits)
    thread.start()
    done = lab("run", "--all", "--timeout", "3")
    thread.join()
    assert done.code == 4, done.err
    assert "kube-scheduler says: 0/" in done.err
    assert "  node lab-node-0 is gone from the cluster since the start\n" in done.err


def test_a_pod_that_somebody_deletes_while_it_waits(lab: Lab, cluster: Cluster) -> None:
    patch_node(cluster, "lab-node-0", {"unschedulable": True})

    def there() -> dict[str, Any] | None:
        return cluster.find(paths.pod("job-container"))

    def delete_it() -> None:
        found = waiting.until(there, seconds=30)
        if found:
            cluster.delete(paths.pod("job-container"), uid=found["metadata"]["uid"], grace_period=0)

    thread = threading.Thread(target=delete_it)
    thread.start()
    done = lab("run", "--all", "--timeout", "5")
    thread.join()
    assert done.code == 3
    assert "Pod job-container was deleted while it waited for the scheduler" in done.err


@pytest.fixture
def suspended_scheduler(control_plane: plane.Plane) -> Iterator[process.Identity]:
    """A scheduler that lives and says nothing."""
    record = process.read_record(process.record_path(control_plane.folder, "kube-scheduler"))
    assert record is not None
    os.kill(record.pid, signal.SIGSTOP)
    yield record
    os.kill(record.pid, signal.SIGCONT)


SAID_NOTHING = "kube-scheduler has not said anything about it: does one run?"


def test_a_scheduler_of_a_cluster_that_says_nothing(
    lab: Lab, control_plane: plane.Plane, suspended_scheduler: process.Identity, tmp_path: Path
) -> None:
    proxy = Proxy(control_plane.kubeconfig)  # at its address nobody looks for a process of ours
    try:
        kubeconfig = proxy.write_kubeconfig(tmp_path / "kubeconfig")
        done = lab("run", "--all", "--kubeconfig", str(kubeconfig), *SHORT)
    finally:
        proxy.close()
    assert done.code == 4
    assert SAID_NOTHING in done.err


def test_a_suspended_scheduler_of_our_own_is_named(
    lab: Lab, suspended_scheduler: process.Identity
) -> None:
    done = lab("run", "--all", *SHORT)
    assert done.code == 3
    assert "kube-scheduler of the local control plane 'tests' is suspended" in done.err
    assert f"kill -CONT {suspended_scheduler.pid}" in done.err


def test_a_pod_that_a_finalizer_holds(lab: Lab, cluster: Cluster) -> None:
    lab.run_all()
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    cluster.merge_patch(paths.pod("job-cross"), held)
    done = lab("run", "--all", *SHORT)
    assert done.code == 4
    assert "Pod job-cross" in done.err
    assert "example.com/hold" in done.err
    cluster.merge_patch(paths.pod("job-cross"), {"metadata": {"finalizers": None}})
    lab.run_all()
    assert lab.wrong_files() == {}


@pytest.fixture
def limits(cluster: Cluster) -> Iterator[Callable[[str, dict[str, Any]], None]]:
    """Returns a function that makes a LimitRange or a ResourceQuota in the lab's namespace."""
    made: list[tuple[str, str]] = []

    def make(kind: str, body: dict[str, Any]) -> None:
        collection = f"{paths.THE_NAMESPACE}/{kind}"
        found = cluster.create(collection, {"metadata": {"name": "of-the-test"}, **body})
        made.append((f"{collection}/of-the-test", found["metadata"]["uid"]))
        if "status" in body:
            cluster.merge_patch(f"{collection}/of-the-test/status", {"status": body["status"]})

    yield make
    for path, uid in made:
        cluster.delete(path, uid=uid)


def test_defaults_of_a_limit_range_are_no_difference(
    lab: Lab, cluster: Cluster, limits: Callable[[str, dict[str, Any]], None]
) -> None:
    lab("run", "--to", "1")
    default = {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "100m"}}
    limits("limitranges", {"spec": {"limits": [default]}})
    lab.run_all()
    assert lab.wrong_files() == {}
    uids = uids_of_pods(cluster)
    assert lab("step", "6").code == 0
    assert uids_of_pods(cluster) == uids, "a second run keeps what is right"


def uids_of_pods(client: Cluster) -> dict[str, str]:
    pods = client.get(paths.PODS)["items"]
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}


def test_a_limit_range_that_forbids_the_pod(
    lab: Lab, limits: Callable[[str, dict[str, Any]], None]
) -> None:
    lab("run", "--to", "3")
    limits(
        "limitranges", {"spec": {"limits": [{"type": "Container", "max": {"nvidia.com/gpu": "0"}}]}}
    )
    assert_refused(lab("step", "4"), "maximum nvidia.com/gpu usage per Container is 0")


def test_a_quota_that_is_used_up(lab: Lab, limits: Callable[[str, dict[str, Any]], None]) -> None:
    lab("run", "--to", "3")
    hard = {"hard": {"pods": "0"}}
    limits("resourcequotas", {"spec": hard, "status": {**hard, "used": {"pods": "0"}}})
    assert_refused(lab("step", "4"), "exceeded quota: of-the-test")


def assert_refused(done: Done, words: str) -> None:
    assert done.code == 3, done.err
    assert "error: the API server refused to create pods in gpu-vm (403): " in done.err
    assert words in done.err
    assert "ClusterRole" not in done.err, "no right is missing"


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Make the control plane somebody else's: nothing tells any more that gpuwl started it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))


def terminate_namespace(client: Cluster) -> dict[str, Any]:
    found = client.get(paths.THE_NAMESPACE)
    client.delete(paths.THE_NAMESPACE, uid=found["metadata"]["uid"])
    return client.get(paths.THE_NAMESPACE)


@pytest.mark.usefixtures("foreign")
def test_a_namespace_of_a_cluster_that_stays_terminating(lab: Lab, cluster: Cluster) -> None:
    assert lab("step", "1").code == 0
    terminate_namespace(cluster)
    done = lab("run", "--all", *SHORT)
    assert done.code == 3
    assert "namespace gpu-vm is still Terminating after 1 s\n" in done.err
    assert "  finalizers: kubernetes" in done.err
    left = cluster.get(paths.THE_NAMESPACE)
    assert left["spec"]["finalizers"] == ["kubernetes"], "not ours to empty"


@pytest.mark.usefixtures("foreign")
def test_a_namespace_whose_controller_says_what_holds_it(lab: Lab, cluster: Cluster) -> None:
    assert lab("step", "1").code == 0
    terminate_namespace(cluster)
    condition = {
        "type": "NamespaceContentRemaining",
        "status": "True",
        "message": "Some resources are remaining: widgets.example.com has 1 resource instances",
    }
    body = {"status": {"conditions": [condition]}}
    cluster.merge_patch(f"{paths.THE_NAMESPACE}/status", body)
    done = lab("step", "1", *SHORT)
    assert done.code == 3
    assert "widgets.example.com has 1 resource instances" in done.err


@pytest.mark.usefixtures("foreign")
def test_a_namespace_that_goes_in_time_is_waited_for(lab: Lab, cluster: Cluster) -> None:
    lab.run_all()
    for pod in cluster.get(paths.PODS)["items"]:
        cluster.delete(
            paths.pod(pod["metadata"]["name"]), uid=pod["metadata"]["uid"], grace_period=0
        )
    found = terminate_namespace(cluster)
    found["spec"]["finalizers"] = []
    controller = threading.Timer(
        0.5, lambda: cluster.replace(f"{paths.THE_NAMESPACE}/finalize", found)
    )
    controller.start()
    lab.run_all()
    controller.join()
    assert lab.wrong_files() == {}


def test_a_namespace_that_begins_to_go_under_a_step(lab: Lab, cluster: Cluster) -> None:
    assert lab("run", "--to", "3").code == 0
    terminate_namespace(cluster)
    with journal.opened(cluster, "tests") as entries:
        changes = Changes(cluster, entries, timeout=1, own=True)
        with pytest.raises(SetupError, match="namespace gpu-vm is Terminating"):
            changes.pod(JOB_CONTAINER, keep=lambda _: True)


def test_another_labelled_node_that_disagrees(lab: Lab, cluster: Cluster) -> None:
    make_node(cluster, "elsewhere", "vm-vgpu", **{"nvidia.com/GA106_RTX_A2000": "1"})
    done = lab("run", "--all")
    assert done.code == 1
    verdict = (lab.root / "out/consistency.txt").read_text()
    assert verdict.startswith("MISMATCH=elsewhere ")
    assert verdict.count("\n") == 1
    assert f"  {verdict}" in done.err
    assert lab.files() >= {"out/nodes.json", "bin/check-config.sh", "out/07-cross.txt"}
    record = json.loads((lab.root / "out/run.json").read_text())["steps"][-1]
    assert (record["number"], record["result"]) == (8, "failed")


def make_node(client: Cluster, name: str, value: str | None = None, **amounts: str) -> None:
    labels = {LABEL_KEY: value} if value else {}
    status = {"capacity": {"pods": "110", **amounts}, "allocatable": {"pods": "110", **amounts}}
    metadata = {"name": name, "labels": labels}
    client.create(paths.NODES, {"metadata": metadata, "status": status})


def test_job_cross_that_gets_a_node(lab: Lab, cluster: Cluster) -> None:
    make_node(cluster, "elsewhere", "vm-passthrough", **{"nvidia.com/gpu": "1"})
    patch_node(cluster, "elsewhere", taint("example.com/not-yet"))
    assert lab("run", "--to", "6", "--yes").code == 0
    patch_node(cluster, "elsewhere", {"taints": None})
    done = lab("step", "7", "--yes")
    assert done.code == 1
    assert "job-cross was expected to stay without a node, but it is on elsewhere" in done.err
    assert not (lab.root / "out/07-cross.txt").exists()


def test_a_cluster_with_many_more_nodes(lab: Lab, cluster: Cluster) -> None:
    names = [f"other-{number}" for number in range(100)]
    for name in names:
        make_node(cluster, name, **{"nvidia.com/other": "8"})
    lab.run_all()
    lab.message_of_cross = objects.scheduled(cluster.get(paths.pod("job-cross")))["message"]
    assert "0/103 nodes are available" in lab.message_of_cross
    assert lab.wrong_files() == {}
    dump = json.loads((lab.root / "out/nodes.json").read_text())
    assert len(dump["items"]) == 103
