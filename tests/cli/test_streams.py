"""What goes where: results, progress, documents; terminals, pipes that close, disks that are full."""

import json
import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Run, program
from tests.lab import expected

from gpuwl import __version__
from gpuwl.controlplane import plane
from gpuwl.k8s.client import Cluster

pytestmark = pytest.mark.cluster

GPUWL = str(Path(sys.executable).with_name("gpuwl"))


@pytest.fixture
def environment(control_plane: plane.Plane, root: Path) -> dict[str, str]:
    return {**os.environ, "KUBECONFIG": str(control_plane.kubeconfig), "GPUWL_ROOT": str(root)}


def test_off_a_terminal_each_step_is_one_plain_line(gpuwl: Run, cluster: Cluster) -> None:
    done = gpuwl("run", "--all")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for number, line in enumerate(lines[:8], start=1):
        assert re.fullmatch(rf"step {number} ok \d+\.\d\ds \S.*", line), line
    assert "\x1b" not in done.stdout + done.stderr
    assert any(len(line) > 120 for line in lines), "the scheduler's message is not wrapped"
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["target"]


def test_names_in_brackets_are_no_markup(tmp_path: Path) -> None:
    """On a terminal, where rich would take [red] for a colour and [/] for the end of one."""
    root = str(tmp_path / "[red]" / "[")
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "500"}
    shown = on_terminal(pty.openpty(), ["steps", "--root", root], environment)
    assert f"Files below {root}\r\n" in shown


def test_quiet_prints_the_steps_alone(gpuwl: Run, cluster: Cluster) -> None:
    done = gpuwl("run", "--all", "-q")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 8
    assert done.stderr == ""


def test_quiet_does_not_hide_an_error(gpuwl: Run, cluster: Cluster) -> None:
    done = gpuwl("-q", "step", "7")
    assert done.returncode == 3
    assert "missing: " in done.stderr


def test_verbose_names_files_and_counts_requests(gpuwl: Run, cluster: Cluster, root: Path) -> None:
    done = gpuwl("run", "--to", "3", "-v")
    assert done.stdout == gpuwl_without_times(gpuwl, done.stdout)
    named = re.findall(r"^  wrote (\S+) sha256:[0-9a-f]{64}$", done.stderr, re.MULTILINE)
    assert named == [name for step in (1, 2, 3) for name in expected.OF_STEP[step]]
    assert re.search(r"^\d+ requests to the API server$", done.stderr, re.MULTILINE)


def gpuwl_without_times(gpuwl: Run, shown: str) -> str:
    """Return what the same command prints without -v, with the times of the other one."""
    times = iter(re.findall(r"\d+\.\d\ds", shown))
    return re.sub(r"\d+\.\d\ds", lambda _: next(times), gpuwl("run", "--to", "3").stdout)


def document(done: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(done.stdout)
    assert loaded["version"] == 1
    assert loaded["exitCode"] == done.returncode
    return loaded


def test_the_document_of_a_run(
    gpuwl: Run, cluster: Cluster, root: Path, control_plane: plane.Plane
) -> None:
    done = gpuwl("run", "--all", "--output", "json")
    told = document(done)
    assert told["command"] == "run"
    assert told["error"] is None
    assert told["target"]["kind"] == "local"
    assert told["target"]["kubernetes"] == f"v{control_plane.version}"
    assert [(s["number"], s["result"]) for s in told["steps"]] == [(n, "done") for n in range(1, 9)]
    kept = json.loads((root / "out/run.json").read_text())["steps"]
    for shown, recorded in zip(told["steps"], kept, strict=True):
        assert shown["files"] == recorded["files"]


@pytest.mark.parametrize("place", ["before", "behind", "variable"])
@pytest.mark.parametrize(
    ("arguments", "code", "command"),
    [
        (["step", "7"], 3, "step"),
        (["run", "--all", "--context", "nowhere"], 3, "run"),
        (["run"], 2, ""),
        (["step", "99"], 2, ""),
        (["step"], 2, ""),
        (["nonsense"], 2, ""),
        (["run", "--nonsense"], 2, ""),
        (["run", "--all", "--timeout", "soon"], 2, ""),
    ],
    ids=range(8),
)
def test_the_document_of_a_failure(
    arguments: list[str], code: int, command: str, place: str, gpuwl: Run, cluster: Cluster
) -> None:
    wish = ["--output", "json"]
    words = {"before": wish + arguments, "behind": arguments + wish, "variable": arguments}[place]
    done = gpuwl(*words, env={"GPUWL_OUTPUT": "json"} if place == "variable" else {})
    assert done.returncode == code
    told = document(done)
    assert told["command"] == command
    assert f"error: {told['error']['message']}\n" in done.stderr
    assert told["error"]["hint"]


def test_the_document_of_a_step_that_failed(gpuwl: Run, cluster: Cluster) -> None:
    cluster.merge_patch("/api/v1/nodes/lab-node-0", {"spec": {"unschedulable": True}})
    told = document(gpuwl("run", "--all", "--output", "json", "--timeout", "1"))
    assert told["exitCode"] == 4
    assert [s["result"] for s in told["steps"]] == ["done"] * 3 + ["failed"]
    assert any("unschedulable" in line for line in told["error"]["details"])


@pytest.mark.parametrize("arguments", [["--help"], ["run", "-h"], ["--version"], ["local", "-h"]])
def test_help_is_help_whatever_the_output(arguments: list[str], gpuwl: Run) -> None:
    done = gpuwl(*arguments, env={"GPUWL_OUTPUT": "json"})
    assert done.returncode == 0
    assert done.stdout.startswith(("Usage: gpuwl", f"gpuwl {__version__}"))
    assert '"exitCode"' not in done.stdout


def test_gpuwl_alone_shows_help_and_is_a_usage_error(gpuwl: Run) -> None:
    done = gpuwl()
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: gpuwl")


@pytest.mark.parametrize(
    "arguments",
    [["explain"], ["steps"], ["run", "--all"], ["--help"], ["check", "--print-script"]],
    ids=" ".join,
)
def test_a_reader_that_goes_away(
    arguments: list[str], environment: dict[str, str], cluster: Cluster
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = run_to(writer, arguments, environment)
    os.close(writer)
    assert done.returncode == 141
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["explain"],
        ["run", "--all"],
        ["--help"],
        ["steps", "--output", "json"],
        ["check", "--print-script"],
    ],
    ids=" ".join,
)
def test_an_output_that_is_full(
    arguments: list[str], environment: dict[str, str], cluster: Cluster
) -> None:
    with Path("/dev/full").open("w") as full:
        done = run_to(full.fileno(), arguments, environment)
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1] == (
        "error: cannot write to standard output: No space left on device"
    )
    assert "Traceback" not in done.stderr


