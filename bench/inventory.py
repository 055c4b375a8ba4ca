#!/usr/bin/env python3
"""The inventory of a large cluster: beside the same sums in jq, and live.

    bench/inventory.py [ROUNDS]

Files: 5,000 nodes (105 MB) and 100,000 Pods (453 MB), which this program writes; both sides run in
turn. jq counts containers' limits alone, which is less than what a scheduler counts. Live: a local
control plane with these nodes and 10,000 Pods, read page by page. Prints medians of wall time and
peaks of memory, and fails above a limit. Needs jq, 0.6 GB of disk and 2 GB of memory.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from checker import ENVIRONMENT, HERE, Side, in_turn, row
from gpuwl.controlplane import plane
from gpuwl.system.progress import SILENCE

GPUWL = Path(sys.executable).with_name("gpuwl")
NODES, PODS, LIVE_PODS = 5000, 100_000, 10_000


def write(folder: Path) -> tuple[Path, Path, Path]:
    """Write the dumps: nodes, Pods, and as many Pods as the live cluster has."""
    nodes, pods, few = (folder / f"{name}.json" for name in ("nodes", "pods", "few"))
    for script, *arguments in (
        ("gen_dump.py", NODES, nodes),
        ("gen_pods.py", NODES, PODS, pods),
        ("gen_pods.py", NODES, LIVE_PODS, few),
    ):
        command = [sys.executable, HERE / "baselines" / script, *arguments]
        subprocess.run([str(word) for word in command], check=True)
    return nodes, pods, few


def live(nodes: Path, pods: Path, rounds: int) -> tuple[Side, int]:
    """Measure against a real API server; return also how many requests one look takes."""
    objects = [item for path in (nodes, pods) for item in json.loads(path.read_bytes())["items"]]
    up = plane.ensure_up("bench", nodes=lambda: objects, listener=SILENCE).plane
    try:
        words = ["inventory", "--kubeconfig", str(up.kubeconfig), "--verbose"]
        side = Side(GPUWL, *words)
        in_turn(rounds, side)
        said = subprocess.run(
            [str(GPUWL), *words], env=ENVIRONMENT, capture_output=True, text=True, check=True
        )
    finally:
        plane.down("bench")
    found = re.search(r"(\d+) requests", said.stderr)
    if not found or f"{NODES // 4}" not in said.stdout:
        raise SystemExit(f"unexpected: {said.stdout}{said.stderr}")
    return side, int(found[1])


def main() -> None:
    """Measure, print, and fail above a limit."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory(prefix="bench-inventory-") as name:
        folder = Path(name)
        os.environ["XDG_STATE_HOME"] = ENVIRONMENT["XDG_STATE_HOME"] = name
        nodes, pods, few = write(folder)
        jq = Side("bash", HERE / "baselines" / "jq-inventory.sh", nodes, pods)
        ours = Side(GPUWL, "inventory", "--nodes", nodes, "--pods", pods)
        in_turn(rounds, jq, ours)
        from_cluster, requests = live(nodes, few, rounds)
    print(f"medians of {rounds} rounds")
    print(f"files  jq                {jq.median:7.2f} s  {jq.peak:7.1f} MiB")
    print(f"files  gpuwl inventory   {ours.median:7.2f} s  {ours.peak:7.1f} MiB")
    print(
        f"live   gpuwl inventory   {from_cluster.median:7.2f} s  {from_cluster.peak:7.1f} MiB"
        f"  {requests} requests"
    )
    held = [
        row("files: wall, of jq's", ours.median / jq.median, "", 0.5),
        row("files: wall", ours.median, "s", 10),
        row("files: peak memory", ours.peak, "MiB", 150),
        row("live: peak memory", from_cluster.peak, "MiB", 150),
    ]
    sys.exit(not all(held))


if __name__ == "__main__":
    main()
