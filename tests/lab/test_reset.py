"""gpuwl reset: exactly what gpuwl changed is taken back."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Run

from gpuwl.controlplane import state
from gpuwl.controlplane.plane import Plane
from gpuwl.k8s import objects
from gpuwl.k8s.client import Cluster
from gpuwl.lab import paths
from gpuwl.lab.names import LABEL_KEY, NODE_NAMES
from gpuwl.steps import STEPS
from gpuwl.system import folders

pytestmark = pytest.mark.cluster

Seen = dict[str, Any]


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
        "Namespace/gpu-vm": "holds Pods that gpuwl did not make: job-container, visitor",
    }


def test_a_pod_of_others_that_had_to_go_is_named(cluster: Cluster, gpuwl: Run) -> None:
    make_namespace(cluster)
    make_pod(cluster, "job-container")
    uid = cluster.get(paths.pod("job-container"))["metadata"]["uid"]
    ran(gpuwl)
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
        node["metadata"].pop(key)
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
    done = gpuwl("reset", "--timeout", "0.5")
    assert done.returncode == 3
    assert "configmaps/left-behind is held by example.com/held" in done.stderr
    assert seen(cluster)["nodes"] == before["nodes"]
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
    (journal,) = (tmp_path / "state/gpuwl" / ".journal").iterdir()
    uid = cluster.get(f"{paths.NAMESPACES}/kube-system")["metadata"]["uid"]
    assert journal.name == f"{uid}.json"
    assert journal.stat().st_mode & 0o777 == 0o600
    assert journal.parent.stat().st_mode & 0o777 == 0o700
    # another state folder knows nothing of it
    assert reset(gpuwl)["undone"] == []
    reset(gpuwl, env=env)
    assert seen(cluster) == before
    assert not list(journal.parent.iterdir())
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
    journal = state.folder(control_plane.name) / "journal.json"
    for text in ("{", "[]", '{"version": 2}', "", "[" * 100_000):
        journal.write_text(text)
        for command in (("run", "--all"), ("reset",)):
            done = gpuwl(*command)
            assert done.returncode == 3
            assert str(journal) in done.stderr
    journal.unlink()
    os.mkfifo(journal)  # which would wait for its writer
    assert "not a regular file" in gpuwl("reset").stderr
    journal.unlink()
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
