"""The installed checker of an attempt: right answers in any language, wrong ones named."""

import os
import signal
import stat
import textwrap
import time
from pathlib import Path

import pytest
from tests.lab_fixtures import unanswered

from gpuwl import checker
from gpuwl.k8s import dump
from gpuwl.lab import check_script
from gpuwl.lab.artifacts import Artifacts
from gpuwl.lab.names import LABEL_KEY, lab_nodes
from gpuwl.system import waiting
from gpuwl.target.connection import TargetRecord
from gpuwl.verification import script
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.findings import Difference

OWN = "out/nodes.json"

BY_HAND = r"""#!/usr/bin/env python3
# a person's own checker: short, without reasons worth reading
import json, re, sys
try:
    dump = json.load(open(sys.argv[1]))
    assert dump["kind"] in ("List", "NodeList")
except Exception as error:
    sys.exit(print("not nodes:", error, file=sys.stderr) or 2)
judged, bad = 0, []
for node in dump["items"]:
    use = node["metadata"]["labels"].get("nvidia.com/gpu.workload.config")
    if use is None:
        continue
    judged += 1
    names = [name[11:] for name, amount in node["status"]["allocatable"].items()
             if name.startswith("nvidia.com/") and amount != "0"]
    kinds = ["container" if name == "gpu" else
             "vm-vgpu" if re.search("-[0-9]+[A-Z]$", name) else "vm-passthrough" for name in names]
    if kinds != [use]:
        bad.append(f"MISMATCH={node['metadata']['name']} {use}: {kinds}")
print("\n".join(bad) or f"OK={judged}")
sys.exit(1 if bad else 0)
"""


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    """An attempt whose dump agrees; no cluster is reachable, and none is needed here."""
    artifacts = Artifacts(tmp_path)
    nodes = [
        {
            "kind": "Node",
            "metadata": {"name": node.name, "labels": {LABEL_KEY: node.value}},
            "status": {"allocatable": {node.resource: node.amount}},
        }
        for node in lab_nodes()
    ]
    artifacts.write(OWN, dump.go_json({"apiVersion": "v1", "items": nodes, "kind": "List"}))
    artifacts.write("out/consistency.txt", "OK=3\n")
    cluster = unanswered("https://127.0.0.1:1")
    target = TargetRecord("cluster", "nowhere", cluster.server, "v0")
    return Attempt(cluster, artifacts, lab_nodes(), target, timeout=5)


def told(attempt: Attempt, text: str, *, mode: int = 0o755) -> dict[str, str]:
    attempt.artifacts.write(script.SCRIPT, textwrap.dedent(text), mode=mode)
    found = [one for one in script.answers(attempt) if isinstance(one, Difference)]
    return {one.what: one.found for one in found}


def test_the_lab_s_own_checker_answers_right(attempt: Attempt) -> None:
    assert told(attempt, check_script.render()) == {}


def test_a_checker_by_hand_in_another_language_answers_right(attempt: Attempt) -> None:
    assert told(attempt, BY_HAND) == {}


def test_a_script_without_a_first_line_runs_as_in_a_shell(attempt: Attempt) -> None:
    assert told(attempt, f"exec python3 - \"$@\" <<'WHOLE'\n{BY_HAND}WHOLE\n") == {}


def test_a_script_that_always_agrees_fails_on_all_bad_dumps(attempt: Attempt) -> None:
    found = told(attempt, "#!/bin/sh\necho OK=3\n")
    assert found == {
        "bin/check-config.sh on nodes that disagree": "exit 0, OK=3",
        "bin/check-config.sh on a dump that is cut off in its last node": "exit 0, OK=3",
        "bin/check-config.sh on a Status in place of nodes": "exit 0, OK=3",
    }


def test_a_script_that_counts_zero_as_present_is_found_out(attempt: Attempt) -> None:
    found = told(attempt, BY_HAND.replace('and amount != "0"', ""))
    assert found == {
        "bin/check-config.sh on nodes that disagree": (
            "exit 1, MISMATCH=moved MISMATCH=several MISMATCH=misspelt"
        )
    }


def test_right_words_with_a_wrong_exit_code_differ(attempt: Attempt) -> None:
    found = told(attempt, BY_HAND.replace("1 if bad", "0 if bad"))
    (said,) = found.values()
    assert said.startswith("exit 0, MISMATCH=moved")


def test_a_verdict_on_half_a_dump_differs(attempt: Attempt) -> None:
    text = "#!/bin/sh\ngrep -q 'cut\\|Status' \"$1\" && exit 2\necho MISMATCH=agrees; exit 2\n"
    assert told(attempt, text)[
        "bin/check-config.sh on a dump that is cut off in its last node"
    ] == ("exit 2, MISMATCH=agrees")


def test_a_script_that_does_not_end_is_stopped_with_what_it_started(
    attempt: Attempt, tmp_path: Path
) -> None:
    quick = Attempt(attempt.cluster, attempt.artifacts, attempt.nodes, attempt.target, timeout=0.3)
    child = tmp_path / "child"
    began = time.monotonic()
    found = told(quick, f"#!/bin/sh\nsleep 300 &\necho $! > {child}\nwait\n")
    assert time.monotonic() - began < 10
    assert "no answer within 0.3 s" in found["bin/check-config.sh"]
    assert waiting.until(lambda: _is_gone(int(child.read_text())) or None, seconds=5)


