"""How a command ends: interrupted, terminated, by a bug, by a usage error; and what it imports."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Run
from tests.lab import expected

from gpuwl.cli import lab
from gpuwl.controlplane import plane
from gpuwl.k8s import objects
from gpuwl.k8s.client import Cluster
from gpuwl.lab import paths
from gpuwl.steps import STEPS
from gpuwl.system import waiting

GPUWL = str(Path(sys.executable).with_name("gpuwl"))


@pytest.fixture
def environment(control_plane: plane.Plane, root: Path) -> dict[str, str]:
    return {**os.environ, "KUBECONFIG": str(control_plane.kubeconfig), "GPUWL_ROOT": str(root)}


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("number", "code", "word"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "terminated"),
        (signal.SIGHUP, 129, "terminated"),
    ],
    ids=["ctrl-c", "term", "hangup"],
)
def test_a_signal_in_the_middle_and_the_run_after_it(
    number: signal.Signals,
    code: int,
    word: str,
    environment: dict[str, str],
    cluster: Cluster,
    root: Path,
    gpuwl: Run,
) -> None:
    cluster.merge_patch(paths.node("lab-node-0"), {"spec": {"unschedulable": True}})
    child = subprocess.Popen(
        [GPUWL, "run", "--all"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert waiting.until(lambda: refused(cluster), seconds=60)
    child.send_signal(number)
    _, said = child.communicate(timeout=60)
    assert child.returncode == code
    assert said.splitlines()[-1] == f"error: {word}"
    assert "Traceback" not in said
    assert not (root / "out/04-container.txt").exists()
    assert unfinished(root) == []
    steps = json.loads((root / "out/run.json").read_text())["steps"]
    assert [step["error"] for step in steps if step["result"] == "failed"] == [word]
    cluster.merge_patch(paths.node("lab-node-0"), {"spec": {"unschedulable": None}})
    again = gpuwl("run", "--all")
    assert again.returncode == 0, again.stderr
    for name, content in expected.FILES.items():
        assert (root / name).read_text() == content


def refused(client: Cluster) -> bool | None:
    pod = client.find(paths.pod("job-container"))
    return True if pod and objects.scheduled(pod).get("message") else None


def unfinished(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if path.is_file() and "unfinished" in path.name]


@pytest.mark.cluster
def test_a_control_plane_that_was_up_outlives_an_interrupt(
    environment: dict[str, str], control_plane: plane.Plane, cluster: Cluster
) -> None:
    before = pids(control_plane)
    cluster.merge_patch(paths.node("lab-node-0"), {"spec": {"unschedulable": True}})
    child = subprocess.Popen(
        [GPUWL, "run", "--all", "--local", "--name", "tests"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert waiting.until(lambda: refused(cluster), seconds=60)
    os.killpg(child.pid, signal.SIGINT)  # as a terminal does: the whole group
    assert child.wait(60) == 130
    assert plane.is_up("tests")
    assert pids(control_plane) == before


def pids(up: plane.Plane) -> dict[str, str]:
    return {path.name: path.read_text() for path in up.folder.glob("*.process")}


@pytest.mark.cluster
def test_an_ignored_hangup_stays_ignored(environment: dict[str, str], cluster: Cluster) -> None:
    cluster.merge_patch(paths.node("lab-node-0"), {"spec": {"unschedulable": True}})
    line = 'trap "" HUP; exec "$0" run --all --timeout 3'
    child = subprocess.Popen(
        ["/bin/sh", "-c", line, GPUWL],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert waiting.until(lambda: refused(cluster), seconds=60)
    child.send_signal(signal.SIGHUP)
    assert child.wait(60) == 4, "it waited to the end"


BROKEN = """
import sys
from gpuwl import __main__
from gpuwl.lab import report
def broken(table):
    raise KeyError("a\\nname")
report.rows = broken
__main__.main(["step", "1", *sys.argv[1:]])
"""


@pytest.mark.cluster
def test_a_bug_gives_one_line_and_a_log(environment: dict[str, str], cluster: Cluster) -> None:
    done = python(BROKEN, environment)
    assert done.returncode == 70
    error, hint = done.stderr.splitlines()[-2:]
    assert error == r"error: a bug in gpuwl: KeyError: 'a\nname'"
    log = Path(hint.removeprefix("hint: report it with "))
    text = log.read_text()
    assert "Traceback" in text
    assert "Python 3" in text
    assert log.stat().st_mode & 0o077 == 0 or log.parent.stat().st_mode & 0o077 == 0
    assert "Traceback" not in done.stderr + done.stdout


@pytest.mark.cluster
def test_a_bug_where_no_log_can_be_written(
    environment: dict[str, str], cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "gpuwl").mkdir()
    (tmp_path / "gpuwl/.bugs").write_text("in the way of the logs")
    done = python(BROKEN, {**environment, "XDG_STATE_HOME": str(tmp_path)})
    assert done.returncode == 70
    error, detail = done.stderr.splitlines()[-2:]
    assert error.startswith("error: a bug in gpuwl: KeyError: ")
    assert detail.startswith("  no log: ")
    assert "Traceback" not in done.stderr


def python(program: str, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["-h"],
        ["--version"],
        ["run", "--help"],
        ["local", "--help"],
        ["run"],
        ["step"],
        ["local", "up", "-h"],
    ],
    ids=" ".join,
)
def test_help_and_usage_errors_load_nothing_heavy(arguments: list[str]) -> None:
    program = f"""
import sys
from gpuwl import __main__
try:
    __main__.main({arguments!r})
finally:
    heavy = {{"kubernetes", "rich", "yaml", "cryptography", "urllib3", "ssl", "filelock"}}
    sys.stderr.write("LOADED=" + ",".join(sorted(heavy & sys.modules.keys())) + "\\n")
"""
    done = python(program, dict(os.environ))
    assert done.stderr.splitlines()[-1] == "LOADED="


def test_the_options_know_which_step_is_the_last() -> None:
    assert STEPS[-1].number == lab.LAST


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run"], "gpuwl run --all"),
        (["run", "--all", "--from", "2"], "exclude each other"),
        (["run", "--from", "5", "--to", "2"], "--from 5 is behind --to 2"),
        (["run", "--from", "0"], "0 is not in the range 1<=x<=8"),
        (["run", "--to", "9"], "9 is not in the range 1<=x<=8"),
        (["step", "0"], "0 is not in the range 1<=x<=8"),
        (["step", "9"], "9 is not in the range 1<=x<=8"),
        (["step", "seven"], "'seven' is not a valid integer"),
        (["step"], "Missing argument 'N'"),
        (["explain", "9"], "9 is not in the range"),
        (["check"], "name a file"),
        (["nonsense"], "No such command 'nonsense'"),
        (["run", "--al"], "No such option"),
        (["run", "--all", "--timeout", "0"], "0"),
        (["run", "--all", "--timeout", "nan"], "nan"),
        (["run", "--all", "--timeout", "inf"], "inf"),
        (["run", "--all", "--output", "xml"], "'xml' is not one of"),
        (["run", "--all", "--root", ""], "it is empty"),
        (["run", "--all", "--context", ""], "it is empty"),
        (["run", "--all", "--kubeconfig", ""], "it is empty"),
        (["local", "down", "--name", ""], "it is empty"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_usage_error(arguments: list[str], words: str, root: Path) -> None:
    environment = {**os.environ, "GPUWL_ROOT": str(root)}
    done = subprocess.run(
        [GPUWL, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr
    assert re.search(r"^hint: gpuwl.* -h$", done.stderr, re.MULTILINE)
    assert not root.exists()
