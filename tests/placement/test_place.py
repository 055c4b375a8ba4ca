"""`gpuwl place` on the real scheduler: against the lab, a brute force, changes there and back, and its end."""

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.conftest import program
from tests.lab import expected

from gpuwl.lab import local_plane, manifests
from gpuwl.lab.names import LABEL_KEY, PODS, lab_nodes

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("found_binaries")]

Place = Callable[..., "subprocess.CompletedProcess[str]"]
GPUWL = Path(sys.executable).with_name("gpuwl")
CROSS = "k8s/pod-cross.yaml"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Run `gpuwl place` with a state folder of its own, below tmp_path."""
    gpuwl = program("gpuwl", XDG_STATE_HOME=str(tmp_path / "state"), LC_ALL="C.UTF-8")

    def run(*words: str | Path, code: int) -> "subprocess.CompletedProcess[str]":
        done = gpuwl("place", *map(str, words), cwd=tmp_path)
        assert done.returncode == code, done.stderr
        return done

    return run


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """The lab's nodes as a dump, and the manifests of its four Pods."""
    nodes = local_plane.lab_nodes()
    for node, wanted in zip(nodes, lab_nodes(), strict=True):
        node["metadata"]["labels"][LABEL_KEY] = wanted.value
        for field in ("capacity", "allocatable"):
            node["status"][field] = {**node["status"][field], wanted.resource: wanted.amount}
    (tmp_path / "nodes.json").write_text(json.dumps({"kind": "List", "items": nodes}))
    (tmp_path / "k8s").mkdir()
    for pod in PODS:
        (tmp_path / pod.manifest).write_text(manifests.to_yaml(manifests.pod(pod)))
    return tmp_path


def verdicts(shown: str) -> list[str]:
    return [line for line in shown.splitlines() if line[:1].isalpha() and ": " not in line[:20]]


def test_it_says_what_steps_4_to_7_say(place: Place, lab: Path) -> None:
    before = (lab / "nodes.json").read_bytes()
    shown = place("k8s", "--nodes", "nodes.json", code=1).stdout
    assert [line for line in shown.splitlines() if not line.startswith(" ")] == [
        "job-container lab-node-0",
        f"job-cross none {expected.MESSAGE_OF_1_37}",
        "vmi-passthrough lab-node-1",
        "vmi-vgpu lab-node-2",
    ]
    assert "free under another name: 1 nvidia.com/GA102GL_A10" in shown
    assert (lab / "nodes.json").read_bytes() == before


def test_the_reasons_of_all_nodes_add_up(place: Place, lab: Path) -> None:
    document = json.loads(place(CROSS, "--nodes", "nodes.json", "--output", "json", code=1).stdout)
    (pod,) = document["before"]["pods"]
    assert pod["exact"]
    assert sum(reason["count"] for reason in pod["reasons"]) == 3
    nodes = {node: reason["reasons"] for reason in pod["reasons"] for node in reason["nodes"]}
    assert nodes == {
        "lab-node-0": ["node(s) didn't match Pod's node affinity/selector"],
        "lab-node-1": ["Insufficient nvidia.com/gpu"],
        "lab-node-2": [
            "node(s) didn't match Pod's node affinity/selector",
            "Insufficient nvidia.com/gpu",
        ],
    }


def test_a_move_there_and_back_gives_the_first_answer_again(place: Place, lab: Path) -> None:
    there = "lab-node-0=vm-passthrough:nvidia.com/GA102GL_A10=2"
    back = "lab-node-0=container:nvidia.com/gpu=4"
    words = ("k8s/pod-container.yaml", "--nodes", "nodes.json", "--output", "json")
    moved = json.loads(place(*words, "--move", there, code=1).stdout)
    assert [pod["node"] for pod in moved["before"]["pods"]] == ["lab-node-0"]
    assert [pod["node"] for pod in moved["after"]["pods"]] == [None]
    again = json.loads(place(*words, "--move", there, "--move", back, code=0).stdout)
    assert again["after"]["resources"] == again["before"]["resources"]
    assert [pod["node"] for pod in again["after"]["pods"]] == ["lab-node-0"]


@pytest.mark.parametrize(
    ("change", "node"),
    [
        (("--cordon", "lab-node-0"), None),
        (("--remove", "lab-node-0"), None),
        (("--add", "lab-node-0=1"), "lab-node-"),
    ],
    ids=["cordon", "remove", "add"],
)
def test_what_if(place: Place, lab: Path, change: tuple[str, str], node: str | None) -> None:
    words = ("k8s/pod-container.yaml", "--nodes", "nodes.json", "--output", "json")
    done = json.loads(place(*words, *change, code=1 if node is None else 0).stdout)
    (pod,) = done["after"]["pods"]
    assert pod["node"] is None if node is None else pod["node"].startswith(node)


def test_how_often_it_fits(place: Place, lab: Path) -> None:
    words = ("k8s/pod-container.yaml", "--nodes", "nodes.json")
    assert place(*words, "--times", "max", code=0).stdout == "Pod job-container fits 4 times\n"
    shown = place(*words, "--times", "5", code=1).stdout
    assert sum(line.endswith(" lab-node-0") for line in shown.splitlines()) == 4


