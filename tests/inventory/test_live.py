"""On the real control plane: against what its scheduler admits, and watched on a terminal."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Run
from tests.inventory.clusters import GPU, container

from gpuwl.controlplane import plane
from gpuwl.inventory import sources, sums
from gpuwl.k8s import objects
from gpuwl.k8s.client import Cluster
from gpuwl.lab.names import NODE_NAMES
from gpuwl.system import waiting

pytestmark = pytest.mark.cluster
PODS = "/api/v1/namespaces/default/pods"


def decided(cluster: Cluster, name: str) -> str:
    """Return `True` or `False` once the scheduler has said whether the Pod has a node."""

    def said() -> str | None:
        return objects.scheduled(cluster.get(f"{PODS}/{name}")).get("status")

    found = waiting.until(said, seconds=20)
    assert found is not None
    return found


def figures(cluster: Cluster) -> Any:
    found = sources.from_cluster(cluster)
    return next(row for row in sums.by_resource(found) if row.resource == GPU)


def test_the_scheduler_admits_what_is_free_and_no_more(cluster: Cluster) -> None:
    for name, amount in zip(NODE_NAMES, ("5", "2", "4"), strict=True):
        status = {"status": {field: {GPU: amount} for field in ("capacity", "allocatable")}}
        cluster.merge_patch(f"/api/v1/nodes/{name}/status", status)
    cluster.merge_patch(f"/api/v1/nodes/{NODE_NAMES[2]}", {"spec": {"unschedulable": True}})
    waited = 0
    for number, size in enumerate((1, 2, 1, 2, 2, 1, 1)):
        before = figures(cluster)
        fits = (before.largest or 0) >= size
        spec = {"containers": [{**container({GPU: str(size)}), "image": "i"}]}
        cluster.create(PODS, {"metadata": {"name": f"p{number}"}, "spec": spec})
        assert decided(cluster, f"p{number}") == str(fits), before
        waited += not fits
        after = figures(cluster)
        assert after.used == before.used + size * fits
        assert (after.waiting, after.closed) == (waited, 4)
    assert waited
    assert figures(cluster).free == 0


def test_it_reads_pages(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "NODES_A_PAGE", 1)
    before = cluster.requests
    assert len(sources.from_cluster(cluster).nodes) == 3
    assert (
        cluster.requests - before == 7
    )  # three pages of nodes, one of each kind of DRA, one of Pods


def test_watching_ends_well(cluster: Cluster, control_plane: plane.Plane, tmp_path: Path) -> None:
    """A terminal of 100 columns; Ctrl-C gives the cursor back, and the exit code is 0."""
    leader, follower = pty.openpty()
    program = Path(sys.executable).with_name("gpuwl")
    environment = {**os.environ, "KUBECONFIG": str(control_plane.kubeconfig), "COLUMNS": "100"}
    child = subprocess.Popen(
        [str(program), "inventory", "--watch", "--interval", "0.5"],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**environment, "TERM": "xterm"},
        start_new_session=True,
    )
    os.close(follower)
    shown = b""
    deadline = time.monotonic() + 20
    while b"Ctrl-C" not in shown and time.monotonic() < deadline:
        shown += os.read(leader, 65536)
    os.killpg(child.pid, signal.SIGINT)
    while True:
        try:
            more = os.read(leader, 65536)
        except OSError:  # the terminal's other end is closed
            break
        if not more:
            break
        shown += more
    assert child.wait(10) == 0
    assert b"Traceback" not in shown
    assert re.search(rb"\x1b\[\?25h", shown)
    os.close(leader)


def test_watching_needs_a_terminal(gpuwl: Run) -> None:
    done = gpuwl("inventory", "--watch")
    assert (done.returncode, "draws on a terminal" in done.stderr) == (2, True)
