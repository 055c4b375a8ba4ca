"""A component that dies under a run: said by name, and mended by the same command."""

import os
import signal
from pathlib import Path

import pytest
from tests.conftest import program

from gpuwl.controlplane import components, plane, process, state
from gpuwl.controlplane.binaries.lookup import Binaries
from gpuwl.lab import local_plane
from gpuwl.system.progress import SILENCE

pytestmark = pytest.mark.cluster

NAME = "dying"


def test_a_dead_scheduler_is_named_and_the_next_run_mends_it(
    found_binaries: Binaries, own_state: Path, root: Path
) -> None:
    gpuwl = program("gpuwl", GPUWL_NAME=NAME, GPUWL_ROOT=str(root))
    local_plane.ensure_up(NAME, listener=SILENCE)
    try:
        path = state.folder(NAME) / "kubeconfig"
        record = process.read_record(process.record_path(state.folder(NAME), "kube-scheduler"))
        assert record
        os.kill(record.pid, signal.SIGKILL)
        done = gpuwl("run", "--all", "--kubeconfig", str(path), "--timeout", "1")
        assert done.returncode == 3
        assert f"kube-scheduler of the local control plane {NAME} does not run" in done.stderr
        assert f"hint: gpuwl local up --name {NAME} starts it anew" in done.stderr
        again = gpuwl("run", "--all", "--local")
        assert again.returncode == 0, again.stderr
        assert plane.dead(NAME) == []
    finally:
        plane.down(NAME)
    assert set(components.NAMES) == set(plane.dead(NAME))