@pytest.mark.parametrize("seed", [1, 2])
def test_against_brute_force(place: Place, tmp_path: Path, seed: int) -> None:
    """Nodes with random labels, taints and amounts; each Pod alone can go where the rules say."""
    dice = random.Random(seed)  # noqa: S311 - generated cases
    nodes = [_node(dice, number) for number in range(12)]
    pods = [_pod(dice, number) for number in range(8)]
    (tmp_path / "nodes.json").write_text(json.dumps({"kind": "List", "items": nodes}))
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all(pods))
    done = place(
        "pods.yaml", "--nodes", "nodes.json", "--reasons", "8", "--output", "json",
        code=0 if all(_fitting(pod, nodes) for pod in pods) else 1,
    )  # fmt: skip
    for found in json.loads(done.stdout)["before"]["pods"]:
        pod = next(one for one in pods if one["metadata"]["name"] == found["name"])
        fitting = _fitting(pod, nodes)
        assert (found["node"] in fitting) if fitting else found["node"] is None
        if not fitting:
            reasons = {n: r["reasons"] for r in found["reasons"] for n in r["nodes"]}
            assert {n: sorted(r) for n, r in reasons.items()} == {
                node["metadata"]["name"]: sorted(_reasons(pod, node)) for node in nodes
            }


def _node(dice: random.Random, number: int) -> dict[str, Any]:
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "110", dice.choice(NAMES): "40"}
    taints = [{"key": "gpu", "value": "x", "effect": "NoSchedule"}] if dice.random() < 0.4 else []
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": f"n{number}", "labels": {"pool": dice.choice("abc")}},
        "spec": {"taints": taints},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


NAMES = ("nvidia.com/gpu", "nvidia.com/GA102GL_A10", "nvidia.com/NVIDIA_A10-12Q", "example.com/gpu")


def _pod(dice: random.Random, number: int) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "resources": {"limits": {dice.choice(NAMES): str(dice.choice([1, 41]))}},
            }
        ],
        "nodeSelector": {"pool": dice.choice("abcd")},
    }
    if dice.random() < 0.5:
        spec["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": f"p{number}"}, "spec": spec}


def _reasons(pod: dict[str, Any], node: dict[str, Any]) -> list[str]:
    spec, found = pod["spec"], []
    if node["spec"]["taints"] and not spec.get("tolerations"):
        found.append("node(s) had untolerated taint(s)")
    if node["metadata"]["labels"]["pool"] != spec["nodeSelector"]["pool"]:
        found.append("node(s) didn't match Pod's node affinity/selector")
    ((name, amount),) = spec["containers"][0]["resources"]["limits"].items()
    if int(node["status"]["allocatable"].get(name, "0")) < int(amount):
        found.append(f"Insufficient {name}")
    return found


def _fitting(pod: dict[str, Any], nodes: list[dict[str, Any]]) -> list[str]:
    return [node["metadata"]["name"] for node in nodes if not _reasons(pod, node)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill"])
@pytest.mark.parametrize("after", [0.4, 2.0])
def test_nothing_is_left_behind(lab: Path, number: signal.Signals, after: float) -> None:
    environment = {**os.environ, "XDG_STATE_HOME": str(lab / "state")}
    command = [str(GPUWL), "place", "k8s", "--nodes", "nodes.json"]
    child = subprocess.Popen(
        command, cwd=lab, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(after)  # noqa: TID251 - a moment in the middle, whichever it is
    child.send_signal(number)
    child.wait(30)
    assert _gone(lab), "processes of a control plane that nobody wants"
    subprocess.run([GPUWL, "local", "status", "--all"], env=environment, check=True)
    hidden = lab / "state/gpuwl/.passing"
    assert not hidden.is_dir() or not [path for path in hidden.iterdir() if path.is_dir()]


def _gone(folder: Path) -> bool:
    for _ in itertools.repeat(None, 100):
        running = [p for p in Path("/proc").glob("[0-9]*/cwd") if _below(p, folder / "state")]
        if not running:
            return True
        time.sleep(0.1)  # noqa: TID251 - waits for processes that are not our children
    return False


def _below(link: Path, folder: Path) -> bool:
    try:
        return link.readlink().is_relative_to(folder)
    except OSError:
        return False


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("nowhere.yaml", "--nodes", "nodes.json"), "nowhere.yaml"),
        ((CROSS, "--nodes", "nowhere.json"), "nowhere.json"),
        ((CROSS, "--nodes", "nodes.json", "--move", "nobody=container:nvidia.com/gpu=1"), "nobody"),
        ((CROSS, "--pods", "pods.json"), "--nodes"),
    ],
    ids=["no manifest", "no dump", "no node", "Pods alone"],
)
def test_what_cannot_be_used(place: Place, lab: Path, words: tuple[str, ...], says: str) -> None:
    done = place(*words, code=2)
    assert says in done.stderr
    assert done.stdout == ""