def test_what_a_script_leaves_running_is_stopped(attempt: Attempt, tmp_path: Path) -> None:
    child = tmp_path / "child"
    text = f"#!/bin/sh\nsleep 300 >/dev/null 2>&1 &\necho $! > {child}\n"
    told(attempt, text)
    assert waiting.until(lambda: _is_gone(int(child.read_text())) or None, seconds=5)


def test_a_pipe_that_a_script_leaves_open_holds_nobody_up(attempt: Attempt, tmp_path: Path) -> None:
    """Its child has left the group, and the pipe with it; the answer is there all the same."""
    began = time.monotonic()
    start = (
        f"import os, time; os.setsid(); open('{tmp_path}/%d' % os.getpid(), 'w'); time.sleep(60)"
    )
    wait = f"while [ ! -e {tmp_path}/$! ]; do sleep 0.02; done"
    found = told(attempt, f'#!/bin/sh\npython3 -c "{start}" &\n{wait}\nexit 2\n')
    assert time.monotonic() - began < 50
    for child in tmp_path.glob("[0-9]*"):
        os.kill(int(child.name), signal.SIGKILL)
    assert found["bin/check-config.sh on nodes that disagree"] == (
        "exit 2, nothing on standard output"
    )


def test_a_script_that_does_not_end_is_asked_once(attempt: Attempt, tmp_path: Path) -> None:
    quick = Attempt(attempt.cluster, attempt.artifacts, attempt.nodes, attempt.target, timeout=0.3)
    asked = tmp_path / "asked"
    attempt.artifacts.write(script.SCRIPT, f"#!/bin/sh\necho >> {asked}\nsleep 300\n", mode=0o755)
    assert len(list(script.answers(quick))) == 1
    assert asked.read_text() == "\n"


def test_a_script_that_never_stops_talking_is_stopped(attempt: Attempt) -> None:
    found = told(attempt, "#!/bin/sh\nyes\n")
    assert "it says more than 64 MiB" in found["bin/check-config.sh"]


def test_a_script_can_spoil_neither_the_dump_nor_the_next_answer(attempt: Attempt) -> None:
    before = attempt.artifacts.path(OWN).read_bytes()
    spoiling = 'echo spoilt > "$1"; rm "$1"; mkdir "$1"; chmod 000 .'
    told(attempt, f"#!/bin/sh\n{spoiling}\necho OK=3\n")
    assert attempt.artifacts.path(OWN).read_bytes() == before
    left = sorted(entry.name for entry in attempt.artifacts.path("out").iterdir())
    assert left == ["consistency.txt", "nodes.json"]


def _is_gone(pid: int) -> bool:
    """Tell whether a process has ended; one that nobody reaped yet has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith(("Z", "X"))
    except FileNotFoundError:
        return True


def test_a_script_that_may_not_run_differs_and_chmod_mends_it(attempt: Attempt) -> None:
    attempt.artifacts.write(script.SCRIPT, check_script.render(), mode=0o644)
    found = [one for one in script.answers(attempt) if isinstance(one, Difference)]
    assert [one.what for one in found] == ["bin/check-config.sh"]
    assert found[0].mend == f"chmod 755 {attempt.artifacts.path(script.SCRIPT)}"


def test_a_missing_script_differs(attempt: Attempt) -> None:
    found = [one for one in script.answers(attempt) if isinstance(one, Difference)]
    assert [(one.what, one.found) for one in found] == [("bin/check-config.sh", "no such file")]


def test_the_verdict_s_file_is_compared_with_the_script_s_answer(attempt: Attempt) -> None:
    attempt.artifacts.write("out/consistency.txt", "OK=2\n")
    assert told(attempt, check_script.render()) == {"out/consistency.txt, line 1": "OK=2"}


def test_a_dump_that_disagrees_is_told_although_the_script_is_right(attempt: Attempt) -> None:
    path = attempt.artifacts.path(OWN)
    path.write_text(path.read_text().replace('"vm-vgpu"', '"container"'))
    found = told(attempt, check_script.render())
    assert found["labels and resources in the dump"] == "exit 1, MISMATCH=lab-node-2"
    assert "out/consistency.txt, line 1" in found


def test_the_script_sees_a_private_folder_and_no_cluster(
    attempt: Attempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/somewhere/config")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    seen = tmp_path / "seen"
    said = 'stat -c %a . ; pwd; echo $KUBECONFIG; echo "[$KUBERNETES_SERVICE_HOST]"; ls'
    told(attempt, f"#!/bin/sh\ntouch litter\n{{ {said}; }} > {seen}\n")
    mode, folder, kubeconfig, host, *_ = seen.read_text().splitlines()
    assert stat.S_IMODE(int(mode, 8)) == 0o700
    assert (kubeconfig, host) == (os.devnull, "[]")
    assert not Path(folder).exists()


def test_verify_s_bad_dumps_are_bad_by_the_specification(tmp_path: Path) -> None:
    for case in script.bad_dumps():
        path = tmp_path / "dump.json"
        path.write_text(case.content)
        assert checker.main([str(path)]) == case.answer.code
