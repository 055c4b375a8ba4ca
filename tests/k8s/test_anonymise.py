"""Nodes without their owner's words: what is hidden, what stays, and the map of it."""

import json
import stat
import time
from pathlib import Path
from typing import Any

import pytest
from tests.checker.support import CASES
from tests.k8s.test_dump_nodes import NAME, a_node, written

from gpuwl import checker
from gpuwl.errors import InputError
from gpuwl.k8s import dump

ROLE = "node-role.kubernetes.io/control-plane"
PUBLIC = {
    "kubernetes.io/os": "linux",
    "beta.kubernetes.io/arch": "amd64",
    "nvidia.com/gpu.workload.config": "vm-vgpu",
    "nvidia.com/gpu.deploy.vgpu-manager": "paused-for-driver-upgrade",
    "nvidia.com/gpu.product": "NVIDIA-A10",
    "nvidia.com/gpu.count": "2",
    "kubevirt.io/schedulable": "true",
    "feature.node.kubernetes.io/pci-10de.present": "true",
    ROLE: "",
}
SECRETS = {
    "acme.example.com/team": "rocket",
    "topology.kubernetes.io/zone": "acme-basement",
    "node.kubernetes.io/instance-type": "acme.large",
    "node-role.kubernetes.io/acme": "",
    "nvidia.com/gpu.clique": "6f1b2c1e-acme.0",
    "kubernetes.io/cluster-acme": "owned",
    "acme.io/ip": "10.0.3.17",
    "rack": f"row-7.{NAME}",
}


def secret_node(name: str = NAME, **labels: str) -> dict[str, Any]:
    node = a_node(name, **PUBLIC, **SECRETS, **labels)
    node["spec"]["taints"] += [
        {"key": ROLE, "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z", "by": "acme"},
        {"key": "acme.example.com/team", "value": "rocket", "effect": "NoExecute"},
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
    ]
    node["status"]["conditions"] += [
        {"type": "AcmeHealth", "status": "True"},
        {"type": "DiskPressure", "status": "True", "reason": "AcmeDisk"},
    ]
    amounts = {"acme.example.com/fpga": "1", "rdma/hca": "1", "pods": "110"}
    node["status"]["allocatable"] |= amounts
    return node


def read(tmp_path: Path, *nodes: dict[str, Any]) -> list[dict[str, Any]]:
    return dump.read(written(tmp_path, *nodes), anonymise=True)


def test_no_word_of_the_owner_is_left(tmp_path: Path) -> None:
    text = json.dumps(read(tmp_path, secret_node(), secret_node("acme-2.acme.corp")))
    words = ("acme", "rocket", "ip-10", "10.0.3", "owned", "ill", "eu-west", "basement", "row-7")
    assert [word for word in words if word in text.lower()] == []


def test_what_scheduler_and_checker_read_stays(tmp_path: Path) -> None:
    (node,) = read(tmp_path, secret_node())
    labels = node["metadata"]["labels"]
    assert labels.items() >= PUBLIC.items()
    assert labels["kubernetes.io/hostname"] == node["metadata"]["name"] == "node-00000"
    assert set(labels) >= {"topology.kubernetes.io/zone", "node.kubernetes.io/instance-type"}
    assert node["spec"]["unschedulable"] is True
    allocatable = node["status"]["allocatable"]
    assert (
        allocatable.items()
        >= {"nvidia.com/GA102GL_A10": "2", "rdma/hca": "1", "pods": "110"}.items()
    )
    assert node["status"]["conditions"] == [
        {"type": "Ready", "status": "False"},
        {"type": "DiskPressure", "status": "True"},
    ]


def test_the_checker_judges_as_before(tmp_path: Path) -> None:
    node = secret_node()
    (hidden,) = read(tmp_path, node)
    before, after = checker.judge(node), checker.judge(hidden)
    assert before
    assert after
    assert before.reason
    assert after.reason.replace("node-00000", NAME) == before.reason


def test_a_word_becomes_the_same_wherever_it_stands(tmp_path: Path) -> None:
    """So that selectors, tolerations and spreading decide as they did."""
    one, two = read(tmp_path, secret_node(), secret_node("b", **{"acme.example.com/peer": NAME}))
    labels = [node["metadata"]["labels"] for node in (one, two)]
    zone = "topology.kubernetes.io/zone"
    assert labels[0][zone] == labels[1][zone]
    taints = one["spec"]["taints"]
    team = taints[2]
    assert labels[0][team["key"]] == team["value"]
    assert taints[1] == {"key": ROLE, "effect": "NoSchedule"}
    assert taints[3] == {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    assert "node-00000" in {labels[1][key] for key in set(labels[1]) - set(labels[0])}
    assert set(one["status"]["allocatable"]) == set(two["status"]["allocatable"])


def test_names_that_look_like_the_new_ones_do_not_collide(tmp_path: Path) -> None:
    nodes = [a_node("node-00001", **{"key-0": "value-0"}), a_node("node-00000", other="node-00001")]
    found = read(tmp_path, *nodes)
    assert [node["metadata"]["name"] for node in found] == ["node-00000", "node-00001"]
    assert "node-00000" in found[1]["metadata"]["labels"].values()
    assert len(found[0]["metadata"]["labels"]) == len(nodes[0]["metadata"]["labels"])


def test_odd_parts_are_survived(tmp_path: Path) -> None:
    node = a_node()
    node["spec"]["taints"] = ["x", {"key": None}]
    node["status"]["conditions"] = 5
    node["metadata"]["labels"] = {"a": 5, "b": None, "c": ["x"]}
    (found,) = read(tmp_path, node)
    assert found["spec"]["taints"] == [{"key": "key-3", "effect": None}]
    assert found["status"]["conditions"] == []


def test_long_words_cost_no_time(tmp_path: Path) -> None:
    """A word of 2,000 parts took 24 s once."""
    node = a_node(long="-".join(["a1"] * 20_000))
    node["status"]["conditions"][0]["message"] = "-".join(["a1"] * 20_000)
    before = time.process_time()
    read(tmp_path, node)
    assert time.process_time() - before < 1


def test_the_map_tells_what_became_what_to_this_user_alone(tmp_path: Path) -> None:
    source, target = written(tmp_path, secret_node(), secret_node("b")), tmp_path / "map.json"
    dump.write_map(source, target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    hidden = json.loads(target.read_text())
    assert hidden["nodes"] == {NAME: "node-00000", "b": "node-00001"}
    (node, _) = dump.read(source, anonymise=True)
    labels = node["metadata"]["labels"]
    assert labels[hidden["keys"]["acme.example.com/team"]] == hidden["values"]["rocket"]
    assert hidden["resources"]["acme.example.com/fpga"] in node["status"]["allocatable"]


def test_a_map_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot write .*: No such file"):
        dump.write_map(written(tmp_path, a_node()), tmp_path / "none" / "map.json")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_every_verdict_stays(case: Path) -> None:
    try:
        nodes = dump.read(case, anonymise=False)
    except InputError:
        return
    for before, after in zip(nodes, dump.read(case, anonymise=True), strict=True):
        was, now = checker.judge(before), checker.judge(after)
        assert (was and (was.label, bool(was.reason), len(was.resources))) == (
            now and (now.label, bool(now.reason), len(now.resources))
        )
