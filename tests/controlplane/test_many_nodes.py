"""Control planes with the nodes of a dump, on the real API server and scheduler."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.controlplane.support import assert_none_in
from tests.heard import Heard
from tests.k8s.test_dump_nodes import a_node, written

from gpuwl.controlplane import components, loading, plane, state, status, teardown
from gpuwl.errors import InputError
from gpuwl.k8s.client import Cluster
from gpuwl.lab import local_plane
from gpuwl.system import waiting
from gpuwl.system.progress import SILENCE

pytestmark = pytest.mark.cluster

MODEL = "nvidia.com/GA102GL_A10"


def open_node(i: int) -> dict[str, Any]:
    """Return a node that takes Pods; only the last of a hundred has a GPU."""
    node = a_node(f"gpu-{i:04d}")
    node["spec"] = {}
    node["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    if i % 100 != 99:
        for field in ("capacity", "allocatable"):
            node["status"][field] = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    else:
        for field in ("capacity", "allocatable"):
            node["status"][field] |= {"memory": "32Gi", "pods": "110"}
    return node


def a_pod(resource: str) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"limits": {resource: "1"}}}
    return {"metadata": {"name": "p"}, "spec": {"containers": [container]}}


def test_nodes_of_a_dump_are_created_as_they_are(name: str, tmp_path: Path) -> None:
    path = written(tmp_path, a_node(), a_node("other"))
    up = local_plane.ensure_up(name, nodes=path, listener=SILENCE)
    assert up.started
    assert not local_plane.ensure_up(name, nodes=path, listener=SILENCE).started
    client = Cluster.from_kubeconfig(up.plane.kubeconfig)
    node = client.get(f"/api/v1/nodes/{a_node()['metadata']['name']}")
    names = [one["metadata"]["name"] for one in client.get("/api/v1/nodes")["items"]]
    client.close()
    assert names == [a_node()["metadata"]["name"], "other"]
    assert node["metadata"]["labels"] == a_node()["metadata"]["labels"]
    assert "annotations" not in node["metadata"]
    assert node["spec"] == {"taints": a_node()["spec"]["taints"], "unschedulable": True}
    assert node["status"]["allocatable"] == {"cpu": "63", MODEL: "2"}
    assert node["status"]["conditions"][0]["status"] == "False"
    assert not {"images", "addresses"} & set(node["status"])
    found = status.status(name)
    assert (found.nodes, found.dump) == (2, str(path))
    with pytest.raises(InputError, match=rf"other nodes, those of {path} as of 20\d\d-[\d: -]+$"):
        local_plane.ensure_up(name, nodes=path, anonymise=True, listener=SILENCE)


def test_many_nodes_load_with_progress_and_take_pods(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "SAY_EVERY", 0.01)  # so that no machine is too fast to say a word
    path = written(tmp_path, *(open_node(i) for i in range(600)))
    said = Heard()
    hidden = tmp_path / "map.json"
    up = local_plane.ensure_up(name, nodes=path, anonymise=True, map_file=hidden, listener=said)
    assert len(json.loads(hidden.read_text())["nodes"]) == 600
    assert any(line.endswith(" of 600 nodes") for line in said)
    client = Cluster.from_kubeconfig(up.plane.kubeconfig)
    assert len(client.get("/api/v1/nodes")["items"]) == 600
    client.create("/api/v1/namespaces/default/pods", a_pod(MODEL))

    def placed() -> str | None:
        pod = client.get("/api/v1/namespaces/default/pods/p")
        node: str | None = pod["spec"].get("nodeName")
        return node

    assert waiting.until(placed, seconds=30) in {f"node-{i:05d}" for i in range(99, 600, 100)}
    client.close()


def test_a_node_that_the_server_refuses(name: str, tmp_path: Path) -> None:
    bad = a_node("fine")
    bad["metadata"]["labels"]["not a label!"] = "x"
    with pytest.raises(
        InputError, match=r"the node fine of the dump cannot be used: .*not a label!"
    ):
        local_plane.ensure_up(name, nodes=written(tmp_path, bad), listener=SILENCE)
    assert not state.folder(name).exists()


def test_a_broken_dump_is_refused_before_anything_starts(name: str, tmp_path: Path) -> None:
    path = tmp_path / "nodes.json"
    path.write_text("[]")
    with pytest.raises(InputError, match=str(path)):
        local_plane.ensure_up(name, nodes=path, listener=SILENCE)
    assert not state.folder(name).exists()


def test_a_load_that_was_killed_does_not_count_as_up(name: str, tmp_path: Path) -> None:
    path = tmp_path / "nodes.json"
    path.write_text(json.dumps({"items": [open_node(i) for i in range(3000)]}))
    gpuwl = Path(sys.executable).with_name("gpuwl")
    with subprocess.Popen(
        [gpuwl, "local", "up", "--name", name, "--nodes", path], stderr=subprocess.PIPE, text=True
    ) as child:
        socket = state.folder(name) / components.CLIENT_SOCKET
        assert waiting.until(lambda: socket.exists() or None, seconds=30)
        child.send_signal(signal.SIGKILL)
    assert not plane.is_up(name)
    assert state.folder(name).exists()
    assert waiting.until(lambda: teardown.sweep() or None, seconds=10) == [name]
    assert_none_in(state.folder(name))
