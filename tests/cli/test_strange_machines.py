"""Machines without a home, a working directory, a loopback, a temporary folder, /proc; odd streams."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import mounted, program

from gpuwl.controlplane import plane
from gpuwl.controlplane.binaries.lookup import Binaries
from gpuwl.k8s.client import Cluster
from gpuwl.system import waiting

GPUWL = str(Path(sys.executable).with_name("gpuwl"))
NO_NODES = '{"kind":"List","apiVersion":"v1","items":[]}'

Done = subprocess.CompletedProcess[str]


def unshared(options: str, before: str, *words: str, **variables: str) -> Done:
    """Run gpuwl in namespaces of its own, behind some shell lines; skips where that is not allowed."""
    if shutil.which("unshare") is None or os.geteuid():
        pytest.skip("no unshare here (util-linux), or no root")
    return subprocess.run(
        [
            shutil.which("unshare") or "",
            *options.split(),
            "/bin/sh",
            "-ec",
            f'{before}\nexec "$0" "$@"',
            GPUWL,
            *words,
        ],
        env={**os.environ, **variables},
        input=NO_NODES,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def homeless(*words: str, home: str = "unset HOME") -> Done:
    """Run gpuwl as a user whom /etc/passwd does not know, as OpenShift's Pods do."""
    return unshared("--user --map-user=1234567", f"{home}\nunset XDG_STATE_HOME", *words)


@pytest.mark.parametrize(
    ("verb", "code"),
    [("--help", 0), ("--version", 0), ("steps", 0), ("check -", 1), ("explain 1", 0)],
)
def test_what_needs_no_folder_works_without_a_home(verb: str, code: int) -> None:
    done = homeless(*verb.split())
    assert done.returncode in {code, 0}, done.stderr
    assert "error" not in done.stderr


@pytest.mark.parametrize(
    ("verb", "variable"),
    [
        ("run --all --local", "XDG_STATE_HOME"),
        ("verify", "XDG_STATE_HOME"),
        ("local up", "XDG_STATE_HOME"),
        ("local status", "XDG_STATE_HOME"),
        ("local fetch", "XDG_CACHE_HOME"),
        ("reset --local", "GPUWL_ROOT"),
    ],
)
@pytest.mark.parametrize("home", ["unset HOME", "HOME=''"])
def test_what_needs_a_folder_says_which_variable_to_set(
    verb: str, variable: str, home: str
) -> None:
    done = homeless(*verb.split(), home=home)
    assert done.returncode == 3
    error, hint = done.stderr.splitlines()[-2:]
    assert error.startswith("error: no home folder is known: ")
    assert hint == f"hint: set {variable} or HOME to a folder"


def test_an_empty_home_is_none() -> None:
    shown = program("gpuwl", HOME="")("steps").stdout
    assert shown == program("gpuwl")("steps").stdout


@pytest.mark.parametrize("option", ["--root", "--kubeconfig"])
def test_the_home_of_nobody_is_a_usage_error(option: str) -> None:
    done = program("gpuwl")("run", "--all", option, "~nosuchuser/x")
    assert done.returncode == 2
    assert "~nosuchuser/x: there is no home folder of that user" in done.stderr


def test_a_kubeconfig_of_nobody_in_the_environment_is_not_there() -> None:
    done = program("gpuwl", KUBECONFIG="~nosuchuser/x")("run", "--all")
    assert done.returncode == 3
    assert "error: there is no kubeconfig at ~nosuchuser/x" in done.stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [("steps", 0), ("check -", 0), ("--version", 0), ("steps --root x", 3), ("check x", 2)],
)
def test_a_working_directory_that_was_deleted(words: str, code: int, tmp_path: Path) -> None:
    line = f'mkdir gone; cd gone; rmdir ../gone; exec "$0" {words}'
    done = subprocess.run(
        ["/bin/sh", "-c", line, GPUWL],
        cwd=tmp_path,
        input=NO_NODES,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "before", ["true", "ip link set lo up; ip address del 127.0.0.1/8 dev lo"], ids=["down", "IPv6"]
)
@pytest.mark.parametrize("verb", ["run --all --local --root x", "local up"])
def test_a_machine_without_127_0_0_1_says_so_at_once(
    before: str, verb: str, tmp_path: Path
) -> None:
    empty = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_STATE_HOME": str(tmp_path / "state")}
    done = unshared("--net", f"cd {tmp_path}; {before}", *verb.split(), **empty)
    assert done.returncode == 3
    assert "error: nothing can connect to 127.0.0.1 here: " in done.stderr
    assert "download" not in done.stderr


