"""Two at once, interrupts in the middle, and what killed runs leave."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Run
from tests.faults.proxy import Proxy

from gpuwl.controlplane import state
from gpuwl.controlplane.plane import Plane
from gpuwl.k8s.client import Cluster
from gpuwl.lab import paths
from gpuwl.lab.artifacts import LOCK
from gpuwl.lab.names import NODE_NAMES
from gpuwl.steps import STEPS
from gpuwl.system import folders, locking, waiting

pytestmark = pytest.mark.cluster

Process = subprocess.Popen[str]


class Waiting:
    """Runs that wait for the scheduler in step 4, since all nodes are cordoned."""

    def __init__(self, cluster: Cluster, kubeconfig: Path) -> None:
        self._cluster = cluster
        self._kubeconfig = kubeconfig
        self._processes: list[Process] = []

    def start(self, root: Path) -> Process:
        self.cordon(on=True)
        process = subprocess.Popen(
            [sys.executable, "-m", "gpuwl", "run", "--all", "--timeout", "60"],
            env={**os.environ, "KUBECONFIG": str(self._kubeconfig), "GPUWL_ROOT": str(root)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._processes.append(process)
        assert waiting.until(self._pod_is_there, seconds=60)
        return process

    def cordon(self, *, on: bool) -> None:
        for name in NODE_NAMES:
            self._cluster.merge_patch(paths.node(name), {"spec": {"unschedulable": on or None}})

    def _pod_is_there(self) -> bool | None:
        return self._cluster.find(paths.pod("job-container")) is not None or None

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.communicate()


@pytest.fixture
def waits(cluster: Cluster, control_plane: Plane) -> Iterator[Waiting]:
    runs = Waiting(cluster, control_plane.kubeconfig)
    yield runs
    runs.close()


def left_behind(root: Path) -> list[Path]:
    """Return locks and temporary files below the root and the state folder.

    The lock with a dot is the control plane's own, which stays.
    """
    locks = [p for p in files_below(folders.state()) if p.suffix == ".lock" and p.name[0] != "."]
    return [*locks, *(p for p in files_below(root) if p.name.startswith("."))]


def test_the_same_root_is_refused_with_the_holders_name(
    waits: Waiting, gpuwl: Run, root: Path
) -> None:
    first = waits.start(root)
    done = gpuwl("run", "--all")
    assert done.returncode == 3
    assert f"another gpuwl works on root {root}: process {first.pid} (" in done.stderr
    assert "run --all --timeout 60) since 20" in done.stderr
    waits.cordon(on=False)
    _, errors = first.communicate(timeout=60)
    assert first.returncode == 0, errors
    assert not left_behind(root)
    assert gpuwl("run", "--all").returncode == 0


@pytest.mark.parametrize("command", [("run", "--all"), ("step", "1"), ("reset",)], ids=" ".join)
def test_the_same_cluster_is_refused_whatever_the_root(
    waits: Waiting, gpuwl: Run, root: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    first = waits.start(root)
    other = tmp_path / "other"
    done = gpuwl(*command, "--root", str(other), "--output", "json")
    assert done.returncode == 3
    error = json.loads(done.stdout)["error"]
    assert "another gpuwl works on the cluster at https://127.0.0.1:" in error["message"]
    assert f": process {first.pid} (" in error["message"]
    assert not other.exists()


def test_a_cluster_is_one_by_whatever_address_it_is_reached(
    waits: Waiting,
    gpuwl: Run,
    control_plane: Plane,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With another state folder it is a cluster like any other, whose journal has one writer."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    first = waits.start(tmp_path / "first")
    proxy = Proxy(control_plane.kubeconfig)
    try:
        kubeconfig = proxy.write_kubeconfig(tmp_path / "kubeconfig")
        for command in (("run", "--all"), ("reset",)):
            done = gpuwl(*command, "--kubeconfig", str(kubeconfig))
            assert done.returncode == 3
            assert f"works on the cluster at http://127.0.0.1:{proxy.port}" in done.stderr
            assert f": process {first.pid} (" in done.stderr
    finally:
        proxy.close()
    waits.cordon(on=False)
    _, errors = first.communicate(timeout=60)
    assert first.returncode == 0, errors
    assert [path.suffix for path in files_below(tmp_path / "state")] == [".json"]


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_the_root_is_locked_for_another_state_folder_too(
    waits: Waiting, gpuwl: Run, root: Path, tmp_path: Path
) -> None:
    first = waits.start(root)
    link = tmp_path / "link"
    link.symlink_to(root)
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    done = gpuwl("run", "--all", "--root", str(link), env=env)
    assert done.returncode == 3
    assert f"process {first.pid} (" in done.stderr


def test_read_only_commands_do_not_wait_for_it(waits: Waiting, gpuwl: Run, root: Path) -> None:
    waits.start(root)
    assert gpuwl("steps").returncode == 0
    assert gpuwl("verify").returncode in {1, 3}
    assert "another gpuwl" not in gpuwl("verify").stderr


def test_the_locks_of_a_killed_run_hold_nobody_up(waits: Waiting, gpuwl: Run, root: Path) -> None:
    first = waits.start(root)
    first.kill()
    first.communicate()
    assert (root / LOCK).exists()
    stale = locking.holder(root / LOCK)
    assert stale
    assert stale.pid == first.pid
    waits.cordon(on=False)
    done = gpuwl("run", "--all")
    assert done.returncode == 0, done.stderr
    assert not left_behind(root)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_a_run_that_is_stopped_leaves_everything_in_order(
    waits: Waiting,
    gpuwl: Run,
    root: Path,
    control_plane: Plane,
    *,
    number: signal.Signals,
    code: int,
) -> None:
    first = waits.start(root)
    first.send_signal(number)
    _, errors = first.communicate(timeout=30)
    assert first.returncode == code
    assert "Traceback" not in errors
    if number != signal.SIGKILL:
        assert not left_behind(root)
    journal = json.loads((state.folder(control_plane.name) / "journal.json").read_bytes())
    assert set(journal["made"]) == {"Namespace/gpu-vm", "Pod/job-container"}
    assert len(journal["values"]) == 9
    record = json.loads((root / "out/run.json").read_bytes())
    assert [s["result"] for s in record["steps"][:3]] == ["done"] * 3
    assert record["steps"][3]["result"] == ("running" if code < 0 else "failed")

    waits.cordon(on=False)
    done = gpuwl("run", "--all")
    assert done.returncode == 0, done.stderr
    assert all((root / name).is_file() for step in STEPS for name in step.artifacts)
    assert not left_behind(root)
    assert gpuwl("reset", "--files").returncode == 0
    assert not root.exists()
