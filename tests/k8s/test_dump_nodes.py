"""The nodes of somebody's dump: what is kept, what is renamed, what is refused."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from gpuwl.errors import InputError
from gpuwl.k8s import dump

NAME = "ip-10-0-3-17.eu-west-1.compute.internal"


def a_node(name: str = NAME, **labels: str) -> dict[str, Any]:
    """Return a node as a managed cluster has it."""
    short = name.split(".", maxsplit=1)[0]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": "6f1b2c1e-0000-4000-8000-000000000000",
            "resourceVersion": "12",
            "annotations": {"csi.volume.kubernetes.io/nodeid": f'{{"ebs":"{short}"}}'},
            "labels": {"kubernetes.io/hostname": short, "nvidia.com/gpu": "x", **labels},
            "managedFields": [{"manager": "kubelet", "operation": "Update"}],
        },
        "spec": {
            "podCIDR": "10.0.0.0/24",
            "providerID": f"aws:///eu-west-1a/{short}",
            "taints": [{"key": "team", "value": f"only-{short}", "effect": "NoSchedule"}],
            "unschedulable": True,
        },
        "status": {
            "addresses": [{"type": "InternalIP", "address": "10.0.3.17"}],
            "allocatable": {"cpu": "63", "nvidia.com/GA102GL_A10": 2},
            "capacity": {"cpu": "64", "nvidia.com/GA102GL_A10": "2"},
            "conditions": [
                {"type": "Ready", "status": "False", "message": f"{short} says: {name} is ill"}
            ],
            "images": [{"names": ["a"], "sizeBytes": 1}],
            "nodeInfo": {"machineID": "42"},
        },
    }


def written(tmp_path: Path, *nodes: dict[str, Any], kind: str = "List") -> Path:
    """Write a dump of these nodes."""
    path = tmp_path / "nodes.json"
    path.write_text(json.dumps({"apiVersion": "v1", "items": list(nodes), "kind": kind}))
    return path


def test_what_the_scheduler_decides_by_is_kept_and_nothing_else(tmp_path: Path) -> None:
    (node,) = dump.read(written(tmp_path, a_node()), anonymise=False)
    whole = a_node()
    assert node == {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NAME, "labels": whole["metadata"]["labels"]},
        "spec": {"taints": whole["spec"]["taints"], "unschedulable": True},
        "status": {
            "allocatable": {"cpu": "63", "nvidia.com/GA102GL_A10": "2"},
            "capacity": {"cpu": "64", "nvidia.com/GA102GL_A10": "2"},
            "conditions": whole["status"]["conditions"],
        },
    }


def test_anonymous_nodes_carry_the_old_names_nowhere(tmp_path: Path) -> None:
    nodes = [
        a_node(rack=f"row-7.{NAME}", beside="ip-10-0-3-18", near="ip-10-0-3-17x"),
        a_node("ip-10-0-3-18.eu-west-1.compute.internal"),
    ]
    found = dump.read(written(tmp_path, *nodes), anonymise=True)
    assert [node["metadata"]["name"] for node in found] == ["node-00000", "node-00001"]
    text = json.dumps(found)
    assert set(re.findall(r"ip-10-0-3-\w+", text)) == {"ip-10-0-3-17x"}
    first = found[0]
    assert first["metadata"]["labels"] == {
        "kubernetes.io/hostname": "node-00000",
        "nvidia.com/gpu": "x",
        "rack": "row-7.node-00000",
        "beside": "node-00001",
        "near": "ip-10-0-3-17x",
    }
    assert first["spec"]["taints"][0]["value"] == "only-node-00000"
    assert first["status"]["conditions"][0]["message"] == "node-00000 says: node-00000 is ill"
    assert first["status"]["capacity"] == {"cpu": "64", "nvidia.com/GA102GL_A10": "2"}


@pytest.mark.parametrize("name", ["gpu", "nvidia.com", "worker"])
def test_a_name_that_is_an_ordinary_word_leaves_keys_and_resources_alone(
    tmp_path: Path, name: str
) -> None:
    node = a_node(name, **{"node-role.kubernetes.io/worker": "", "self": name})
    (found,) = dump.read(written(tmp_path, node), anonymise=True)
    assert set(found["metadata"]["labels"]) == set(node["metadata"]["labels"])
    assert found["metadata"]["labels"]["self"] == "node-00000"
    assert found["status"]["capacity"] == node["status"]["capacity"]


def test_anonymous_nodes_hide_names_without_digits_and_host_parts_too(tmp_path: Path) -> None:
    labels = {"fqdn": "big-box.corp", "at": "r1-big-box", "peer": "ip-10-0-3-18", "x.y/big-box": ""}
    box, peer = a_node("big-box", **labels), a_node("ip-10-0-3-18.eu-west-1.compute.internal")
    zeus = a_node("zeus", beside="big-box", over="rack.big-box")
    zeus["spec"]["taints"] = []
    zeus["status"]["conditions"][0]["message"] = "zeus waits for big-box"
    text = json.dumps(dump.read(written(tmp_path, box, peer, zeus), anonymise=True))
    assert re.findall(r"big-box|zeus|ip-10", text) == []
    assert '"fqdn": "node-00000.corp"' in text
    assert '"x.y/node-00000": ""' in text
    assert "node-00002 waits for node-00000" in text


def test_a_name_that_kubernetes_uses_in_keys_leaves_those_alone(tmp_path: Path) -> None:
    role = "node-role.kubernetes.io/control-plane"
    (found,) = dump.read(written(tmp_path, a_node("control-plane", **{role: ""})), anonymise=True)
    assert role in found["metadata"]["labels"]


def test_names_that_look_like_the_new_ones_do_not_collide(tmp_path: Path) -> None:
    nodes = [a_node("node-00001", other="node-00000"), a_node("node-00000", other="node-00001")]
    found = dump.read(written(tmp_path, *nodes), anonymise=True)
    assert [node["metadata"]["name"] for node in found] == ["node-00000", "node-00001"]
    assert [node["metadata"]["labels"]["other"] for node in found] == ["node-00001", "node-00000"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
def test_encodings_of_powershell_are_read(tmp_path: Path, encoding: str) -> None:
    path = written(tmp_path, a_node())
    path.write_bytes(path.read_text().encode(encoding))
    assert [node["metadata"]["name"] for node in dump.read(path, anonymise=False)] == [NAME]


def test_null_parts_and_other_kinds_are_passed_over(tmp_path: Path) -> None:
    bare = {"metadata": {"name": "bare", "labels": None}, "spec": None, "status": None}
    claim = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "c"}}
    (node,) = dump.read(written(tmp_path, bare, claim), anonymise=True)
    assert node["metadata"] == {"name": "node-00000", "labels": {}}
    assert (node["spec"], node["status"]) == ({}, {})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"kind: List\n", "YAML"),
        (b'{"kind": "Status", "message": "Unauthorized"}', "Status"),
        (b'{"kind": "PodList", "items": []}', "is a dump of Pod, not of Node"),
        (b'{"kind": "List", "items": [{"kind": "Node"', "cut off"),
        (b'{"kind": "List", "items": []}', "holds no node"),
        (b'{"items": [{"metadata": {}}]}', "name"),
        (b'{"items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "a"}}]}', "a twice"),
        (b"\x1f\x8b\x08\x00", "gzip"),
    ],
)
def test_what_is_no_dump_is_refused_with_a_reason(
    tmp_path: Path, content: bytes, words: str
) -> None:
    path = tmp_path / "nodes.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as refused:
        dump.read(path, anonymise=False)
    assert refused.value.message.startswith(str(path))
    assert words in refused.value.message


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path, words in ((tmp_path / "none", "No such file"), (tmp_path, "Is a directory")):
        with pytest.raises(InputError, match=words):
            dump.read(path, anonymise=False)


def test_anonymous_nodes_carry_no_address_and_no_id(tmp_path: Path) -> None:
    node = a_node(**{"corp/instance": "i-0a1b2c3d", "corp/ip": "10.0.3.17", "zone": "a-0"})
    node["spec"]["providerID"] = "aws:///eu-west-1a/i-0a1b2c3d"
    node["status"]["nodeInfo"] = {"machineID": "0" * 31 + "7", "bootID": 5, "systemUUID": "0"}
    node["status"]["addresses"] += [{"address": "fd00:1::17"}, {}, "no address"]
    node["status"]["conditions"][0]["message"] = (
        f"dial tcp 10.0.3.17:10250 and [fd00:1::17]:10250: {'0' * 31}7 on i-0a1b2c3d, not 10.0.3.170"
    )
    odd = a_node("odd")
    odd["status"]["addresses"] = odd["status"]["nodeInfo"] = odd["metadata"]["uid"] = 5
    (found, _) = dump.read(written(tmp_path, node, odd), anonymise=True)
    labels = found["metadata"]["labels"]
    assert (labels["corp/instance"], labels["corp/ip"]) == ("node-00000", "node-00000")
    assert labels["zone"] == "a-0"
    assert found["status"]["conditions"][0]["message"] == (
        "dial tcp node-00000:10250 and [node-00000]:10250: node-00000 on node-00000, not 10.0.3.170"
    )
