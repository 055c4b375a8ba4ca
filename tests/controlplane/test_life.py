"""Control planes that are stopped, broken, started twice; processes that are not ours."""

import contextlib
import http.client
import os
import shutil
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import program
from tests.controlplane.support import UP, command, identity, kill, processes_in
from tests.heard import Heard

from gpuwl.controlplane import components, plane, process, start, state, status, teardown
from gpuwl.controlplane.binaries.lookup import Binaries
from gpuwl.errors import SetupError
from gpuwl.lab import local_plane
from gpuwl.system import locking, waiting
from gpuwl.system.progress import SILENCE

pytestmark = pytest.mark.cluster

MOST_SECONDS_OF_A_STOP = 2.0


@contextlib.contextmanager
def open_watch(up: plane.Plane) -> Iterator[None]:
    """Keep a watch open that nobody closes, from its first event on."""
    context = ssl.create_default_context(cafile=up.folder / components.CA_CERTIFICATE)
    connection = http.client.HTTPSConnection("127.0.0.1", up.port, context=context, timeout=10)
    token = (up.folder / components.LOADER_IDENTITY).read_text().partition(",")[0]
    connection.request("GET", "/api/v1/nodes?watch=1", headers={"Authorization": f"Bearer {token}"})
    with contextlib.closing(connection), connection.getresponse() as response:
        assert response.status == 200
        assert b"ADDED" in response.read1()
        yield


def test_stopping_with_a_watch_open(name: str) -> None:
    up = local_plane.ensure_up(name, listener=SILENCE).plane
    with open_watch(up):
        done = plane.down(name)
    assert done.stopped
    assert done.seconds <= MOST_SECONDS_OF_A_STOP
    assert not up.folder.exists()
    assert not list(up.folder.parent.glob(f".{name}.lock"))
    assert not processes_in(up.folder)
    assert not plane.down(name).stopped


def test_stopping_with_a_watch_open_and_etcd_killed_beforehand(name: str) -> None:
    up = local_plane.ensure_up(name, listener=SILENCE).plane
    with open_watch(up):
        kill(name, "etcd")
        done = plane.down(name)
    assert done.stopped
    assert done.seconds <= MOST_SECONDS_OF_A_STOP
    assert not processes_in(up.folder)


def test_a_component_that_dies_is_named_and_the_next_start_replaces_all(name: str) -> None:
    first = local_plane.ensure_up(name, listener=SILENCE).plane
    before = {part: identity(name, part) for part in components.NAMES}
    kill(name, "kube-scheduler")
    broken = status.status(name)
    assert broken.phase == "broken"
    dead = [part for part in broken.components if not part.alive]
    assert [part.name for part in dead] == ["kube-scheduler"]
    assert dead[0].reason == f"process {before['kube-scheduler'].pid} is gone"
    assert dead[0].pid is None
    assert not plane.is_up(name)
    said = Heard()
    second = local_plane.ensure_up(name, listener=said)
    assert second.started
    assert said.warned == [f"kube-scheduler of {name} no longer runs: starting again, empty"]
    assert not any(process.alive(who) for who in before.values())
    assert second.plane.port != first.port
    assert plane.is_up(name)


def test_a_component_that_was_suspended_is_named_and_keeps_what_it_has(name: str) -> None:
    component = "kube-apiserver"
    up = local_plane.ensure_up(name, listener=SILENCE).plane
    who = identity(name, component)
    os.kill(who.pid, signal.SIGSTOP)
    assert waiting.until(lambda: process.suspended(who) or None, seconds=5)
    found = status.status(name)
    (idle,) = [part for part in found.components if not part.alive]
    assert (found.phase, idle.name, idle.pid) == ("broken", component, who.pid)
    assert idle.reason == f"process {who.pid} is suspended; kill -CONT {who.pid} lets it go on"
    run = program("gpuwl", GPUWL_ROOT=str(up.folder.parent.parent / "root"))
    for verb in (["run", "--all", "--local"], ["reset", "--local"], ["local", "up"]):
        done = run(*verb, "--name", name)
        assert done.returncode == 3, done.stderr
        assert f"error: {component} of the local control plane '{name}' is susp" in done.stderr
        assert done.stderr.splitlines()[-1] == f"hint: let it go on: kill -CONT {who.pid}"
    shown = run("local", "kubeconfig", "--name", name)
    assert shown.stdout == f"{up.kubeconfig}\n"
    assert f"kill -CONT {who.pid}" in shown.stderr
    os.kill(who.pid, signal.SIGCONT)
    assert not local_plane.ensure_up(name, listener=SILENCE).started
    os.kill(who.pid, signal.SIGSTOP)


def test_a_record_that_cannot_be_read_is_no_start_under_way(name: str) -> None:
    local_plane.ensure_up(name, listener=SILENCE)
    (state.folder(name) / state.RECORD).write_text("")
    found = status.status(name)
    assert found.phase is status.Phase.BROKEN
    assert found.message is not None
    assert "plane.json cannot be read" in found.message
    assert local_plane.ensure_up(name, listener=SILENCE).started


def test_the_versions_of_what_runs_are_known_when_its_files_are_gone(
    name: str, tmp_path: Path, found_binaries: Binaries
) -> None:
    copied = tmp_path / "copied"
    shutil.copytree(found_binaries.folder, copied)
    with state.locked(name, SILENCE):
        binaries = Binaries(found_binaries.version, "cache", copied)
        start.start(start.Request(name, binaries, local_plane.lab_nodes(), None), SILENCE)
    before = [part.version for part in status.status(name).components]
    shutil.rmtree(copied)
    assert [part.version for part in status.status(name).components] == before
    assert all(before)


