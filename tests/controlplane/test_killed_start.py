"""Starts that are killed or interrupted at some moment: nothing stays once the next command came."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.controlplane.support import assert_none_in, processes_in

from gpuwl.controlplane import plane, process, state, status, teardown
from gpuwl.lab import local_plane
from gpuwl.system import waiting
from gpuwl.system.progress import SILENCE

pytestmark = pytest.mark.cluster

GPUWL = str(Path(sys.executable).with_name("gpuwl"))

MOMENTS = [
    "starting",
    "etcd.process",
    "ca.crt",
    "kube-apiserver.process",
    "kube-scheduler.process",
    "plane.json",
]
"""Files of a start in the order in which they appear."""


def start_until(name: str, file: str, *words: str) -> "subprocess.Popen[str]":
    """Let the real command start a control plane, and return as soon as that file is there."""
    child = subprocess.Popen(
        [GPUWL, *(words or ["local", "up", "--name", name])],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    awaited = state.folder(name) / file
    deadline = time.monotonic() + 60
    while not awaited.exists():
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < deadline
        os.sched_yield()
    return child


def end(child: "subprocess.Popen[str]", number: signal.Signals) -> tuple[str, str]:
    child.send_signal(number)
    return child.communicate(timeout=30)


@pytest.mark.parametrize("moment", MOMENTS)
def test_what_a_killed_start_left_goes_with_the_next_command(name: str, moment: str) -> None:
    end(start_until(name, moment), signal.SIGKILL)
    _assert_cleaned_or_up(name)


def test_at_a_random_moment_too(name: str) -> None:
    child = start_until(name, MOMENTS[0])
    waiting.pause(random.SystemRandom().uniform(0, 0.6))
    end(child, signal.SIGKILL)
    _assert_cleaned_or_up(name)


def _assert_cleaned_or_up(name: str) -> None:
    """A start that had ended before the signal came left a control plane, any other nothing."""
    folder = state.folder(name)
    if state.read(name):
        assert teardown.sweep() == []
        assert plane.is_up(name)
        assert len(processes_in(folder)) == 3
    else:
        # a child of the killed command holds its lock between fork and exec
        assert waiting.until(lambda: teardown.sweep() or None, seconds=10) == [name]
        assert not folder.exists()
        assert_none_in(folder)


def test_status_cleans_up_before_it_looks(name: str) -> None:
    end(start_until(name, "kube-apiserver.process"), signal.SIGKILL)
    assert waiting.until(lambda: status.status(name).phase == "down" or None, seconds=10)
    assert_none_in(state.folder(name))


def test_the_next_start_works(name: str) -> None:
    end(start_until(name, "kube-apiserver.process"), signal.SIGKILL)
    assert local_plane.ensure_up(name, listener=SILENCE).started
    assert len(processes_in(state.folder(name))) == 3


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)],
    ids=["TERM", "HUP", "INT"],
)
def test_an_interrupted_start_cleans_up_itself(
    name: str, number: signal.Signals, code: int
) -> None:
    child = start_until(name, "kube-apiserver.process")
    _, said = end(child, number)
    assert child.returncode == code
    assert said.splitlines()[-1].startswith("error: ")
    assert not state.folder(name).exists()
    assert_none_in(state.folder(name))


@pytest.mark.parametrize("moment", [MOMENTS[0], MOMENTS[3]])
def test_a_burst_of_ctrl_c_says_one_line_and_leaves_nothing(name: str, moment: str) -> None:
    child = start_until(name, moment)
    for _ in range(20):
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does: the whole group
        waiting.pause(0.002)
    out, said = child.communicate(timeout=30)
    assert (child.returncode, out) == (130, "")
    assert said.splitlines()[-1] == "error: interrupted"
    assert "Traceback" not in said
    assert not state.folder(name).exists()
    assert_none_in(state.folder(name))


@pytest.mark.parametrize("moment", [MOMENTS[0], MOMENTS[-1]])
def test_a_burst_of_ctrl_c_on_a_run_with_rm_leaves_nothing(
    name: str, moment: str, root: Path
) -> None:
    words = ["run", "--all", "--local", "--rm", "--name", name, "--root", str(root)]
    child = start_until(name, moment, *words)
    for _ in range(20):
        os.killpg(child.pid, signal.SIGINT)
        waiting.pause(0.002)
    _, said = child.communicate(timeout=30)
    assert child.returncode == 130
    assert "error: interrupted" in said
    assert "Traceback" not in said
    assert not state.folder(name).exists()
    assert_none_in(state.folder(name))


def test_a_kubeconfig_is_whole_from_its_first_moment(name: str) -> None:
    child = start_until(name, "kubeconfig")
    seen = {(state.folder(name) / "kubeconfig").read_text()}
    while child.poll() is None:
        seen.add((state.folder(name) / "kubeconfig").read_text())
    assert child.communicate(timeout=30)
    assert len(seen) == 1


def test_what_somebody_is_starting_is_left_alone(name: str) -> None:
    child = start_until(name, "etcd.process")
    assert teardown.sweep() == []
    assert status.status(name).phase == "starting"
    _, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    assert plane.is_up(name)


def launch(folder: Path) -> "subprocess.Popen[bytes]":
    return process.spawn(
        process.Launch("component", Path("/bin/sleep"), ["60"], folder, {}, state.GATE)
    )


def test_a_launcher_that_finds_the_gate_gone_does_not_start_anything(tmp_path: Path) -> None:
    child = launch(tmp_path)
    assert child.wait(timeout=5) == 1
    assert process.read_record(tmp_path / "component.process") is not None


def test_a_launcher_records_itself_before_it_starts_anything(tmp_path: Path) -> None:
    (tmp_path / state.GATE).touch()
    child = launch(tmp_path)
    deadline = time.monotonic() + 5
    while not process.alive(who := process.read_record(tmp_path / "component.process")):
        assert time.monotonic() < deadline
    assert who is not None
    assert who.pid == child.pid
    assert os.getsid(child.pid) == child.pid
    assert process.stop(who, teardown.SIGNALS["etcd"])
    assert child.wait(timeout=5) == -signal.SIGTERM


def test_a_launcher_in_a_removed_folder_ends(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    code = f"rmdir {folder} && mkdir {folder} && touch {folder}/{state.GATE}\n"
    names = ["component.process", state.GATE, "/bin/true", "/bin/sh", "machine", "namespace"]
    done = subprocess.run(
        ["/bin/sh", "-c", code + process.LAUNCHER, "sh", *names, "/bin/true"],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    assert done.returncode != 0
    assert [entry.name for entry in folder.iterdir()] == [state.GATE]


@pytest.mark.parametrize("text", ["", "12", "12 (sh) R\nboot\n/bin/sh\n", "x (sh) " + "1 " * 50])
def test_a_record_that_was_cut_off_describes_nobody(tmp_path: Path, text: str) -> None:
    record = tmp_path / "etcd.process"
    record.write_text(text)
    assert process.read_record(record) is None
    assert not process.alive(None)
