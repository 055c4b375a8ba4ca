"""gpuwl reset: exactly what gpuwl changed is taken back."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Run

from gpuwl.controlplane import process, state
from gpuwl.controlplane.plane import Plane
from gpuwl.errors import ClusterError
from gpuwl.k8s import objects
from gpuwl.k8s.client import Cluster
from gpuwl.lab import journal, paths
from gpuwl.lab.names import LABEL_KEY, NODE_NAMES
from gpuwl.lab.takeback import TakeBack
from gpuwl.steps import STEPS
from gpuwl.system import folders, waiting

pytestmark = pytest.mark.cluster

Seen = dict[str, Any]

CLAIM = {
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
}
DEPLOYMENT = {
    "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "c"}]},
        },
    }
}


def seen(cluster: Cluster) -> Seen:
    """Return what a run could change: labels and amounts of all nodes, Pods, namespaces."""
    nodes = {
        node["metadata"]["name"]: (
            node["metadata"].get("labels"),
            node["status"]["capacity"],
            node["status"]["allocatable"],
        )
        for node in cluster.get(paths.NODES)["items"]
    }
    pods = [pod["metadata"]["uid"] for pod in cluster.get("/api/v1/pods")["items"]]
    namespaces = [one["metadata"]["uid"] for one in cluster.get(paths.NAMESPACES)["items"]]
    return {"nodes": nodes, "pods": pods, "namespaces": namespaces}


def set_up(cluster: Cluster, name: str, label: str | None, **amounts: str | None) -> None:
    """Give a node a label and amounts, as somebody else would."""
    cluster.merge_patch(paths.node(name), {"metadata": {"labels": {LABEL_KEY: label}}})
    gpus = {f"nvidia.com/{resource}": amount for resource, amount in amounts.items()}
    status = {"capacity": gpus, "allocatable": gpus}
    cluster.merge_patch(f"{paths.node(name)}/status", {"status": status})


def make_pod(cluster: Cluster, name: str) -> None:
    spec = {"containers": [{"name": "other", "image": "other"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    cluster.create(paths.PODS, body)


def make_namespace(cluster: Cluster) -> None:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpu-vm"}}
    cluster.create(paths.NAMESPACES, body)


def reset(gpuwl: Run, *more: str, **how: Any) -> Any:
    done = gpuwl("reset", "--output", "json", *more, **how)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def ran(gpuwl: Run, *arguments: str, **how: Any) -> None:
    done = gpuwl(*(arguments or ("run", "--all")), **how)
    assert done.returncode == 0, done.stderr


def test_a_bare_cluster_is_bare_again(
    cluster: Cluster, gpuwl: Run, root: Path, control_plane: Plane
) -> None:
    before = seen(cluster)
    ran(gpuwl)
    ran(gpuwl)
    assert seen(cluster) != before
    document = reset(gpuwl, "--files")
    assert seen(cluster) == before
    assert not document["left"]
    assert not root.exists()
    assert not (state.folder(control_plane.name) / "journal.json").exists()
    again = gpuwl("reset", "--files")
    assert again.returncode == 0
    assert again.stdout == "nothing to take back\n"


def test_what_was_there_comes_back_after_several_runs(cluster: Cluster, gpuwl: Run) -> None:
    set_up(cluster, "lab-node-0", "vm-vgpu", gpu="8", **{"mig-1g.10gb": "7"})
    set_up(cluster, "lab-node-1", "vm-passthrough", GA102GL_A10="2")
    set_up(cluster, "lab-node-2", None, odd="0")
    make_namespace(cluster)
    make_pod(cluster, "bystander")
    before = seen(cluster)
    for _ in range(3):
        ran(gpuwl)
    document = reset(gpuwl)
    assert seen(cluster) == before
    assert not document["left"]
    assert not [note for note in document["undone"] if note["thing"] == "Node/lab-node-1"]


def test_single_steps_are_taken_back_too(cluster: Cluster, gpuwl: Run) -> None:
    before = seen(cluster)
    ran(gpuwl, "run", "--to", "3")
    ran(gpuwl, "step", "7")
    reset(gpuwl)
    assert seen(cluster) == before


def test_what_somebody_changed_since_is_left_and_named(cluster: Cluster, gpuwl: Run) -> None:
    ran(gpuwl)
    set_up(cluster, "lab-node-0", "vm-passthrough", gpu="6")
    document = reset(gpuwl)
    node = cluster.get(paths.node("lab-node-0"))
    assert objects.label_of(node) == "vm-passthrough"
    assert objects.gpu_resources(node) == {"nvidia.com/gpu": "6"}
    left = {note["what"] for note in document["left"] if note["thing"] == "Node/lab-node-0"}
    assert left == {
        f"labels {LABEL_KEY} is vm-passthrough by now, not container as gpuwl set it",
        "capacity nvidia.com/gpu is 6 by now, not 4 as gpuwl set it",
        "allocatable nvidia.com/gpu is 6 by now, not 4 as gpuwl set it",
    }
    assert reset(gpuwl)["left"] == []


def test_what_somebody_took_back_already_is_no_matter(cluster: Cluster, gpuwl: Run) -> None:
    before = seen(cluster)
    ran(gpuwl)
    for name, resource in zip(NODE_NAMES, ("gpu", "GA102GL_A10", "NVIDIA_A10-12Q"), strict=True):
        set_up(cluster, name, None, **{resource: None})
    document = reset(gpuwl)
    assert seen(cluster) == before
    assert not document["left"]
    assert {note["thing"].split("/")[0] for note in document["undone"]} == {"Pod", "Namespace"}


def test_pods_of_others_are_left_and_keep_the_namespace(cluster: Cluster, gpuwl: Run) -> None:
    ran(gpuwl)
    make_pod(cluster, "visitor")
    found = cluster.get(paths.pod("job-container"))
    cluster.delete(paths.pod("job-container"), uid=found["metadata"]["uid"], grace_period=0)
    make_pod(cluster, "job-container")
    document = reset(gpuwl)
    left = {pod["metadata"]["name"] for pod in cluster.get(paths.PODS)["items"]}
    assert left == {"job-container", "visitor"}
    assert {note["thing"]: note["what"] for note in document["left"]} == {
        "Pod/job-container": "is another one by now, which gpuwl did not make",
        "Namespace/gpu-vm": "holds what gpuwl did not make: Pod/job-container, Pod/visitor",
    }


OF_OTHERS: list[tuple[str, str, dict[str, Any]]] = [
    ("/api/v1", "configmaps", {}),
    ("/api/v1", "secrets", {"stringData": {"password": "hunter2"}}),
    ("/api/v1", "persistentvolumeclaims", CLAIM),
    ("/apis/apps/v1", "deployments", DEPLOYMENT),
    ("/apis/rbac.authorization.k8s.io/v1", "roles", {"rules": []}),
    ("/apis/coordination.k8s.io/v1", "leases", {}),
    ("/apis/example.com/v1", "machines", {"apiVersion": "example.com/v1", "kind": "Machine"}),
]
KINDS = {
    "ConfigMap/settings",
    "Secret/settings",
    "PersistentVolumeClaim/settings",
    "Deployment/settings",
    "Role/settings",
    "Lease/settings",
    "Machine/settings",
}


@pytest.fixture
def machines(cluster: Cluster) -> Iterator[None]:
    """A kind that only this cluster knows, as a stopped VM of KubeVirt is."""
    names = {"plural": "machines", "singular": "machine", "kind": "Machine"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    collection = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    body = {"metadata": {"name": "machines.example.com"}, "spec": spec}
    made = cluster.create(collection, body)
    path = "/apis/example.com/v1/machines"
    assert waiting.until(lambda: cluster.find(path), seconds=20)
    yield
    cluster.delete(f"{collection}/machines.example.com", uid=made["metadata"]["uid"])
    assert waiting.until(lambda: None if cluster.find(path) else True, seconds=20)


@pytest.fixture
def things_of_others(cluster: Cluster, machines: None) -> Iterator[Callable[[], dict[str, str]]]:
    """Makes one thing of each kind in the namespace; returns their paths with their uids."""
    made = {}

    def make() -> dict[str, str]:
        for root, plural, body in OF_OTHERS:
            collection = f"{root}/namespaces/gpu-vm/{plural}"
            found = cluster.create(collection, {"metadata": {"name": "settings"}, **body})
            made[f"{collection}/settings"] = found["metadata"]["uid"]
        return made

    yield make
    remove(cluster, made)


def remove(cluster: Cluster, things: dict[str, str]) -> None:
    """Delete what is left of things, whatever holds them."""
    for path, uid in things.items():
        cluster.delete(path, uid=uid)
        if cluster.find(path):
            cluster.merge_patch(path, {"metadata": {"finalizers": None}})


def test_things_of_others_of_any_kind_keep_the_namespace(
    cluster: Cluster, gpuwl: Run, things_of_others: Callable[[], dict[str, str]]
) -> None:
    before = seen(cluster)
    ran(gpuwl)
    made = things_of_others()
    system = {"kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt"}}
    cluster.create(f"{paths.THE_NAMESPACE}/configmaps", system)
    (note,) = reset(gpuwl)["left"]
    assert note["thing"] == "Namespace/gpu-vm"
    words, _, names = note["what"].partition(": ")
    assert words == "holds what gpuwl did not make"
    assert set(names.split(", ")) == KINDS
    assert {path: cluster.get(path)["metadata"]["uid"] for path in made} == made
    remove(cluster, made)
    assert reset(gpuwl)["left"] == [], "what is left alone goes once the others' things are gone"
    assert seen(cluster) == before


def test_our_own_namespace_comes_back_empty_of_every_kind(
    cluster: Cluster, gpuwl: Run, things_of_others: Callable[[], dict[str, str]]
) -> None:
    """Its maker deletes it, and no kube-controller-manager is there to empty it."""
    ran(gpuwl, "run", "--to", "1")
    made = things_of_others()
    cluster.delete(paths.THE_NAMESPACE, uid=cluster.get(paths.THE_NAMESPACE)["metadata"]["uid"])
    ran(gpuwl)
    assert not [path for path in made if cluster.find(path)]
    assert reset(gpuwl)["left"] == []


def test_a_kind_that_may_not_be_listed_keeps_the_namespace(
    cluster: Cluster, gpuwl: Run, monkeypatch: pytest.MonkeyPatch, control_plane: Plane
) -> None:
    ran(gpuwl)
    get = Cluster.get

    def refused(client: Cluster, path: str, **more: Any) -> Any:
        if path.endswith("/secrets"):
            raise ClusterError("secrets is forbidden", status=403)
        return get(client, path, **more)

    monkeypatch.setattr(Cluster, "get", refused)
    with journal.opened(cluster, control_plane.name) as entries:
        taking = TakeBack(cluster, entries, timeout=5, own=True)
        taking.everything()
    (note,) = taking.left
    assert note.what == "may hold what gpuwl did not make: secrets is forbidden"
    assert cluster.find(paths.THE_NAMESPACE)


def test_a_dry_run_tells_what_a_reset_does_and_does_nothing(
    cluster: Cluster, gpuwl: Run, root: Path
) -> None:
    set_up(cluster, "lab-node-0", "vm-vgpu", gpu="8")
    ran(gpuwl)
    make_pod(cluster, "visitor")
    state_before, files = seen(cluster), sorted(root.rglob("*"))
    told = reset(gpuwl, "--dry-run", "--files")
    assert seen(cluster) == state_before
    assert sorted(root.rglob("*")) == files
    done = reset(gpuwl, "--files")
    assert told["dryRun"]
    assert {n["thing"] for n in told["undone"]} == {n["thing"] for n in done["undone"]} - {
        str(root),
        *(str(root / name) for name in ("out", "bin", "k8s")),
    }
    assert all(note["what"].startswith("would be ") for note in told["undone"])
    assert told["left"] == done["left"]


def test_what_was_set_by_hand_between_two_runs_comes_back_as_a_whole(
    cluster: Cluster, gpuwl: Run
) -> None:
    ran(gpuwl)
    set_up(cluster, "lab-node-0", "before", gpu=None, old="3")
    by_hand = seen(cluster)["nodes"]["lab-node-0"]
    ran(gpuwl)
    document = reset(gpuwl)
    assert seen(cluster)["nodes"]["lab-node-0"] == by_hand
    assert not document["left"]


def test_a_lab_without_a_journal_is_seen(cluster: Cluster, gpuwl: Run, tmp_path: Path) -> None:
    ran(gpuwl)
    after = seen(cluster)
    done = gpuwl("reset", env={"XDG_STATE_HOME": str(tmp_path / "elsewhere")})
    assert done.returncode == 0
    assert "no journal of gpuwl is here for this cluster" in done.stderr
    for thing in ("Pod/job-cross", "Namespace/gpu-vm", "Node/lab-node-2"):
        assert f"left as it is: {thing}: " in done.stderr
    assert "nothing to take back" not in done.stdout
    assert seen(cluster) == after


def test_on_a_suspended_control_plane_it_cannot_be_told(
    cluster: Cluster, gpuwl: Run, control_plane: Plane
) -> None:
    ran(gpuwl, "run", "--to", "1")
    record = process.read_record(process.record_path(control_plane.folder, "kube-apiserver"))
    assert record
    os.kill(record.pid, signal.SIGSTOP)
    try:
        done = gpuwl("reset", "--local", "--name", control_plane.name, env={"KUBECONFIG": ""})
    finally:
        os.kill(record.pid, signal.SIGCONT)
    assert done.returncode == 3
    assert f"kill -CONT {record.pid}" in done.stderr
    assert "nothing to take back" not in done.stdout


def test_a_pod_of_others_that_had_to_go_is_named(cluster: Cluster, gpuwl: Run) -> None:
    make_namespace(cluster)
    make_pod(cluster, "job-container")
    uid = cluster.get(paths.pod("job-container"))["metadata"]["uid"]
    refused = gpuwl("run", "--all")
    assert refused.returncode == 3
    assert "Pod job-container in namespace gpu-vm was not made by gpuwl" in refused.stderr
    assert cluster.get(paths.pod("job-container"))["metadata"]["uid"] == uid
    ran(gpuwl, "run", "--all", "--yes")
    document = reset(gpuwl)
    (note,) = document["left"]
    assert note["thing"] == "Pod/job-container"
    assert f"uid {uid}" in note["what"]
    assert cluster.find(paths.THE_NAMESPACE)


def test_a_node_made_anew_is_left_alone(cluster: Cluster, gpuwl: Run) -> None:
    ran(gpuwl)
    node = cluster.get(paths.node("lab-node-2"))
    cluster.delete(paths.node("lab-node-2"), uid=node["metadata"]["uid"])
    for key in ("uid", "resourceVersion", "creationTimestamp", "managedFields"):
        node["metadata"].pop(key, None)
    cluster.create(paths.NODES, node)
    document = reset(gpuwl)
    after = cluster.get(paths.node("lab-node-2"))
    assert objects.label_of(after) == "vm-vgpu"
    assert [n["thing"] for n in document["left"]] == ["Node/lab-node-2"] * 2


def test_a_reset_that_is_stopped_half_way_goes_on(cluster: Cluster, gpuwl: Run) -> None:
    before = seen(cluster)
    ran(gpuwl)
    held = {"metadata": {"finalizers": ["example.com/held"]}}
    cluster.merge_patch(paths.pod("vmi-vgpu"), held)
    done = gpuwl("reset", "--timeout", "0.5")
    assert done.returncode == 4
    assert "Pod vmi-vgpu is still being deleted" in done.stderr
    assert "example.com/held" in done.stderr
    assert seen(cluster)["nodes"] == before["nodes"], "what is held keeps nothing else"
    assert "gpuwl did not make" not in done.stderr
    cluster.merge_patch(paths.pod("vmi-vgpu"), {"metadata": {"finalizers": None}})
    reset(gpuwl)
    assert seen(cluster) == before


def test_what_a_finalizer_holds_in_our_own_namespace_is_said(cluster: Cluster, gpuwl: Run) -> None:
    """It would come back with the next namespace of that name."""
    before = seen(cluster)
    ran(gpuwl)
    collection = f"{paths.THE_NAMESPACE}/configmaps"
    held = {"name": "left-behind", "finalizers": ["example.com/held"]}
    cluster.create(collection, {"metadata": held})
    cluster.delete(paths.THE_NAMESPACE, uid=cluster.get(paths.THE_NAMESPACE)["metadata"]["uid"])
    done = gpuwl("run", "--all", "--timeout", "0.5")
    assert done.returncode == 3
    assert "configmaps/left-behind is held by example.com/held" in done.stderr
    cluster.merge_patch(f"{collection}/left-behind", {"metadata": {"finalizers": None}})
    reset(gpuwl)
    assert seen(cluster) == before


def test_another_cluster_has_its_journal_in_the_state_folder(
    cluster: Cluster, gpuwl: Run, tmp_path: Path
) -> None:
    """Where no local control plane is known by that address, it is a cluster like any other."""
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    make_namespace(cluster)
    before = seen(cluster)
    ran(gpuwl, env=env)
    (file,) = (tmp_path / "state/gpuwl" / ".journal").iterdir()
    uid = cluster.get(f"{paths.NAMESPACES}/kube-system")["metadata"]["uid"]
    assert file.name == f"{uid}.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    # another state folder knows nothing of it
    assert reset(gpuwl)["undone"] == []
    reset(gpuwl, env=env)
    assert seen(cluster) == before
    assert not list(file.parent.iterdir())
    assert folders.state() != tmp_path / "state/gpuwl"


def test_a_namespace_nobody_finishes_is_said(cluster: Cluster, gpuwl: Run, tmp_path: Path) -> None:
    """Elsewhere gpuwl waits for the namespace controller, which this cluster lacks."""
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    before = seen(cluster)
    ran(gpuwl, env=env)
    done = gpuwl("reset", "--timeout", "0.5", env=env)
    assert done.returncode == 3
    assert "namespace gpu-vm is still Terminating after 0.5 s" in done.stderr
    assert seen(cluster)["nodes"] == before["nodes"]


def test_a_broken_journal_stops_before_anything_is_changed(
    cluster: Cluster, gpuwl: Run, control_plane: Plane
) -> None:
    before = seen(cluster)
    file = state.folder(control_plane.name) / "journal.json"
    for text in ("{", "[]", '{"version": 2}', "", "[" * 100_000):
        file.write_text(text)
        for command in (("run", "--all"), ("reset",)):
            done = gpuwl(*command)
            assert done.returncode == 3
            assert str(file) in done.stderr
    file.unlink()
    os.mkfifo(file)  # which would wait for its writer
    assert "not a regular file" in gpuwl("reset").stderr
    file.unlink()
    assert seen(cluster) == before


def test_it_starts_no_control_plane(gpuwl: Run, tmp_path: Path) -> None:
    env = {"XDG_STATE_HOME": str(tmp_path / "state"), "KUBECONFIG": ""}
    done = gpuwl("reset", "--local", env=env)
    assert done.returncode == 0
    assert done.stdout == "nothing to take back\n"
    assert not (tmp_path / "state").exists()


def test_files_of_others_and_edited_ones_stay(cluster: Cluster, gpuwl: Run, root: Path) -> None:
    ran(gpuwl)
    (root / "notes.txt").write_text("mine\n")
    (root / "k8s/pod-extra.yaml").write_text("mine\n")
    (root / "out/01-nodes.txt").write_text("edited\n")
    (root / "out/operands.txt").unlink()
    (root / "out/operands.txt").symlink_to(root / "notes.txt")
    document = reset(gpuwl, "--files")
    left = sorted(str(p.relative_to(root)) for p in root.rglob("*") if not p.is_dir())
    assert left == ["k8s/pod-extra.yaml", "notes.txt", "out/01-nodes.txt", "out/operands.txt"]
    assert {Path(note["thing"]).name: note["what"] for note in document["left"]} == {
        "01-nodes.txt": "was changed since gpuwl wrote it",
        "operands.txt": "is a symbolic link, which gpuwl never makes",
    }
    assert not (root / "bin").exists()


def test_folders_that_were_there_stay(cluster: Cluster, gpuwl: Run, root: Path) -> None:
    (root / "out").mkdir(parents=True)
    ran(gpuwl)
    reset(gpuwl, "--files")
    assert [entry.name for entry in root.iterdir()] == ["out"]
    assert not list((root / "out").iterdir())


def test_a_forged_record_removes_nothing_else(cluster: Cluster, gpuwl: Run, root: Path) -> None:
    ran(gpuwl)
    precious = root.parent / "precious"
    precious.write_text("")
    record = json.loads((root / "out/run.json").read_bytes())
    empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    record["steps"][0]["files"] |= {"../precious": empty, str(precious): empty}
    record["made"] += ["..", "../precious"]
    (root / "out/run.json").write_text(json.dumps(record))
    reset(gpuwl, "--files")
    assert precious.exists()
    assert not root.exists()


def test_without_files_they_stay(cluster: Cluster, gpuwl: Run, root: Path) -> None:
    ran(gpuwl)
    reset(gpuwl)
    assert all((root / name).is_file() for step in STEPS for name in step.artifacts)
