"""Planes that cannot be looked at, folders that are not ours, others that use the same plane."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Run, program
from tests.controlplane.support import assert_none_in, identity, processes_in
from tests.controlplane.test_life import true_identity, write_record

from gpuwl.controlplane import components, plane, process, state, status, teardown
from gpuwl.errors import SetupError
from gpuwl.lab import local_plane
from gpuwl.system import waiting
from gpuwl.system.progress import SILENCE

pytestmark = pytest.mark.cluster

GPUWL = str(Path(sys.executable).with_name("gpuwl"))
WITHOUT_PTRACE = ("setpriv", "--bounding-set=-sys_ptrace")
IN_A_CONTAINER = ("unshare", "--pid", "--fork", "--mount-proc")
WITHOUT_PROC = ("unshare", "--mount", "/bin/sh", "-c", 'mount -t tmpfs none /proc; exec "$@"', "sh")


def shell(prefix: tuple[str, ...], *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run gpuwl in other surroundings; skips where those cannot be made."""
    if shutil.which(prefix[0]) is None or os.geteuid():
        pytest.skip(f"no {prefix[0]} (util-linux) here, or no root")
    return subprocess.run(
        [*prefix, GPUWL, *arguments], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def up(control_plane: plane.Plane) -> Iterator[plane.Plane]:
    """The session's control plane, whose three processes must outlive the test."""
    before = [identity(control_plane.name, part).pid for part in components.NAMES]
    yield control_plane
    assert plane.is_up(control_plane.name)
    assert [identity(control_plane.name, part).pid for part in components.NAMES] == before
    assert len(processes_in(control_plane.folder)) == 3


def test_processes_that_may_not_be_looked_at_are_alive(up: plane.Plane) -> None:
    done = shell(WITHOUT_PTRACE, "local", "up", "--name", up.name)
    assert done.returncode == 0, done.stderr
    assert f"{up.name} is already up" in done.stdout
    assert shell(WITHOUT_PTRACE, "local", "status", "--name", up.name).returncode == 0


def test_one_that_may_not_be_looked_at_is_stopped_as_any_other(name: str) -> None:
    local_plane.ensure_up(name, listener=SILENCE)
    folder = state.folder(name)
    assert shell(WITHOUT_PTRACE, "local", "down", "--name", name).returncode == 0
    assert not processes_in(folder)


@pytest.mark.parametrize(
    "verb", ["local up", "local down", "local down --all", "run --all --local", "reset --local"]
)
def test_from_another_pid_namespace_nothing_is_cleared_away(
    verb: str, up: plane.Plane, root: Path
) -> None:
    words = verb.split()
    more = [] if "--all" in words and words[0] == "local" else ["--name", up.name]
    more += ["--root", str(root)] if words[0] == "run" else []
    done = shell(IN_A_CONTAINER, *words, *more)
    assert done.returncode == 3
    message = (
        f"the local control plane '{up.name}' runs, but its processes cannot be seen from here"
    )
    assert f"error: {message}\n" in done.stderr


def test_status_from_another_pid_namespace(up: plane.Plane) -> None:
    done = shell(IN_A_CONTAINER, "local", "status", "--name", up.name)
    assert done.returncode == 3
    assert done.stdout.startswith(f"{up.name}: elsewhere, ")
    assert "does not run" not in done.stdout


@pytest.mark.parametrize("verb", ["local up", "local status", "local down", "run --all --local"])
def test_without_proc_it_is_said(verb: str, up: plane.Plane, root: Path) -> None:
    more = ["--root", str(root)] if verb.startswith("run") else []
    done = shell(WITHOUT_PROC, *verb.split(), "--name", up.name, *more)
    assert done.returncode == 3
    assert "error: the local control plane needs Linux with /proc, and there is none" in done.stderr


def moved(folder: Path, line: int, text: str) -> None:
    """Change a line of each process's record, as if it came from somewhere else."""
    for component in components.NAMES:
        record = process.record_path(folder, component)
        lines = record.read_text().splitlines()
        lines[line] = text
        record.write_text("\n".join([*lines, ""]))


def test_a_plane_of_another_machine_is_named_and_left_alone(name: str) -> None:
    local_plane.ensure_up(name, listener=SILENCE)
    folder = state.folder(name)
    records = {path: path.read_text() for path in folder.glob("*.process")}
    moved(folder, 1, "another-boot")
    moved(folder, 4, "other-host 42")
    for act in (plane.down, lambda one: local_plane.ensure_up(one, listener=SILENCE)):
        with pytest.raises(SetupError, match="was started on another machine: other-host 42"):
            act(name)
    assert status.status(name).phase is status.Phase.ELSEWHERE
    assert len(processes_in(folder)) == 3
    for path, text in records.items():
        path.write_text(text)


def test_what_another_machine_is_just_starting_is_left_alone(name: str) -> None:
    folder = state.create(name)
    gate = folder / state.GATE
    text = gate.read_text()
    gate.write_text("another-boot\nother-host 42\n")
    assert teardown.sweep() == []
    with pytest.raises(SetupError, match="was started on another machine: other-host 42"):
        local_plane.ensure_up(name, listener=SILENCE)
    assert gate.exists()
    gate.write_text(text)
    assert teardown.sweep() == [name]


def test_a_reboot_of_this_machine_ends_a_plane(name: str) -> None:
    local_plane.ensure_up(name, listener=SILENCE)
    pids = [identity(name, part).pid for part in components.NAMES]
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    moved(state.folder(name), 1, "an-earlier-boot")
    assert local_plane.ensure_up(name, listener=SILENCE).started


def test_a_socket_that_answers_for_a_process_that_is_unknown_is_heard(name: str) -> None:
    local_plane.ensure_up(name, listener=SILENCE)
    record = process.record_path(state.folder(name), "etcd")
    text = record.read_text()
    record.unlink()
    with pytest.raises(SetupError, match="runs, but its processes cannot be seen"):
        plane.down(name)
    record.write_text(text)


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder in which others have things too."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    theirs = tmp_path / "gpuwl"
    for folder in ("notes", "planes/theirs", "planes/theirs-too"):
        (theirs / folder).mkdir(parents=True)
        (theirs / folder / "letter").write_text("dear reader")
    (theirs / "planes/theirs-too/starting").touch()
    (theirs / "linked").symlink_to(theirs / "notes")
    (theirs / "planes/linked").symlink_to(theirs / "notes")
    (theirs / "planes/empty").mkdir()
    return theirs


def test_folders_of_others_are_no_planes_and_never_touched(
    own_home: Path, found_binaries: object
) -> None:
    run = program("gpuwl")
    before = sorted(own_home.rglob("*"))
    for verb in ("status --all", "down --all", "down --name theirs", "down --name notes"):
        assert run("local", *verb.split()).returncode == 0
    assert "theirs" not in run("local", "status", "--all").stdout
    for name in ("theirs", "theirs-too", "linked"):
        done = run("local", "up", "--name", name)
        assert done.returncode == 3
        assert (
            f"error: {own_home}/planes/{name} is in the way: gpuwl did not make it" in done.stderr
        )
    assert [path for path in sorted(own_home.rglob("*")) if path.name[0] != "."] == before
    assert run("local", "up", "--name", "empty").returncode == 0, (
        "a start was killed before the mark"
    )
    assert run("local", "down", "--name", "empty").returncode == 0


def test_a_root_in_the_state_folder_stays(own_home: Path, found_binaries: object) -> None:
    run = program("gpuwl", GPUWL_ROOT=str(own_home / "planes/lab"))
    assert run("run", "--all", "--local", "--rm").returncode == 0
    assert run("local", "status").returncode == 3
    assert run("local", "down", "--all").returncode == 0
    assert (own_home / "planes/lab/out/run.json").exists()


def test_a_root_in_the_folder_of_a_plane_is_refused(own_home: Path) -> None:
    done = program("gpuwl")("run", "--all", "--local", "--root", str(own_home / "planes/default/x"))
    assert done.returncode == 2
    assert "belongs to the local control plane" in done.stderr


def test_a_plane_of_gpuwl_0_1_0_is_found_and_stopped(
    own_home: Path, found_binaries: object
) -> None:
    run = program("gpuwl")
    assert run("local", "up", "--name", "old").returncode == 0
    new, old = own_home / "planes/old", own_home / "old"
    (new / ".gpuwl-plane").unlink()
    for record in new.glob("*.process"):
        record.write_text("\n".join([*record.read_text().splitlines()[:4], ""]))
    new.rename(old)
    assert run("local", "status", "--name", "old").stdout.startswith("old: up")
    assert f"{old}/kubeconfig" in run("local", "kubeconfig", "--name", "old").stdout
    assert run("local", "up", "--name", "old").stdout.startswith(
        "local control plane old is already up"
    )
    assert "old stopped" in run("local", "down", "--all").stdout
    assert not old.exists()
    assert_none_in(old)


def test_a_start_of_gpuwl_0_1_0_that_was_killed_is_cleaned_up(own_home: Path) -> None:
    with subprocess.Popen(["/bin/sleep", "60"]) as child:
        folder = own_home / "half"
        folder.mkdir()
        (folder / "starting").touch()
        write_record(folder, "etcd", true_identity(child))
        assert program("gpuwl")("local", "status", "--all").stdout == "none is up\n"
        assert child.wait(timeout=5) == -signal.SIGTERM
    assert not folder.exists()


def test_down_all_goes_on_behind_a_failure_and_says_what_it_did(
    own_home: Path, found_binaries: object
) -> None:
    run = program("gpuwl")
    for name in ("a", "b"):
        assert run("local", "up", "--name", name).returncode == 0
    kept = {path: path.read_text() for path in (own_home / "planes/a").glob("*.process")}
    moved(own_home / "planes/a", 1, "another-boot")
    moved(own_home / "planes/a", 4, "other-host")
    done = run("local", "down", "--all")
    assert done.returncode == 3
    said = done.stdout.splitlines()
    assert said[0].startswith("a is still there: the local control plane 'a' was started on")
    assert said[1].startswith("b stopped in ")
    assert "error: the local control plane 'a' was started on another machine" in done.stderr
    for path, text in kept.items():
        path.write_text(text)
    assert run("local", "down", "--all").returncode == 0


JOIN = """
import sys
from gpuwl.controlplane import state
with state.used(sys.argv[1]) as mine:
    print(mine, flush=True)
    sys.stdin.read()
"""


def test_rm_leaves_a_plane_that_another_command_uses(
    own_home: Path, found_binaries: object, root: Path, gpuwl: Run
) -> None:
    child = subprocess.Popen(
        [GPUWL, "run", "--all", "--local", "--rm", "--root", str(root)],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert waiting.until(lambda: state.read("default"), seconds=60)
    with subprocess.Popen(
        [sys.executable, "-c", JOIN, "default"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as joined:
        assert joined.stdout
        assert joined.stdout.readline() == "True\n"
        _, said = child.communicate(timeout=60)
        assert child.returncode == 0, said
        assert "default stays up: another command started or uses it" in said
        assert plane.is_up("default")
        joined.communicate()
    assert program("gpuwl")("local", "down").returncode == 0
