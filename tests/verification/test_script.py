"""The installed checker of an attempt: right answers in any language, wrong ones named."""

import dataclasses
import json
import os
import signal
import subprocess
import textwrap
import time
from pathlib import Path

import pytest
from tests.lab_fixtures import unanswered

from gpuwl.errors import SetupError
from gpuwl.findings import Finding, Severity
from gpuwl.k8s import dump
from gpuwl.lab import check_script, verdict
from gpuwl.lab.artifacts import Artifacts
from gpuwl.lab.names import LABEL_KEY, lab_nodes
from gpuwl.system import waiting
from gpuwl.target.connection import TargetRecord
from gpuwl.verification import script
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.outcome import Moot

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
    use = node["metadata"].get("labels", {}).get("nvidia.com/gpu.workload.config")
    if use is None:
        continue
    judged += 1
    names = [name[11:] for name, amount in node.get("status", {}).get("allocatable", {}).items()
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
    return Attempt(cluster, artifacts, lab_nodes(), target, 20, tmp_path / "kept", seed=1)


def wrong(attempt: Attempt) -> dict[str, Finding]:
    found = [one for one in script.answers_right(attempt) if isinstance(one, Finding)]
    return {one.id.partition(".")[2]: one for one in found if one.severity is Severity.ERROR}


def told(attempt: Attempt, text: str, *, mode: int = 0o755) -> dict[str, str]:
    """Install a script and return what is found, by the requirement's name."""
    attempt.artifacts.write(script.SCRIPT, textwrap.dedent(text), mode=mode)
    return {name: str(one.found) for name, one in wrong(attempt).items()}


def hurried(attempt: Attempt, seconds: float) -> Attempt:
    return dataclasses.replace(attempt, timeout=seconds)


def test_the_lab_s_own_checker_answers_right(attempt: Attempt) -> None:
    assert told(attempt, check_script.render()) == {}


def test_a_checker_by_hand_in_another_language_answers_right(attempt: Attempt) -> None:
    assert told(attempt, BY_HAND) == {}


def test_a_script_without_a_first_line_runs_as_in_a_shell(attempt: Attempt) -> None:
    assert told(attempt, f"exec python3 - \"$@\" <<'WHOLE'\n{BY_HAND}WHOLE\n") == {}


def test_a_verdict_in_a_wrong_form_is_told_as_such(attempt: Attempt) -> None:
    found = told(attempt, BY_HAND.replace(" {use}: {kinds}", ""))
    assert list(found) == ["output"]
    assert found["output"].startswith("MISMATCH=")


def test_right_words_with_a_wrong_exit_code_differ(attempt: Attempt) -> None:
    assert told(attempt, BY_HAND.replace("1 if bad", "0 if bad")) == {"exit-code": "exit 0"}


def test_what_is_wrong_is_kept_small_with_a_command_that_tries_again(attempt: Attempt) -> None:
    attempt.artifacts.write(script.SCRIPT, BY_HAND.replace('and amount != "0"', ""), mode=0o755)
    (found,) = wrong(attempt).values()
    folder = attempt.keep / "zero"
    assert (
        found.fix == f'{attempt.artifacts.path(script.SCRIPT)} {folder}/nodes.json; echo "exit $?"'
    )
    (node,) = json.loads((folder / "nodes.json").read_text())["items"]
    name = node["metadata"]["name"]
    assert (folder / "stdout.txt").read_text().startswith(f"MISMATCH={name} ")
    assert (folder / "expected.txt").read_text() == "exit 0: OK=1\n"
    assert (folder / "stderr.txt").read_text() == ""
    again = subprocess.run(["/bin/sh", "-c", found.fix], capture_output=True, text=True, check=True)
    assert again.stdout.splitlines()[-1] == "exit 1"
    assert again.stdout.startswith(f"MISMATCH={name} ")


def test_the_next_run_replaces_what_was_kept_and_nobody_else_s_files(attempt: Attempt) -> None:
    told(attempt, "#!/bin/sh\necho OK=3\n")
    assert attempt.keep.is_dir()
    assert told(attempt, BY_HAND) == {}
    assert not attempt.keep.exists()
    attempt.keep.mkdir()
    (attempt.keep / "mine").touch()
    with pytest.raises(SetupError, match="it holds other files"):
        wrong(attempt)
    assert (attempt.keep / "mine").exists()


def test_a_script_that_does_not_end_is_stopped_with_what_it_started(
    attempt: Attempt, tmp_path: Path
) -> None:
    quick = hurried(attempt, 0.3)
    child = tmp_path / "child"
    began = time.monotonic()
    found = told(quick, f"#!/bin/sh\nsleep 300 &\necho $! > {child}\nwait\n")
    assert time.monotonic() - began < 10
    assert "no answer within 0.3 s" in found["script"]
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
    told(attempt, f'#!/bin/sh\npython3 -c "{start}" &\n{wait}\nexit 2\n')
    assert time.monotonic() - began < 50
    for child in tmp_path.glob("[0-9]*"):
        os.kill(int(child.name), signal.SIGKILL)


def test_a_script_that_does_not_end_is_asked_once(attempt: Attempt, tmp_path: Path) -> None:
    quick = hurried(attempt, 0.3)
    asked = tmp_path / "asked"
    attempt.artifacts.write(script.SCRIPT, f"#!/bin/sh\necho >> {asked}\nsleep 300\n", mode=0o755)
    assert list(wrong(quick)) == ["script"]
    assert asked.read_text() == "\n"


def test_a_script_that_never_stops_talking_is_stopped(attempt: Attempt) -> None:
    found = told(attempt, "#!/bin/sh\nyes\n")
    assert "it says more than 64 MiB" in found["script"]


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
    found = wrong(attempt)
    assert list(found) == ["script"]
    assert found["script"].fix == f"chmod 755 {attempt.artifacts.path(script.SCRIPT)}"


def test_a_script_that_is_missing_or_cannot_run_earns_no_point_of_the_rule(
    attempt: Attempt,
) -> None:
    for make in (lambda: None, lambda: told(attempt, "#!/no/such/program\n")):
        make()
        yielded = list(script.answers_right(attempt))
        assert [one.id for one in yielded if isinstance(one, Finding)] == ["consistency.script"]
        assert [one for one in yielded if isinstance(one, Moot)] == [Moot(script.RULE)]


OWN_ANSWER = verdict.Verdict(0, "OK=3\n", "")


@pytest.mark.parametrize("content", ["OK=3\n", "OK=3", "OK=3\r\n", "\ufeffOK=3\n\n"])
def test_the_verdict_s_file_is_read_as_tools_write_it(attempt: Attempt, content: str) -> None:
    attempt.artifacts.write("out/consistency.txt", content)
    assert list(script.verdict_file(attempt, OWN_ANSWER)) == []


@pytest.mark.parametrize("content", ["OK=2\n", "", "OK=3\nOK=3\n", "checked\nOK=3\n"])
def test_another_verdict_in_the_file_differs(attempt: Attempt, content: str) -> None:
    attempt.artifacts.write("out/consistency.txt", content)
    (found,) = script.verdict_file(attempt, OWN_ANSWER)
    assert isinstance(found, Finding)
    assert (found.id, found.expected) == ("consistency.file", "OK=3")


def test_the_file_holds_what_the_script_prints_reasons_and_all(attempt: Attempt) -> None:
    path = attempt.artifacts.path(OWN)
    path.write_text(path.read_text().replace('"vm-vgpu"', '"container"'))
    attempt.artifacts.write("out/consistency.txt", "MISMATCH=lab-node-2 one reason\n")
    own = verdict.Verdict(1, "MISMATCH=lab-node-2 another\n", "")
    found = [one for one in script.verdict_file(attempt, own) if isinstance(one, Finding)]
    assert [(one.id, one.expected) for one in found] == [
        ("consistency.lab", "OK=…"),
        ("consistency.file", None),
    ]


def test_a_dump_that_disagrees_is_told_and_its_verdict_never_expected(attempt: Attempt) -> None:
    path = attempt.artifacts.path(OWN)
    path.write_text(path.read_text().replace('"vm-vgpu"', '"container"'))
    attempt.artifacts.write(script.SCRIPT, check_script.render(), mode=0o755)
    found = wrong(attempt)
    assert {name: (one.expected, one.found) for name, one in found.items()} == {
        "lab": ("OK=…", "MISMATCH=lab-node-2"),
        "file": (None, "OK=3"),
    }


def test_the_script_sees_a_private_folder_and_no_cluster(
    attempt: Attempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/somewhere/config")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("GPUWL_ROOT", "/somewhere")
    seen = tmp_path / "seen"
    said = 'stat -c %a .; pwd; ls -A | wc -l; echo $HOME; stat -c %a "$1"; env'
    # the file is missing in one case, which has no mode to tell
    told(attempt, f'#!/bin/sh\n[ ! -e "$1" ] || {{ {said}; }} > {seen}.$$\n')
    answers = [path.read_text().splitlines() for path in tmp_path.glob("seen.*")]
    assert len(answers) > 30
    for mode, folder, entries, home, of_dump, *environment in answers:
        assert (mode, entries, of_dump) == ("700", "0", "400")
        assert home == str(Path(folder).parent / "home")
        assert not Path(folder).exists()
        names = {line.partition("=")[0] for line in environment}
        assert not {name for name in names if name.startswith(("KUBERNETES_", "GPUWL_"))}
        assert f"KUBECONFIG={os.devnull}" in environment


def test_what_a_script_writes_is_noticed(attempt: Attempt) -> None:
    text = '#!/bin/sh\ntouch litter ~/at-home; : > "$(dirname "$0")/../out/01-nodes.txt"\nexit 1\n'
    attempt.artifacts.write(script.SCRIPT, text, mode=0o755)
    told_ = [one for one in script.answers_right(attempt) if isinstance(one, Finding)]
    (note,) = [one for one in told_ if one.severity is Severity.NOTE]
    assert note.found == "at-home, litter, out/01-nodes.txt"


def test_memory_is_limited(attempt: Attempt) -> None:
    """Reserving is enough: without the limit it would succeed at once."""
    greedy = BY_HAND.replace("import json, re, sys", "import json, re, sys\nbytearray(8 << 30)")
    assert "MemoryError" in told(attempt, greedy)["every-node"]


def test_python3_is_gpuwl_s_own_where_the_machine_s_is_old(
    attempt: Attempt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old"
    old.mkdir()
    (old / "python3").write_text("#!/bin/sh\nexit 9\n")
    (old / "python3").chmod(0o755)
    monkeypatch.setenv("PATH", f"{old}:{os.environ['PATH']}")
    assert told(attempt, check_script.render()) == {}