def run_to(
    output: int, arguments: list[str], environment: dict[str, str]
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [GPUWL, *arguments],
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("closed", ["1>&-", "2>&-", "0<&-", "1>&- 2>&-", "0<&- 1>&- 2>&-"])
def test_a_stream_that_the_caller_closed(
    closed: str, environment: dict[str, str], cluster: Cluster, root: Path
) -> None:
    line = f'exec "$0" run --all {closed}'
    done = subprocess.run(
        ["/bin/sh", "-c", line, GPUWL],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    for name, content in expected.FILES.items():
        assert (root / name).read_text() == content


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_verdict_that_nobody_could_read_is_none(
    output: str, environment: dict[str, str], tmp_path: Path
) -> None:
    dump = tmp_path / "nodes.json"
    dump.write_text('{"kind": "Node", "metadata": {"name": "a"}}')
    line = f'exec "$0" check --output {output} "$1" >&-'
    done = subprocess.run(
        ["/bin/sh", "-c", line, GPUWL, dump],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == ("error: standard output is closed: the verdict could not be written\n")


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)


def test_a_terminal_shows_colour_and_columns(
    terminal: tuple[int, int], environment: dict[str, str], cluster: Cluster
) -> None:
    shown = on_terminal(terminal, ["run", "--all"], {**environment, "TERM": "xterm-256color"})
    assert "\x1b[32m" in shown, "done is green"
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown).replace("\r\n", "\n")
    for number in range(1, 9):
        assert re.search(rf"^{number}  \S.*  ok  \d+\.\d\d s$", plain, re.MULTILINE)
    assert expected.MESSAGE_OF_1_37 in " ".join(plain.split())
    wide = [line for line in plain.splitlines() if len(line) > 80]
    assert {line.split(":")[0] for line in wide} <= {"Next", "Files"}, (
        "only commands are never broken"
    )


def test_a_terminal_without_colour(
    terminal: tuple[int, int], environment: dict[str, str], cluster: Cluster
) -> None:
    shown = on_terminal(terminal, ["step", "2"], {**environment, "NO_COLOR": "1", "TERM": "xterm"})
    assert "\x1b[32m" not in shown


def test_a_terminal_shows_a_bar_while_something_is_counted(
    terminal: tuple[int, int], environment: dict[str, str]
) -> None:
    program = (
        "from gpuwl.cli.console import Reporter\n"
        "from gpuwl.system.progress import Progress\n"
        "import time\n"
        "reporter = Reporter()\n"
        "with reporter.moving('loading'):\n"
        "    reporter.progress(Progress('loading', 300, 600, 'nodes')); time.sleep(0.3)\n"
    )
    shown = on_terminal(
        terminal, ["-c", program], {**environment, "TERM": "xterm"}, program=sys.executable
    )
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert re.search(r"300 of 600 nodes, \d s +[━╸╺]{24}", plain)


def on_terminal(
    terminal: tuple[int, int],
    arguments: list[str],
    environment: dict[str, str],
    program: str | Path = GPUWL,
) -> str:
    """Run the program on a terminal of 80 columns; return all that it wrote there."""
    ours, theirs = terminal
    child = subprocess.Popen(
        [program, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    while select.select([ours], [], [], 60)[0]:
        try:
            shown += os.read(ours, 65536)
        except OSError:  # the last one that had it open is gone
            break
    assert child.wait(60) == 0, shown
    return shown.decode()


def test_a_step_that_needs_others_starts_no_control_plane(tmp_path: Path) -> None:
    gpuwl = program("gpuwl", XDG_STATE_HOME=str(tmp_path), HOME=str(tmp_path))
    done = gpuwl("step", "7", "--local", "--root", str(tmp_path / "root"))
    assert done.returncode == 3
    assert done.stderr.startswith("error: step 7 cannot run yet: earlier steps are missing\n")
    assert f"hint: gpuwl run --from 1 --to 3 --root {tmp_path}/root --local\n" in done.stderr
    assert not (tmp_path / "root").exists()
    assert list(tmp_path.iterdir()) == []
