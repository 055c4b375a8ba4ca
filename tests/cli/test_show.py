"""What people see: layout by display cells, the lab's split, the lessons."""

import io
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len
from tests.checker.support import CASES
from tests.conftest import Run

from gpuwl import texts
from gpuwl.cli.show import layout, lessons, split
from gpuwl.lab.artifacts import Artifacts

FILES = {
    "out/01-nodes.txt": "a container\nb vm-passthrough\nc vm-vgpu\n",
    "out/03-resources.txt": "a nvidia.com/gpu 4\nb nvidia.com/GA102GL_A10 2\nc nvidia.com/NVIDIA_A10-12Q 4\n",
    "out/06-placement.txt": "job-container a\nvmi-passthrough b\nvmi-vgpu c\n",
    "out/07-cross.txt": "PHASE=Pending\nNODE=none\nMESSAGE=0/3 nodes are available.\n",
}


@pytest.fixture
def artifacts(tmp_path: Path) -> Artifacts:
    found = Artifacts(tmp_path)
    for name, content in FILES.items():
        found.write(name, content)
    return found


@pytest.fixture
def korean() -> Iterator[None]:
    texts.use("ko")
    yield
    texts.use("en")


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
@pytest.mark.parametrize("words", ["a plain sentence " * 20, "한국어는 두 칸을 차지합니다 " * 12])
def test_a_line_is_never_wider_than_the_terminal(
    words: str, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((columns, 24)))
    lines = layout.wrapped(words, indent="  ", hanging="    ")
    assert max(map(cell_len, lines)) <= min(columns, layout.PROSE)
    assert " ".join(" ".join(lines).split()) == " ".join(words.split())


def test_a_command_is_never_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    monkeypatch.setattr(shutil, "get_terminal_size", lambda: os.terminal_size((40, 24)))
    command = "`kubectl get nodes -L nvidia.com/gpu.workload.config`"
    lines = layout.wrapped(f"Read it back with {command} and look at the last column.")
    assert any(command in line for line in lines)


def test_columns_count_display_cells(korean: None) -> None:
    first, second = layout.columns([("노드", "x"), ("node", "y")])
    assert cell_len(first) == cell_len(second)


def test_the_split_is_what_the_files_hold(artifacts: Artifacts) -> None:
    assert split.data(artifacts) == {
        "nodes": [
            {"node": "a", "label": "container", "resource": "nvidia.com/gpu", "amount": 4, "pods": ["job-container"]},
            {"node": "b", "label": "vm-passthrough", "resource": "nvidia.com/GA102GL_A10", "amount": 2, "pods": ["vmi-passthrough"]},
            {"node": "c", "label": "vm-vgpu", "resource": "nvidia.com/NVIDIA_A10-12Q", "amount": 4, "pods": ["vmi-vgpu"]},
        ],
        "waiting": {
            "pod": "job-cross",
            "resource": "nvidia.com/gpu",
            "selector": "nvidia.com/gpu.workload.config=vm-passthrough",
            "message": "0/3 nodes are available.",
        },
    }  # fmt: skip


@pytest.mark.parametrize(("encoding", "boxes"), [("utf-8", "■□□□"), ("ascii", "#...")])
def test_a_picture_that_the_output_can_show(
    artifacts: Artifacts, encoding: str, boxes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding=encoding))
    lines = [line for line, _ in split.picture(artifacts)]
    assert any(boxes in line and "job-container" in line for line in lines)
    assert lines[-1].startswith("job-cross waits: it asks for nvidia.com/gpu on a node labelled ")


def test_half_a_lab_has_no_picture(tmp_path: Path) -> None:
    assert split.picture(Artifacts(tmp_path)) == []


@pytest.mark.parametrize("name", ["checker.py.txt", "checker.jq.txt"])
def test_the_checkers_that_explain_shows_judge_right(name: str, tmp_path: Path) -> None:
    """On every plain list of nodes among the cases."""
    script = tmp_path / "check-config.sh"
    script.write_text(lessons.example(name))
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    judged = [verdicts(script, case) for case in CASES if is_plain_list(case)]
    assert [found for found, _ in judged] == [expected for _, expected in judged]
    assert len(judged) >= 8


def is_plain_list(case: Path) -> bool:
    try:
        document = json.loads(case.read_bytes())
    except ValueError:
        return False
    items = document.get("items", [{"kind": "Pod"}])
    return all(one.get("kind", "Node") == "Node" for one in items)


def verdicts(script: Path, case: Path) -> tuple[list[str], list[str]]:
    done = subprocess.run([script, case], capture_output=True, text=True, check=False)
    found = [str(done.returncode), *(line.split()[0] for line in done.stdout.splitlines())]
    return found, case.with_suffix(".expect").read_text().split()


@pytest.mark.parametrize("language", ["en", "ko"])
def test_explain_and_steps_speak_the_language(gpuwl: Run, language: str) -> None:
    explained = gpuwl("explain", "7", "--lang", language).stdout
    listed = gpuwl("steps", env={"LC_ALL": "ko_KR.UTF-8" if language == "ko" else "C"}).stdout
    title = texts.catalogue(language, "lab")["title_cross"]
    assert title in explained
    assert title in listed


def test_no_line_of_a_lesson_is_too_wide(gpuwl: Run) -> None:
    for language in texts.LANGUAGES:
        shown = gpuwl("explain", "3", "--lang", language).stdout
        prose = shown.split(texts.catalogue(language, "explain")["by_hand"])[0]
        assert max(map(cell_len, prose.splitlines())) <= layout.PROSE
