#!/usr/bin/env python3
"""`gpuwl place` from nothing, with the binaries cached: wall time and peak memory of all its processes.

    bench/place.py [ROUNDS]

1,000 nodes, 200 bound and 50 waiting Pods (limit 4 s); 5,000, 10,000 and 200 (limit 15 s and 1.5 GB).
Prints medians; a fifth of the waiting Pods can go nowhere, and the reasons of one kind are asked for.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GPUWL = Path(sys.executable).with_name("gpuwl")
NAMES = ("nvidia.com/gpu", "nvidia.com/GA102GL_A10", "nvidia.com/NVIDIA_A10-12Q")
SIZES = {(1000, 200, 50): 4.0, (5000, 10_000, 200): 15.0}
MOST_MEMORY = 1.5e9


def node(number: int) -> dict[str, object]:
    """Return a node with eight cards of one name."""
    amounts = {"cpu": "64", "memory": "256Gi", "pods": "110", NAMES[number % 3]: "8"}
    return {
        "kind": "Node",
        "metadata": {"name": f"n{number}", "labels": {"pool": f"pool-{number % 10}"}},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod(name: str, resource: str, node_name: str | None) -> dict[str, object]:
    """Return a Pod that asks for a card, bound to a node or waiting."""
    container = {"name": "c", "image": "i", "resources": {"limits": {resource: "1"}}}
    place = {"nodeName": node_name} if node_name else {}
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {**place, "containers": [container]},
        "status": {"phase": "Running" if node_name else "Pending"},
    }


def write(folder: Path, nodes: int, bound: int, waiting: int) -> None:
    """Write both dumps."""
    pods = [pod(f"b{n}", NAMES[(n % nodes) % 3], f"n{n % nodes}") for n in range(bound)]
    pods += [pod(f"w{n}", NAMES[n % 3] if n % 5 else f"{NAMES[0]}s", None) for n in range(waiting)]
    for name, items in (("nodes", [node(n) for n in range(nodes)]), ("pods", pods)):
        (folder / f"{name}.json").write_text(json.dumps({"kind": "List", "items": items}))


def run(folder: Path) -> tuple[float, float]:
    """Return seconds and the peak memory of the command's processes in bytes."""
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    words = [str(GPUWL), "-q", "place", "--nodes", "nodes.json", "--pods", "pods.json"]
    began, peak = time.perf_counter(), 0.0
    with subprocess.Popen(
        [*words, "--reasons", "0"], cwd=folder, env=environment, stdout=subprocess.DEVNULL
    ) as child:
        while child.poll() is None:
            peak = max(peak, memory(folder / "state") + resident(child.pid))
            time.sleep(0.1)  # noqa: TID251 - samples
    return time.perf_counter() - began, peak


def memory(state: Path) -> float:
    """Return the resident memory of the processes that work below the state folder."""
    total = 0.0
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if link.readlink().is_relative_to(state):
                total += resident(int(link.parent.name))
        except OSError:
            continue
    return total


def resident(pid: int) -> float:
    """Return the resident memory of a process in bytes, 0 for one that is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * float(os.sysconf("SC_PAGE_SIZE"))


def main() -> int:
    """Measure, print, and fail above a limit."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    failed = False
    for (nodes, bound, waiting), limit in SIZES.items():
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write(folder, nodes, bound, waiting)
            seconds, peaks = zip(*(run(folder) for _ in range(rounds)), strict=True)
        middle, peak = statistics.median(seconds), max(peaks)
        print(
            f"{nodes:,}/{bound:,}/{waiting:,}: {middle:.1f} s (limit {limit:g}), {peak / 1e9:.2f} GB"
        )
        failed |= middle > limit or peak > MOST_MEMORY
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