@pytest.mark.cluster
def test_a_disk_without_programs_is_named(tmp_path: Path, found_binaries: Binaries) -> None:
    with mounted(tmp_path / "noexec", "noexec") as disk:
        kept = (
            disk
            / "gpuwl/binaries"
            / found_binaries.folder.relative_to(found_binaries.folder.parents[1])
        )
        shutil.copytree(found_binaries.folder, kept)
        for variables in ({"XDG_CACHE_HOME": str(disk)}, {"GPUWL_ASSETS": str(kept)}):
            done = program("gpuwl", **variables)("local", "up", "--name", "noexec")
            assert done.returncode == 3
            assert f"error: no program may run from {kept}: its disk is mounted" in done.stderr


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_what_a_stream_cannot_encode_is_escaped(stream: str, tmp_path: Path) -> None:
    root = tmp_path / "한국é\U0001f600"
    (tmp_path / "한국é\U0001f600").write_text("in the way")
    run = program("gpuwl", PYTHONIOENCODING="ascii", GPUWL_ROOT=str(root))
    if stream == "stderr":
        done = run("run", "--all", "--local")
        assert (done.returncode, "\\ud55c\\uad6d\\xe9" in done.stderr) == (3, True)
        return
    assert "\\ud55c\\uad6d\\xe9" in run("steps").stdout
    told = run("steps", "--output", "json").stdout
    assert json.loads(told)["root"] == str(root)


def test_standard_error_that_nobody_reads_stops_nothing(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [GPUWL, "check", "--output", "json", "-"],
        input=NO_NODES.encode(),
        stdout=subprocess.PIPE,
        stderr=writer,
        check=False,
    )
    os.close(writer)
    assert done.returncode == 0
    assert done.stdout


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("what", "error"),
    [
        ("subprocess._fork_exec", "BlockingIOError(11, 'Resource temporarily unavailable')"),
        ("threading.Thread.start", 'RuntimeError("can\'t start new thread")'),
    ],
)
def test_a_user_who_may_start_no_more_processes_is_told(
    what: str, error: str, found_binaries: Binaries
) -> None:
    """`ulimit -u` does not bind root, so what it makes fail is made to fail."""
    program = f"""
import subprocess, threading
def fail(*_, **__): raise {error}
{what} = fail
from gpuwl.__main__ import main
main(["local", "up", "--name", "limited"])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done.stderr
    assert "this user may start no more processes (ulimit -u)" in done.stderr


def at_rest(pid: int, _seen: dict[int, str] = {}) -> bool | None:  # noqa: B006 - what it saw last
    """Say whether a process has used no processor time since the last look."""
    ticks = " ".join(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13])
    before, _seen[pid] = _seen.get(pid), ticks
    return True if before == ticks and ticks != "0 0" else None


def test_ctrl_c_while_nobody_reads_the_document_ends_quietly(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(4096))
    os.set_blocking(writer, True)
    with subprocess.Popen(
        [GPUWL, "steps", "--output", "json"], stdout=writer, stderr=subprocess.PIPE, text=True
    ) as child:
        assert waiting.until(lambda: at_rest(child.pid), seconds=20, every=0.5)
        child.send_signal(signal.SIGINT)
        child.send_signal(signal.SIGINT)
        _, said = child.communicate(timeout=10)
    assert (child.returncode, said) == (130, "")
    os.close(reader)
    os.close(writer)


BARE = """
import os, signal
for name in ("memfd_create", "pidfd_open"):
    delattr(os, name)
del signal.pidfd_send_signal
from gpuwl.__main__ import main
main()
"""


@pytest.mark.cluster
def test_without_what_linux_alone_has_a_real_cluster_is_worked_on(
    control_plane: plane.Plane, cluster: Cluster, tmp_path: Path
) -> None:
    """As on macOS: no memfd, no pidfd, no /proc. Another state folder makes it a foreign cluster."""
    variables = {
        "KUBECONFIG": str(control_plane.kubeconfig),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "GPUWL_ROOT": str(tmp_path / "root"),
        "BARE": BARE,
    }
    bare = f'mount -t tmpfs none /proc; exec {sys.executable} -c "$BARE"'
    for verb in ("run --all", "verify"):  # a reset waits for a controller, as on any cluster
        done = unshared("--mount", f"{bare} {verb}", **variables)
        assert done.returncode == 0, done.stderr
    done = unshared("--mount", f"{bare} local up", **variables)
    assert (done.returncode, "needs Linux with /proc" in done.stderr) == (3, True)


@pytest.mark.cluster
def test_a_machine_without_a_writable_temporary_folder(
    control_plane: plane.Plane, cluster: Cluster, tmp_path: Path
) -> None:
    kept = tmp_path.parent
    lines = f"""
        for folder in /tmp /var/tmp /usr/tmp; do [ ! -d $folder ] || mount --bind $folder $folder; done
        mount --bind {kept} {kept}
        for folder in /tmp /var/tmp /usr/tmp; do
            [ ! -d $folder ] || mount -o remount,bind,ro $folder
        done
        cd /proc"""
    variables = {
        "KUBECONFIG": str(control_plane.kubeconfig),
        "GPUWL_ROOT": str(tmp_path / "root"),
        "TMPDIR": "",
    }
    done = unshared("--mount", lines, "run", "--all", **variables)
    assert done.returncode == 0, done.stderr
    done = unshared("--mount", lines, "verify", **variables)
    assert done.returncode == 0 or (
        "error: no temporary folder can be written\nhint: set TMPDIR" in done.stderr
    )
