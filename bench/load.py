#!/usr/bin/env python3
"""How many nodes of a dump a local control plane takes in a second.

    bench/load.py [ROUNDS]

Each round starts a local control plane with a dump of 5,000 nodes, and then makes a Pod that asks for
what a quarter of them advertise, which has to get one. Prints the median rate; the limit is 4,000 nodes
a second. It is the one figure here that is no ratio: it needs two idle cores.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gpuwl.controlplane import loading, plane
from gpuwl.k8s.client import Cluster
from gpuwl.k8s.objects import Object
from gpuwl.lab import local_plane
from gpuwl.system import waiting
from gpuwl.system.progress import SILENCE, Listener

GENERATOR = Path(__file__).parent / "baselines/gen_dump.py"
COUNT = 5000
LIMIT = 4000
PODS = "/api/v1/namespaces/default/pods"


class Clock:
    """Times the loading of nodes within a start."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def load(self, folder: Path, objects: list[Object], say: Listener) -> None:
        """Load, and take note of how long it took."""
        began = time.perf_counter()
        LOAD(folder, objects, say)
        self.seconds = time.perf_counter() - began


LOAD = loading.load


def node_of_a_pod(client: Cluster) -> str | None:
    """Make a Pod that asks for a GPU; return the node that the scheduler gives it."""
    limits = {"limits": {"nvidia.com/GA102GL_A10": "1"}}
    spec = {"containers": [{"name": "c", "image": "i", "resources": limits}]}
    client.create(PODS, {"metadata": {"name": "p"}, "spec": spec})
    return waiting.until(lambda: client.get(f"{PODS}/p")["spec"].get("nodeName"), seconds=60)


def measure(dump: Path) -> float:
    """Return the rate of one start, whose nodes have to be there and usable."""
    clock = Clock()
    loading.load = clock.load
    up = local_plane.ensure_up("bench", nodes=dump, listener=SILENCE).plane
    try:
        client = Cluster.from_kubeconfig(up.kubeconfig, request_timeout=60)
        there, node = len(client.get("/api/v1/nodes")["items"]), node_of_a_pod(client)
        client.close()
    finally:
        plane.down("bench")
    if there != COUNT or not node:
        raise SystemExit(f"{there} nodes are there, and the Pod has {node or 'no node'}")
    return COUNT / clock.seconds


def main() -> None:
    """Measure, print, and fail below the limit."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory(prefix="bench-load-") as folder:
        os.environ["XDG_STATE_HOME"] = folder
        dump = Path(folder) / "nodes.json"
        subprocess.run([sys.executable, str(GENERATOR), str(COUNT), str(dump)], check=True)
        rates = [measure(dump) for _ in range(rounds)]
    rate = statistics.median(rates)
    print(f"nodes a second: {', '.join(f'{one:.0f}' for one in rates)}")
    print(f"median of {rounds}: {rate:.0f} (limit {LIMIT})")
    sys.exit(rate < LIMIT)


if __name__ == "__main__":
    main()
