"""Objects that went straight into etcd, as the API server shows them, and those that it cannot read."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from tests.k8s.test_dump_nodes import a_node, written

from gpuwl.controlplane import loading, plane, state, store
from gpuwl.errors import InputError, SetupError
from gpuwl.k8s.client import Cluster
from gpuwl.k8s.soundness import complaint
from gpuwl.lab import local_plane
from gpuwl.system.progress import SILENCE

MADE_BY_THE_SERVER = ("uid", "resourceVersion", "creationTimestamp", "managedFields")


def essence(item: dict[str, Any]) -> dict[str, Any]:
    """Return an object without what differs each time it is created."""
    metadata = {k: v for k, v in item["metadata"].items() if k not in MADE_BY_THE_SERVER}
    return {**item, "metadata": {**metadata, "name": ""}}


@pytest.mark.cluster
def test_nodes_in_etcd_are_what_a_request_would_have_made(name: str) -> None:
    odd = local_plane.lab_nodes()[0]
    odd["status"]["allocatable"] = {"cpu": "1500m", "memory": "1024Mi", "nvidia.com/gpu": 2}
    odd["spec"] = {"taints": [{"key": "a", "effect": "NoSchedule"}], "unschedulable": True}
    nodes = [*local_plane.lab_nodes()[1:], odd]
    up = plane.ensure_up(name, nodes=lambda: copy.deepcopy(nodes), listener=SILENCE).plane
    client = Cluster.from_kubeconfig(up.kubeconfig)
    for node in nodes:
        filled = client.get(f"/api/v1/nodes/{node['metadata']['name']}")
        asked = copy.deepcopy(node)
        asked["metadata"]["name"] = f"{node['metadata']['name']}-asked"
        created = client.create("/api/v1/nodes", asked)
        assert essence(filled) == essence(created)
        assert filled["metadata"]["uid"]
        assert filled["metadata"]["creationTimestamp"]
        patched = client.merge_patch(
            f"/api/v1/nodes/{node['metadata']['name']}/status",
            {"status": {"allocatable": {"nvidia.com/gpu": "7"}}},
        )
        assert patched["status"]["allocatable"]["nvidia.com/gpu"] == "7"
    client.close()


@pytest.mark.cluster
def test_what_the_server_cannot_read_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "complaint", lambda _: None)
    node = local_plane.lab_nodes()[0]
    node["metadata"]["name"] = "odd"
    node["status"]["conditions"][0]["lastHeartbeatTime"] = "yesterday"
    with pytest.raises(InputError, match=r'node odd of the dump cannot be used: .*"yesterday"'):
        plane.ensure_up(name, nodes=lambda: [*local_plane.lab_nodes(), node], listener=SILENCE)
    assert not state.folder(name).exists()


def changed(path: str, value: object) -> dict[str, Any]:
    """Return a node with one field changed; the path's parts are joined by blanks."""
    node = local_plane.lab_nodes()[0]
    node = {**json.loads(json.dumps(node)), "spec": {}}
    *parents, last = path.split()
    place = node
    for parent in parents:
        place = place[parent]
    place[last] = value
    return node


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (changed("status allocatable cpu", "lots"), "'lots' of cpu in its allocatable"),
        (changed("status capacity cpu", "-1"), "'-1' of cpu in its capacity"),
        (changed("status allocatable", {"cpu": True}), "True of cpu"),
        (changed("status allocatable", []), "its allocatable is not an object"),
        (changed("metadata labels", ["a"]), "its labels are not an object"),
        (changed("metadata labels a", 5), "the label a is 5, and label values are strings"),
        (changed("metadata labels a", "b c"), "'b c' of the label a is not a label value"),
        (changed("metadata labels not!", "x"), "'not!' is not a label key"),
        (changed("metadata labels", {"A_/b": "x"}), "'A_/b' is not a label key"),
        (changed("metadata name", "Node_1"), "'Node_1' is not a valid name"),
        (changed("spec taints", "x"), "'x' is not a taint"),
        (changed("spec taints", [{"key": "a", "effect": "No"}]), "taint a has the effect 'No'"),
    ],
)
def test_what_no_cluster_could_hold_is_refused_before(node: dict[str, Any], words: str) -> None:
    found = complaint(node)
    assert found
    assert words in found


@pytest.mark.parametrize("amount", ["1", 2, "0", "1500m", "2e3", "", "1Ki"])
def test_what_a_cluster_holds_is_taken(amount: object) -> None:
    assert complaint(changed("status allocatable cpu", amount)) is None


def test_transactions_keep_to_the_limits_of_etcd() -> None:
    large = [changed("metadata labels", {f"k{i}": "v" * 60 for i in range(n)}) for n in (5000, 5)]
    batches = list(store.batches(large * 150))
    assert sum(len(batch) for batch in batches) == 300
    assert max(len(batch) for batch in batches) <= store.BATCH
    assert max(sum(len(value) for _, value in batch) for batch in batches) <= store.BATCH_BYTES
    assert json.loads(batches[0][0][1])["metadata"]["labels"]["k0"] == "v" * 60
    with pytest.raises(InputError, match=r"the Node lab-node-0 has \d\.\d MB"):
        list(store.batches([changed("metadata labels", {f"k{i}": "v" * 60 for i in range(20000)})]))


def test_an_etcd_that_is_not_there(tmp_path: Path) -> None:
    connection = store.Store(tmp_path)
    assert connection.healthy() is None
    with pytest.raises(SetupError, match="no answer from etcd"):
        connection.put([("/registry/x", b"{}")])


def test_a_dump_with_an_edited_quantity_is_refused(name: str, tmp_path: Path) -> None:
    node = a_node("edited")
    node["status"]["allocatable"]["cpu"] = "lots"
    with pytest.raises(InputError, match="the node edited of the dump cannot be used: 'lots'"):
        local_plane.ensure_up(name, nodes=written(tmp_path, node), listener=SILENCE)
    assert not state.folder(name).exists()
