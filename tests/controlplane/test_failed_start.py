"""Starts that cannot succeed, and surroundings in which they have to."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import program
from tests.controlplane.support import UP, processes_in
from tests.heard import Heard

from gpuwl.controlplane import boot, plane, ports, start, state, status, teardown
from gpuwl.controlplane.binaries.lookup import Binaries
from gpuwl.errors import SetupError
from gpuwl.lab import local_plane
from gpuwl.system.progress import SILENCE

pytestmark = pytest.mark.cluster


def broken(tmp_path: Path, found: Binaries, component: str, script: str) -> Binaries:
    """Return the binaries with one of them replaced by a shell script."""
    folder = tmp_path / "binaries"
    folder.mkdir()
    for name in ("etcd", "kube-apiserver", "kube-scheduler"):
        (folder / name).symlink_to(found.folder / name)
    (folder / component).unlink()
    (folder / component).write_text(f"#!/bin/sh\n{script}\n")
    (folder / component).chmod(0o755)
    return Binaries(found.version, "assets", folder)


def attempt(name: str, binaries: Binaries) -> SetupError:
    """Start with these binaries, and return why it failed."""
    with state.locked(name, SILENCE), pytest.raises(SetupError) as failed:
        start.start(start.Request(name, binaries, local_plane.lab_nodes(), None), SILENCE)
    return failed.value


@pytest.mark.parametrize("component", ["etcd", "kube-apiserver", "kube-scheduler"])
def test_a_component_that_dies_is_reported_with_its_last_lines(
    name: str, component: str, tmp_path: Path, found_binaries: Binaries
) -> None:
    script = "for i in 1 2 3 4 5 6 7; do echo line $i; done; echo >&2 cannot go on; exit 7"
    error = attempt(name, broken(tmp_path, found_binaries, component, script))
    assert error.message == (
        f"{component} ended while the local control plane started (exit code 7)"
    )
    assert error.details == ("line 4", "line 5", "line 6", "line 7", "cannot go on")
    log = state.folder(name) / f"{component}.log"
    assert error.hint == f"its whole log: {log}"
    assert "line 1\n" in log.read_text()
    assert not processes_in(state.folder(name))
    _assert_only_logs_stay(name, error)


def test_a_component_that_panics_is_quoted_with_why_and_not_with_its_stack(
    name: str, tmp_path: Path, found_binaries: Binaries
) -> None:
    stack = "goroutine 1 [running]:; main.a();\t/a.go:1 +0x1; main.b();\t/b.go:2 +0x2; main.c()"
    script = "echo before; echo panic: no space left; printf '%s\\n' '" + stack.replace(";", "' '")
    error = attempt(name, broken(tmp_path, found_binaries, "etcd", f"{script}'; exit 2"))
    assert error.details[0] == "panic: no space left"
    assert len(error.details) == boot.LAST_LINES


def _assert_only_logs_stay(name: str, error: SetupError) -> None:
    left = {entry.suffix for entry in state.folder(name).iterdir()}
    assert left <= {".log", ""}
    found = status.status(name)
    assert (found.phase, found.message) == ("failed", error.message)
    reasons = {part.reason for part in found.components}
    assert reasons <= {"ended with the start that failed", "not started"}
    shown = program("gpuwl")("local", "status", "--name", name).stdout
    assert "failed" in shown
    assert "None" not in shown
    assert teardown.sweep() == []
    assert state.folder(name).exists()


def test_a_program_that_cannot_be_run(name: str, tmp_path: Path, found_binaries: Binaries) -> None:
    binaries = broken(tmp_path, found_binaries, "etcd", "")
    (binaries.folder / "etcd").write_bytes(b"\x7fELF of another machine")
    error = attempt(name, binaries)
    assert "etcd ended while the local control plane started" in error.message
    assert str(binaries.folder / "etcd") in error.details[-1]


@pytest.mark.parametrize("component", ["etcd", "kube-apiserver"])
def test_a_component_that_hangs_ends_the_start(
    name: str,
    component: str,
    tmp_path: Path,
    found_binaries: Binaries,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(boot, "STALL_SECONDS", 2.0)
    monkeypatch.setattr(boot, "LONGEST_SECONDS", 4.0)
    error = attempt(name, broken(tmp_path, found_binaries, component, "exec sleep 60"))
    assert error.message.startswith("the local control plane does not come up: ")
    assert error.hint == f"its logs: {state.folder(name)}"
    assert not processes_in(state.folder(name))


def test_a_binary_behind_a_wrapper_script_is_known_and_stopped(
    name: str, tmp_path: Path, found_binaries: Binaries
) -> None:
    wrapper = f'exec {found_binaries.folder}/etcd "$@"'
    binaries = broken(tmp_path, found_binaries, "etcd", wrapper)
    with state.locked(name, SILENCE):
        start.start(start.Request(name, binaries, local_plane.lab_nodes(), None), SILENCE)
    assert plane.is_up(name)


def test_a_port_that_is_taken_is_passed_over(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    free = ports.free
    with socket.create_server(("127.0.0.1", 0)) as taken:
        choices = iter([taken.getsockname()[1]])
        monkeypatch.setattr(ports, "free", lambda: next(choices, None) or free())
        said = Heard()
        up = local_plane.ensure_up(name, listener=said)
        assert up.plane.port != taken.getsockname()[1]
    assert said[0] == "somebody took the port: trying another"
    assert plane.is_up(name)


def test_a_state_folder_with_a_long_path(long_state: Path, name: str) -> None:
    up = local_plane.ensure_up(name, listener=SILENCE).plane
    assert up.folder.is_relative_to(long_state)
    assert len(str(up.folder / "c.sock")) > 108
    assert plane.is_up(name)


def test_a_network_that_has_only_loopback(name: str, own_state: Path) -> None:
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("no unshare here (util-linux)")
    done = subprocess.run(
        [unshare, "--net", sys.executable, "-c", RAISE_LOOPBACK + UP + ASK, name],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "Operation not permitted" in done.stderr and os.geteuid():
        pytest.skip("only root may make a network namespace")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "0 routes, 3 nodes"


RAISE_LOOPBACK = """
import fcntl, socket, struct
with socket.socket() as any_socket:
    request = struct.pack("16sH14s", b"lo", 1, b"")  # ifreq with IFF_UP, netdevice(7)
    fcntl.ioctl(any_socket, 0x8914, request)         # SIOCSIFFLAGS
"""
ASK = """
from pathlib import Path
from gpuwl.controlplane import plane
from gpuwl.k8s.client import Cluster
client = Cluster.from_kubeconfig(plane.kubeconfig_path(sys.argv[1]))
routes = Path("/proc/self/net/route").read_text().splitlines()[1:]
print(len(routes), "routes,", len(client.get("/api/v1/nodes")["items"]), "nodes")
"""
