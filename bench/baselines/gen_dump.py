#!/usr/bin/env python3
"""Write a dump as `kubectl get nodes -o json` prints it, with nodes as large as on a managed cluster.

    bench/baselines/gen_dump.py NODES FILE [TIMES]

A node has about 21 KB indented: 60 feature labels, managedFields and 40 cached images. Three of four
nodes carry the label, and all of them agree. The same bytes every time. TIMES repeats the whole lot.
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

KEY = "nvidia.com/gpu.workload.config"
USES = [
    {"label": "container", "resource": "nvidia.com/gpu", "amount": "8"},
    {"label": "vm-passthrough", "resource": "nvidia.com/GA102GL_A10", "amount": "4"},
    {"label": "vm-vgpu", "resource": "nvidia.com/NVIDIA_A10-12Q", "amount": "16"},
    {},
]


def image(number: int, digits: random.Random) -> dict[str, Any]:
    """Return one entry of status.images."""
    name = f"registry.example/team/app-{number}"
    names = [f"{name}@sha256:{digits.getrandbits(256):064x}", f"{name}:v1.{number}"]
    return {"names": names, "sizeBytes": digits.randrange(10**9)}


def node(number: int, digits: random.Random) -> dict[str, Any]:
    """Return one Node."""
    use = USES[number % len(USES)]
    name = f"node-{number:06d}"
    labels = {f"feature.node.kubernetes.io/cpu-cpuid.F{n}": "true" for n in range(60)}
    labels["kubernetes.io/hostname"] = name
    amounts = {
        "cpu": "64",
        "memory": "527876544Ki",
        "pods": "110",
        "ephemeral-storage": "1865634Mi",
        "hugepages-1Gi": "0",
        "nvidia.com/gpu": "0",
    }
    if use:
        labels[KEY] = use["label"]
        amounts[use["resource"]] = use["amount"]
    fields = {f"f:{key}": dict[str, str]() for key in labels}
    managed = [{"manager": "kubelet", "operation": "Update", "fieldsV1": fields}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "managedFields": managed},
        "spec": {"podCIDR": "10.0.0.0/24"},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "images": [image(n, digits) for n in range(40)],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def write(path: Path, count: int, repeat: int) -> None:
    """Write `count` nodes, the whole lot `repeat` times over."""
    digits = random.Random(7)  # noqa: S311 - filler, no secret
    nodes = ",".join(json.dumps(node(n, digits), indent=4) + "\n" for n in range(count))
    with path.open("w") as file:
        file.write('{\n    "apiVersion": "v1",\n    "items": [\n')
        for turn in range(repeat):
            file.write(("," if turn else "") + nodes)
        file.write('    ],\n    "kind": "List",\n    "metadata": {"resourceVersion": ""}\n}\n')


if __name__ == "__main__":
    write(Path(sys.argv[2]), int(sys.argv[1]), int(sys.argv[3]) if len(sys.argv) > 3 else 1)
