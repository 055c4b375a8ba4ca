#!/usr/bin/env python3
"""Write Pods for the nodes of gen_dump.py, as `kubectl get pods -A -o json` prints them.

    bench/baselines/gen_pods.py NODES PODS FILE

A Pod has about 4 KB indented. Four of ten ask for what their node advertises, until it is full; one of
fifty asks for a GPU and has no node. The same bytes every time.
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

RESOURCES = [
    ("nvidia.com/gpu", 8),
    ("nvidia.com/GA102GL_A10", 4),
    ("nvidia.com/NVIDIA_A10-12Q", 16),
    None,
]


def pod(number: int, node: str | None, limits: dict[str, str], phase: str) -> dict[str, Any]:
    """Return one Pod with what a real one carries along."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"job-{number % 997}"}
    container: dict[str, Any] = {
        "name": "main",
        "image": f"registry.example/team/app-{number % 40}:v1.{number % 7}",
        "env": [{"name": f"VARIABLE_{n}", "value": f"value-{n}"} for n in range(14)],
        "resources": {"limits": limits, "requests": {"cpu": "500m", "memory": "1Gi"}},
        "volumeMounts": [{"name": f"v{n}", "mountPath": f"/mnt/{n}"} for n in range(3)],
    }
    spec: dict[str, Any] = {
        "containers": [container],
        "volumes": [{"name": f"v{n}", "emptyDir": {}} for n in range(3)],
        "tolerations": [{"key": f"k{n}", "operator": "Exists"} for n in range(4)],
    }
    if node:
        spec["nodeName"] = node
    conditions = [{"type": kind, "status": "True"} for kind in ("Initialized", "Ready")]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{number:06d}",
            "namespace": f"team-{number % 23}",
            "labels": {f"label-{n}": f"value-{n}" for n in range(8)},
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": spec,
        "status": {"phase": phase, "conditions": conditions, "podIP": "10.0.0.1"},
    }


def write(path: Path, nodes: int, pods: int) -> None:
    """Write the Pods."""
    dice = random.Random(11)  # noqa: S311 - filler, no secret
    left = [RESOURCES[n % 4][1] if RESOURCES[n % 4] else 0 for n in range(nodes)]  # type: ignore[index]
    with path.open("w") as file:
        file.write('{\n    "apiVersion": "v1",\n    "items": [\n')
        for number in range(pods):
            file.write(",\n" if number else "")
            file.write(json.dumps(_one(number, nodes, left, dice), indent=4))
        file.write('\n    ],\n    "kind": "List",\n    "metadata": {"resourceVersion": ""}\n}\n')


def _one(number: int, nodes: int, left: list[int], dice: random.Random) -> dict[str, Any]:
    at = dice.randrange(nodes)
    resource = RESOURCES[at % 4]
    if number % 50 == 0:
        return pod(number, None, {"nvidia.com/gpu": "2"}, "Pending")
    if resource and left[at] and dice.random() < 0.4:
        left[at] -= 1
        return pod(number, f"node-{at:06d}", {resource[0]: "1"}, "Running")
    return pod(number, f"node-{at:06d}", {"cpu": "1"}, dice.choice(["Running", "Succeeded"]))


if __name__ == "__main__":
    write(Path(sys.argv[3]), int(sys.argv[1]), int(sys.argv[2]))
