"""What --dry-run prints: run by hand it gives the same files, and printing it touches nothing."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Run, undo_lab

from gpuwl.controlplane.plane import Plane
from gpuwl.k8s.client import Cluster
from gpuwl.lab import paths
from gpuwl.lab.names import LABEL_KEY, NODE_NAMES, PODS
from gpuwl.steps import STEPS

pytestmark = pytest.mark.cluster

Visitors = list[tuple[socket.socket, Any]]
FILES = [name for step in STEPS for name in step.artifacts]


def by_hand(shell: str, script: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    folder.mkdir(exist_ok=True)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        [shell],
        input=script,
        env={"PATH": path, "HOME": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )


def without_metadata(dump: bytes) -> Any:
    """Return a dump of nodes without what the server itself keeps in metadata."""
    document = json.loads(dump)
    for node in document["items"]:
        for key in ("resourceVersion", "uid", "creationTimestamp"):
            node["metadata"].pop(key)
    return document


def contents(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = {name: (root / name).read_bytes() for name in FILES}
    found["out/nodes.json"] = without_metadata(found["out/nodes.json"])
    found["modes"] = {name: (root / name).stat().st_mode & 0o111 for name in FILES}
    return found


@pytest.fixture
def reference(cluster: Cluster, gpuwl: Run, root: Path) -> dict[str, Any]:
    done = gpuwl("run", "--all")
    assert done.returncode == 0, done.stderr
    found = contents(root)
    undo_lab(cluster)
    return found


def finished(gpuwl: Run, root: Path) -> None:
    assert gpuwl("run", "--all").returncode == 0


def messy(cluster: Cluster) -> None:
    """Leave other names, other amounts, typos and Pods of others behind."""
    amounts = {"nvidia.com/gpu": "7", "nvidia.com/mig-1g.10gb": "3"}
    for name in NODE_NAMES:
        cluster.merge_patch(
            f"{paths.node(name)}/status",
            {"status": {"capacity": {**amounts, "nvidia.com/odd": "1"}, "allocatable": amounts}},
        )
        cluster.merge_patch(paths.node(name), {"metadata": {"labels": {LABEL_KEY: "vm-gpu"}}})
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "gpu-vm"}}
    cluster.create(paths.NAMESPACES, namespace)
    for pod in PODS:
        container = {"name": "other", "image": "other"}
        cluster.create(
            paths.PODS,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": pod.name},
                "spec": {"containers": [container]},
            },
        )


@pytest.mark.parametrize("shell", ["bash", "dash"])
@pytest.mark.parametrize("start", ["bare", "finished", "messy"])
def test_by_hand_it_gives_the_same_files(
    reference: dict[str, Any],
    cluster: Cluster,
    gpuwl: Run,
    root: Path,
    tmp_path: Path,
    shell: str,
    start: str,
) -> None:
    if start == "finished":
        finished(gpuwl, root)
    if start == "messy":
        messy(cluster)
    hand = tmp_path / "by hand's"
    script = gpuwl("run", "--all", "--dry-run", "--root", str(hand)).stdout
    done = by_hand(shell, script, tmp_path / "home")
    assert done.returncode == 0, done.stderr
    assert contents(hand) == reference


def test_each_step_by_hand(
    reference: dict[str, Any], cluster: Cluster, gpuwl: Run, tmp_path: Path
) -> None:
    hand = tmp_path / "hand"
    for step in STEPS:
        script = gpuwl("step", str(step.number), "--dry-run", "--root", str(hand)).stdout
        done = by_hand("sh", script, tmp_path / "home")
        assert done.returncode == 0, done.stderr
    assert contents(hand) == reference


def test_other_nodes_by_hand(cluster: Cluster, gpuwl: Run, root: Path, tmp_path: Path) -> None:
    nodes = "lab-node-2,lab-node-0,lab-node-1"
    done = gpuwl("run", "--all", "--lab-nodes", nodes)
    assert done.returncode == 0, done.stderr
    hand = tmp_path / "hand"
    script = gpuwl(
        "run", "--all", "--dry-run", "--root", str(hand), env={"GPUWL_LAB_NODES": nodes}
    ).stdout
    assert by_hand("dash", script, tmp_path / "home").returncode == 0
    assert contents(hand) == contents(root)


def test_a_failing_kubectl_ends_it(cluster: Cluster, gpuwl: Run, tmp_path: Path) -> None:
    script = gpuwl("step", "4", "--dry-run", "--root", str(tmp_path / "hand")).stdout
    done = by_hand("dash", script, tmp_path / "home")
    assert done.returncode != 0
    assert not (tmp_path / "hand/out/04-container.txt").exists()


def test_the_context_is_kept(control_plane: Plane, gpuwl: Run, tmp_path: Path) -> None:
    context = f"gpuwl-{control_plane.name}"
    other = tmp_path / "config"
    text = control_plane.kubeconfig.read_text()
    other.write_text(re.sub("current-context: .*", "current-context: nothing", text))
    arguments = ("--kubeconfig", str(other), "--context", context, "--root", str(tmp_path / "hand"))
    script = gpuwl("step", "8", "--dry-run", *arguments).stdout
    done = by_hand("dash", script, tmp_path / "home")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "hand/out/consistency.txt").read_text() == "OK=0\n"


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[tuple[str, Visitors]]:
    """A kubeconfig whose server is a socket, and who has come to that socket."""
    visitors: Visitors = []
    server = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            try:
                visitors.append(server.accept())
            except OSError:
                return

    thread = threading.Thread(target=accept)
    thread.start()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [
            {"name": "c", "cluster": {"server": f"https://127.0.0.1:{server.getsockname()[1]}"}}
        ],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    path = tmp_path / "listener.json"
    path.write_text(json.dumps(config))
    yield str(path), visitors
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()
    for connection, _ in visitors:
        connection.close()


@pytest.mark.parametrize(
    "command",
    [("run", "--all", "--dry-run"), ("step", "3", "--dry-run"), ("steps",), ("explain",)],
    ids=" ".join,
)
def test_it_neither_connects_nor_writes(
    gpuwl: Run,
    root: Path,
    tmp_path: Path,
    listener: tuple[str, Visitors],
    command: tuple[str, ...],
) -> None:
    kubeconfig, visitors = listener
    state = tmp_path / "state"
    done = gpuwl(*command, env={"KUBECONFIG": kubeconfig, "XDG_STATE_HOME": str(state)})
    assert done.returncode == 0, done.stderr
    assert not visitors
    assert not root.exists()
    assert not state.exists()


def test_the_listener_would_notice(gpuwl: Run, listener: tuple[str, Visitors]) -> None:
    kubeconfig, visitors = listener
    done = gpuwl("run", "--all", "--timeout", "0.2", env={"KUBECONFIG": kubeconfig})
    assert done.returncode == 3
    assert visitors


def test_local_it_starts_nothing(gpuwl: Run, root: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    done = gpuwl(
        "run", "--all", "--dry-run", "--local", env={"XDG_STATE_HOME": str(state), "KUBECONFIG": ""}
    )
    assert done.returncode == 0, done.stderr
    assert "gpuwl local up --name default\n" in done.stdout
    assert not root.exists()
    assert not state.exists()


def test_as_json(gpuwl: Run) -> None:
    plain = gpuwl("run", "--all", "--dry-run").stdout
    document = json.loads(gpuwl("run", "--all", "--dry-run", "--output", "json").stdout)
    assert document["script"] == plain
