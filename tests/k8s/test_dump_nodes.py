"""The nodes of somebody's dump: what is kept, what is renamed, what is refused."""

import json
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
