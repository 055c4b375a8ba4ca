"""On the real control plane: against what its scheduler admits, and watched on a terminal."""

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Run, program
from tests.inventory.clusters import GPU, container, dumped, node

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


class Terminal:
    """A terminal of 100 columns, and what a program has drawn on it so far."""

    def __init__(self, *command: str) -> None:
        self._leader, follower = pty.openpty()
        self.child = subprocess.Popen(
            command,
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
            start_new_session=True,
        )
        os.close(follower)
        self.shown = ""

    def read(self) -> bool:
        """Take what was drawn; False: the program has ended."""
        ready, _, _ = select.select([self._leader], [], [], 0.1)
        try:
            self.shown += os.read(self._leader, 65536).decode() if ready else ""
        except OSError:  # the other end is closed
            return False
        return True

    def wait_for(self, text: str) -> None:
        """Wait until a text is drawn, from now on."""
        self.shown, deadline = "", time.monotonic() + 20
        while text not in self.shown:
            assert self.read(), self.shown
            assert time.monotonic() < deadline, self.shown

    def interrupt(self) -> int:
        """Press Ctrl-C; return the exit code."""
        os.killpg(self.child.pid, signal.SIGINT)
        while self.read() and self.child.poll() is None:
            pass
        while self.read() and select.select([self._leader], [], [], 0)[0]:
            pass
        os.close(self._leader)
        return self.child.wait(10)


def test_watching_outlives_the_control_plane_and_ends_well(
    found_binaries: object, tmp_path: Path
) -> None:
    gpuwl = program("gpuwl")
    assert gpuwl("local", "up", "--name", "watched").returncode == 0
    command = shutil.which("gpuwl", path=str(Path(sys.executable).parent))
    assert command
    words = ["inventory", "--local", "--name", "watched", "--watch", "--interval", "0.5"]
    terminal = Terminal(command, *words)
    try:
        terminal.wait_for("none of 3 nodes")
        gpuwl("local", "down", "--name", "watched")
        terminal.wait_for("(trying again)")
        dump = dumped(tmp_path / "nodes.json", [node("a", "container", amounts={GPU: "4"})])
        gpuwl("local", "up", "--name", "watched", "--nodes", str(dump))
        terminal.wait_for("0 of 4 held, 4 free")
        assert terminal.interrupt() == 0
    finally:
        terminal.child.kill()
        gpuwl("local", "down", "--name", "watched")
    assert "\x1b[?25h" in terminal.shown  # the cursor is back
    assert "Traceback" not in terminal.shown


def test_watching_needs_a_terminal(gpuwl: Run) -> None:
    done = gpuwl("inventory", "--watch")
    assert (done.returncode, "draws on a terminal" in done.stderr) == (2, True)
