"""Clusters for the tests: Nodes and Pods by hand, and generated ones of every kind of odd."""

import json
import random
from pathlib import Path
from typing import Any

from gpuwl.inventory import sources
from gpuwl.inventory.collect import Selects, every_node
from gpuwl.inventory.model import Inventory

KEY = "nvidia.com/gpu.workload.config"
GPU, MODEL = "nvidia.com/gpu", "nvidia.com/GA102GL_A10"
PROFILE, SLICE = "nvidia.com/NVIDIA_A10-12Q", "nvidia.com/mig-1g.10gb"
NAMES = (GPU, MODEL, PROFILE, SLICE, "nvidia.com/hostdev", "cpu", "example.com/fpga")
Item = dict[str, Any]


def node(name: str, label: str | None = None, **more: Any) -> Item:
    """Return a Node; `amounts` are its allocatable, `ready` and `cordoned` its state."""
    labels = {**more.get("labels", {}), **({KEY: label} if label is not None else {})}
    status: Item = {"allocatable": more.get("amounts", {})}
    if "ready" in more:
        status["conditions"] = [{"type": "Ready", "status": more["ready"]}]
    spec = {"unschedulable": True} if more.get("cordoned") else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": status,
    }


def container(limits: Item | None = None, requests: Item | None = None, **more: Any) -> Item:
    """Return a container."""
    given = {"limits": limits, "requests": requests}
    return {"name": "c", "resources": {k: v for k, v in given.items() if v is not None}, **more}


def pod(name: str, *containers: Item, on: str | None = None, **more: Any) -> Item:
    """Return a Pod; `phase`, `metadata` and fields of the spec in `more`."""
    spec = {"containers": list(containers)}
    if on:
        spec["nodeName"] = on  # type: ignore[assignment]
    status = {"phase": more.pop("phase", "Running" if on else "Pending"), **more.pop("status", {})}
    metadata = {"name": name, "namespace": more.pop("namespace", "ns"), **more.pop("metadata", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**spec, **more},
        "status": status,
    }


def dumped(path: Path, items: list[Item]) -> Path:
    """Write a List."""
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


def read(
    tmp_path: Path, nodes: list[Item], pods: list[Item] | None, selects: Selects = every_node
) -> Inventory:
    """Return the inventory of dumps of these."""
    files = sources.Files(
        dumped(tmp_path / "nodes.json", nodes),
        None if pods is None else dumped(tmp_path / "pods.json", pods),
    )
    return sources.from_files(files, selects)


def generated(seed: int) -> tuple[list[Item], list[Item]]:
    """Return Nodes and Pods with everything that makes sums go wrong. The same for the same seed."""
    dice = random.Random(seed)  # noqa: S311 - test data
    nodes = [_node(dice, number) for number in range(dice.randrange(1, 9))]
    names = [one["metadata"]["name"] for one in nodes]
    return nodes, [_pod(dice, number, [*names, "gone"]) for number in range(dice.randrange(30))]


def _node(dice: random.Random, number: int) -> Item:
    amounts = {name: dice.choice(["0", "1", "4", "8", "1k", 4, "2000m"]) for name in _some(dice)}
    made = node(
        f"n{number}",
        dice.choice([None, "container", "vm-passthrough", "vm-vgpu", "vm-gpu"]),
        amounts=amounts,
        ready=dice.choice(["True", "True", "True", "False", "Unknown"]),
        cordoned=dice.random() < 0.2,
    )
    if dice.random() < 0.1:
        made["status"]["capacity"] = made["status"].pop("allocatable")
    return made


def _some(dice: random.Random) -> list[str]:
    return dice.sample(NAMES, dice.randrange(4))


def _pod(dice: random.Random, number: int, nodes: list[str]) -> Item:
    made = pod(
        f"p{number}",
        *[_container(dice) for _ in range(dice.randrange(1, 3))],
        on=dice.choice([None, *nodes, *nodes]),
        phase=dice.choice(["Pending", "Running", "Running", "Succeeded", "Failed", "Unknown"]),
        namespace=dice.choice(["a", "b"]),
        initContainers=[
            _container(dice, **dice.choice([{}, {"restartPolicy": "Always"}]))
            for _ in range(dice.choice([0, 0, 1, 2]))
        ],
    )
    if dice.random() < 0.15:
        made["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    if dice.random() < 0.1:
        made["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    if dice.random() < 0.1:
        made["spec"]["overhead"] = {GPU: "1", "cpu": "1"}
    return made


def _container(dice: random.Random, **more: Any) -> Item:
    amounts = {name: dice.choice(["1", "2", "0", 1]) for name in _some(dice)}
    return container(*dice.choice([(amounts, None), (amounts, amounts), (None, amounts)]), **more)
