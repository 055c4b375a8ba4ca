"""A root that others have left things in: the same bytes, and nothing of others is touched."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.lab import expected
from tests.lab_fixtures import Lab

from gpuwl.k8s.client import Cluster
from gpuwl.lab import paths

pytestmark = pytest.mark.cluster


def every_file(root: Path, change: Callable[[Path], object]) -> None:
    for name in sorted(expected.EVERY_FILE):
        change(root / name)


def to_a_link(path: Path) -> None:
    elsewhere = path.with_name(f"{path.name}.target")
    path.rename(elsewhere)
    path.symlink_to(elsewhere.name)


def to_a_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def to_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def to_a_dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/nonexistent/file")


def to_a_hard_link(path: Path) -> None:
    path.with_name(f"{path.name}.twin").hardlink_to(path)


CHANGES: dict[str, Callable[[Path], object]] = {
    "read-only": lambda path: path.chmod(0o400),
    "foreign text": lambda path: path.write_text("not from gpuwl"),
    "empty": lambda path: path.write_bytes(b""),
    "binary": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "gone": Path.unlink,
    "executable": lambda path: path.chmod(0o777),
    "symbolic link": to_a_link,
    "dangling link": to_a_dangling_link,
    "link to itself": to_a_loop,
    "named pipe": to_a_pipe,
    "hard link": to_a_hard_link,
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_stands_where_a_file_goes_is_replaced(change: str, lab: Lab) -> None:
    lab.run_all()
    every_file(lab.root, CHANGES[change])
    lab.run_all()
    assert lab.wrong_files() == {}
    for name in expected.EVERY_FILE:
        mode = (lab.root / name).lstat().st_mode
        assert stat.S_ISREG(mode), name
        assert stat.S_IMODE(mode) == (0o755 if name == "bin/check-config.sh" else 0o644), name


def test_what_a_link_leads_to_is_left_alone(lab: Lab, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("somebody's")
    (lab.root / "out").mkdir(parents=True)
    (lab.root / "out/01-nodes.txt").symlink_to(outside)
    lab.run_all()
    assert outside.read_text() == "somebody's"
    assert lab.wrong_files() == {}


def test_a_folder_may_be_a_link_to_another_disk(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "large").mkdir()
    lab.root.mkdir()
    (lab.root / "out").symlink_to(tmp_path / "large")
    lab.run_all()
    assert lab.wrong_files() == {}
    assert (tmp_path / "large/nodes.json").is_file()


def test_files_of_others_stay(lab: Lab) -> None:
    others = ["notes.txt", "out/notes.txt", "out/.hidden", "k8s/my-pod.yaml", "bin/tool", "sub/x"]
    for name in others:
        (lab.root / name).parent.mkdir(parents=True, exist_ok=True)
        (lab.root / name).write_text(name)
    lab.run_all()
    assert lab.files() == expected.EVERY_FILE | set(others)
    for name in others:
        assert (lab.root / name).read_text() == name


def test_what_a_killed_run_left_goes(lab: Lab) -> None:
    (lab.root / "out").mkdir(parents=True)
    leftovers = [lab.root / "out/.nodes.json.gpuwl-unfinished", lab.root / ".x.gpuwl-unfinished"]
    for leftover in leftovers:
        leftover.write_text("half")
    lab.run_all()
    assert lab.files() == expected.EVERY_FILE


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        '{"version": 1}',
        '{"version": 99, "steps": [{"number": 3}]}',
        '{"version": 1, "steps": {"number": 1}}',
        '{"version": 1, "steps": [null, {}, {"number": "x"}]}',
        '{"version": 1, "steps": [{"number": 1}]}',
        "\ufeff{}",
        "[" * 100_000,
    ],
    ids=range(11),
)
def test_a_run_json_that_is_not_ours_is_written_anew(content: str, lab: Lab) -> None:
    (lab.root / "out").mkdir(parents=True)
    (lab.root / "out/run.json").write_text(content)
    assert lab("step", "2").code == 0
    document = json.loads((lab.root / "out/run.json").read_text())
    assert document["steps"][-1]["number"] in {2, 3}
    assert any(step.get("title") for step in document["steps"])


@pytest.mark.parametrize("name", ["out/06-placement.txt", "k8s/pod-vgpu.yaml", "out/run.json"])
def test_a_folder_in_a_files_place_is_said_before_anything_is_touched(
    name: str, lab: Lab, cluster: Cluster
) -> None:
    (lab.root / name / "inside").mkdir(parents=True)
    before = state_of(cluster)
    done = lab("run", "--all")
    assert done.code == 3
    assert f"error: cannot write {lab.root / name}: a folder is there\n" in done.err
    assert "--root" in done.err
    assert state_of(cluster) == before
    assert lab.files() == set()


@pytest.mark.parametrize("name", ["out", "bin", "k8s"])
def test_a_file_in_a_folders_place(name: str, lab: Lab, cluster: Cluster) -> None:
    lab.root.mkdir()
    (lab.root / name).write_text("somebody's")
    before = state_of(cluster)
    done = lab("run", "--all")
    assert done.code == 3
    assert f"error: cannot write {lab.root / name}" in done.err
    assert state_of(cluster) == before
    assert (lab.root / name).read_text() == "somebody's"


def state_of(client: Cluster) -> list[Any]:
    return [client.get(path)["items"] for path in (paths.NODES, paths.NAMESPACES)]


def test_a_root_with_a_blank_and_korean_letters(lab: Lab, tmp_path: Path) -> None:
    root = tmp_path / "my lab 실습" / "deep"
    done = lab("--root", str(root), "run", "--all")
    assert done.code == 0, done.err
    assert (root / "out/consistency.txt").read_text() == "OK=3\n"


def test_a_root_below_a_dot(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert lab("run", "--all", "--root", "./here/../there").code == 0
    assert (tmp_path / "there/out/consistency.txt").read_text() == "OK=3\n"