def test_two_at_once_share_one(name: str) -> None:
    code = (
        "import sys; from gpuwl.lab import local_plane; from gpuwl.system.progress import SILENCE; "
        "up = local_plane.ensure_up(sys.argv[1], listener=SILENCE); print(up.started, up.plane.port)"
    )
    callers = [command(code, name) for _ in range(3)]
    answers = [caller.communicate(timeout=60) for caller in callers]
    assert [caller.returncode for caller in callers] == [0, 0, 0], answers
    last = [out.splitlines()[-1].split() for out, _ in answers]
    assert sorted(started for started, _ in last) == ["False", "False", "True"]
    assert len({port for _, port in last}) == 1
    assert len(processes_in(state.folder(name))) == 3


@pytest.fixture
def bystander() -> Iterator["subprocess.Popen[bytes]"]:
    """A process of somebody else's, which has to live on."""
    with subprocess.Popen(["/bin/sleep", "60"]) as child:
        yield child
        assert child.poll() is None, "a process was killed that is not ours"
        child.kill()


def true_identity(child: "subprocess.Popen[bytes]") -> process.Identity:
    stat = Path(f"/proc/{child.pid}/stat").read_text()
    start = int(stat.rpartition(")")[2].split()[19])
    executable = os.path.realpath(f"/proc/{child.pid}/exe")
    return process.Identity(child.pid, start, process.boot_id(), (executable,))


def write_record(folder: Path, component: str, who: process.Identity) -> None:
    fields = ["0"] * 52
    fields[0], fields[1], fields[2], fields[21] = str(who.pid), "(sh)", "R", str(who.start)
    lines = [" ".join(fields), who.boot_id, *who.executables, ""]
    process.record_path(folder, component).write_text("\n".join(lines))


@pytest.mark.parametrize("wrong", ["start", "boot_id", "executables"])
def test_a_pid_that_was_used_again_is_never_killed(
    wrong: str, bystander: "subprocess.Popen[bytes]", name: str
) -> None:
    who = true_identity(bystander)
    assert process.alive(who)
    others = {
        "start": replace(who, start=who.start - 1),
        "boot_id": replace(who, boot_id="another"),
        "executables": replace(who, executables=("/bin/another",)),
    }
    other = others[wrong]
    assert not process.alive(other)
    folder = state.create(name)
    for component in components.NAMES:
        write_record(folder, component, other)
    assert plane.down(name).stopped


def test_the_process_that_a_record_describes_is_stopped(name: str) -> None:
    with subprocess.Popen(["/bin/sleep", "60"]) as child:
        folder = state.create(name)
        write_record(folder, "etcd", true_identity(child))
        assert teardown.sweep() == [name]
        assert child.wait(timeout=5) == -15


def test_a_zombie_is_dead() -> None:
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as child:
        who = true_identity(child)
        assert process.alive(who)
        assert child.stdin
        child.stdin.close()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # ended, and not collected
        assert Path(f"/proc/{child.pid}/stat").read_text().split()[2] == "Z"
        assert not process.alive(who)


def test_a_running_binary_that_was_removed_from_the_disk_is_still_ours(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(Path("/bin/sleep").read_bytes())
    program.chmod(0o755)
    with subprocess.Popen([program, "60"]) as child:
        who = true_identity(child)
        program.unlink()
        assert process.alive(who)
        assert process.stop(who, teardown.SIGNALS["etcd"])


WAIT = """
from gpuwl.controlplane import state
class Listener:
    def progress(self, now): print(now, flush=True)
with state.locked("held", Listener()): print("has it")
"""


def test_a_lock_that_is_held_is_waited_for_and_its_holder_named(own_state: Path) -> None:
    with state.tried("held") as mine:
        assert mine
        with state.tried("held") as second:
            assert not second
        child = command(WAIT)
        assert child.stdout is not None
        waited = child.stdout.readline()
    out, err = child.communicate(timeout=10)
    assert waited.startswith(f"waiting for another gpuwl: process {os.getpid()} (")
    assert (out.splitlines()[-1], err) == ("has it", "")
    assert not list(state.folder("held").parent.glob(".held.lock"))


def test_a_holder_that_is_suspended_is_named_with_what_wakes_it(own_state: Path) -> None:
    hold = "import sys\nfrom gpuwl.controlplane import state\nwith state.tried('held'): sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE) as holder:
        lock = state.folder("held").with_name(".held.lock")
        assert waiting.until(lambda: locking.holder(lock), seconds=10)
        holder.send_signal(signal.SIGSTOP)
        stat = Path(f"/proc/{holder.pid}/stat")
        assert waiting.until(lambda: " T " in stat.read_text() or None, seconds=10)
        with (
            pytest.raises(SetupError, match=rf"kill -CONT {holder.pid}$"),
            locking.held(lock, "it"),
        ):
            pass
        holder.send_signal(signal.SIGCONT)
        holder.communicate()


def test_a_process_that_does_not_end_is_reported(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen(["/bin/sleep", "60"]) as child:
        folder = state.create(name)
        write_record(folder, "etcd", true_identity(child))
        monkeypatch.setitem(teardown.SIGNALS, "etcd", ())
        with pytest.raises(SetupError, match=rf"etcd \(pid {child.pid}\) does not end"):
            plane.down(name)
        monkeypatch.undo()
        child.kill()


def test_down_waits_for_a_start_and_then_stops_it(name: str) -> None:
    starter = command(UP, name)
    deadline = time.monotonic() + 30
    while not (state.folder(name) / state.GATE).exists() and time.monotonic() < deadline:
        os.sched_yield()
    said = Heard()
    assert plane.down(name, said).stopped
    assert said[0].startswith(f"waiting for another gpuwl: process {starter.pid} (")
    starter.communicate(timeout=10)
    assert not processes_in(state.folder(name))
