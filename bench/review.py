#!/usr/bin/env python3
"""`gpuwl review` on many manifests, and on many documents that ask for no GPU.

    bench/review.py

1,000 manifests against 5,000 nodes and 10,000 Pods (limits: 5 s and 400 MB), and 10,000 documents without
GPUs, whose rate is per core. Prints seconds, peak memory and the rate.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GPUWL = Path(sys.executable).with_name("gpuwl")
NAMES = ("nvidia.com/gpu", "nvidia.com/GA102GL_A10", "nvidia.com/NVIDIA_A10-12Q")
LONGEST = 5.0
MOST_MEMORY = 400


def run(folder: Path, *words: str) -> tuple[float, float]:
    """Return seconds and peak memory in MiB of one review."""
    began = time.perf_counter()
    child = subprocess.Popen([str(GPUWL), "review", *words], cwd=folder, stdout=subprocess.DEVNULL)
    _, _, usage = os.wait4(child.pid, 0)
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def write(folder: Path) -> None:
    """Write nodes, Pods and manifests."""
    nodes = [_node(number) for number in range(5000)]
    pods = [_pod(f"b{number}", number, f"n{number % 5000}") for number in range(10_000)]
    (folder / "nodes.json").write_text(json.dumps({"kind": "List", "items": nodes}))
    (folder / "pods.json").write_text(json.dumps({"kind": "List", "items": pods}))
    with (folder / "gpus.yaml").open("w") as file:
        file.writelines(f"---\n{_manifest(number, gpu=True)}" for number in range(1000))
    with (folder / "none.yaml").open("w") as file:
        file.writelines(f"---\n{_manifest(number, gpu=False)}" for number in range(10_000))


def _node(number: int) -> dict[str, object]:
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110", NAMES[number % 3]: "8"}
    labels = {"pool": f"pool-{number % 20}", "kubernetes.io/arch": "amd64"}
    return {
        "kind": "Node",
        "metadata": {"name": f"n{number}", "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _pod(name: str, number: int, node: str) -> dict[str, object]:
    limits = {"limits": {NAMES[number % 3]: "1"}}
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i", "resources": limits}]}
    return {"kind": "Pod", "metadata": {"name": name}, "spec": spec, "status": {"phase": "Running"}}


def _manifest(number: int, *, gpu: bool) -> str:
    limit = f"{NAMES[number % 3]}: 1" if gpu else "cpu: 1"
    return f"""apiVersion: apps/v1
kind: Deployment
metadata:
  name: d{number}
  namespace: team-{number % 10}
spec:
  replicas: 2
  selector:
    matchLabels: {{app: d{number}}}
  template:
    metadata:
      labels: {{app: d{number}}}
    spec:
      nodeSelector: {{pool: pool-{number % 20}}}
      containers:
      - name: c
        image: registry.example/app:1
        resources:
          limits:
            {limit}
"""


def main() -> int:
    """Measure, print, and fail above the limits."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder)
        around = ("--nodes", "nodes.json", "--pods", "pods.json")
        seconds, memory = min(run(folder, "gpus.yaml", *around) for _ in range(3))
        print(f"1,000 manifests, 5,000 nodes, 10,000 Pods: {seconds:.2f} s, {memory:.0f} MiB")
        plain, _ = min(run(folder, "none.yaml") for _ in range(3))
        print(f"10,000 documents without GPUs: {plain:.2f} s, {10_000 / plain:,.0f} a second")
    return int(seconds > LONGEST or memory > MOST_MEMORY)


if __name__ == "__main__":
    sys.exit(main())
