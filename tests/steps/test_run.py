"""A whole run: every file to the byte, what out/run.json says, and running again."""

import datetime as dt
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Run
from tests.lab import expected
from tests.lab_fixtures import Lab

from gpuwl import __version__
from gpuwl.controlplane import plane
from gpuwl.lab import check_script
from gpuwl.steps import STEPS

pytestmark = pytest.mark.cluster


@pytest.fixture(params=[0o022, 0o077], ids=["umask-022", "umask-077"])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    """A mask of the caller, which must not decide how the files can be used."""
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
def test_a_run_writes_every_file_to_the_byte(lab: Lab) -> None:
    lab.run_all()
    assert lab.wrong_files() == {}
    assert lab.files() == expected.EVERY_FILE
    script = (lab.root / "bin/check-config.sh").read_text()
    assert script == check_script.render()
    modes = {name: stat.S_IMODE((lab.root / name).stat().st_mode) for name in lab.files()}
    executable = {name for name, mode in modes.items() if mode == 0o755}
    assert executable == {"bin/check-config.sh"}
    assert set(modes.values()) == {0o755, 0o644}


def test_every_text_ends_in_one_newline_and_has_no_trailing_blank(lab: Lab) -> None:
    lab.run_all()
    for name in lab.files():
        text = (lab.root / name).read_text(encoding="utf-8")
        assert text.endswith("\n"), name
        assert not text.endswith("\n\n"), name
        assert [line for line in text.splitlines() if line != line.rstrip()] == [], name


def test_run_json_tells_target_versions_and_each_step(lab: Lab, control_plane: plane.Plane) -> None:
    began = dt.datetime.now(dt.UTC)
    lab.run_all()
    document = json.loads((lab.root / "out/run.json").read_text())
    target = {
        "kind": "local",
        "name": "tests",
        "server": f"https://127.0.0.1:{control_plane.port}",
        "kubernetes": f"v{control_plane.version}",
    }
    assert document["version"] == 1
    assert document["gpuwl"] == __version__
    assert document["target"] == target
    assert [step["number"] for step in document["steps"]] == [1, 2, 3, 4, 5, 6, 7, 8]
    for record, step in zip(document["steps"], STEPS, strict=True):
        assert record["title"] == step.title
        assert record["result"] == "done"
        assert record["error"] is None
        assert record["target"] == target
        assert record["files"] == {
            name: digest(lab, name) for name in expected.OF_STEP[step.number]
        }
        started = dt.datetime.fromisoformat(record["startedAt"])
        ended = started + dt.timedelta(seconds=record["seconds"])
        slack = dt.timedelta(milliseconds=5)
        assert began - slack <= started <= ended <= dt.datetime.now(dt.UTC) + slack


def digest(lab: Lab, name: str) -> str:
    return f"sha256:{hashlib.sha256((lab.root / name).read_bytes()).hexdigest()}"


def test_a_second_run_writes_the_same_bytes(lab: Lab) -> None:
    lab.run_all()
    first = lab.contents()
    lab.run_all()
    second = lab.contents()
    assert {name for name in first | second if first.get(name) != second.get(name)} == {
        "out/run.json"
    }


def test_the_run_in_parts_writes_the_same(lab: Lab) -> None:
    for part in (["--to", "2"], ["--from", "3", "--to", "7"], ["--from", "8"]):
        done = lab("run", *part)
        assert done.code == 0, done.err
    assert lab.wrong_files() == {}
    assert lab.files() == expected.EVERY_FILE


def test_each_step_alone_in_order_writes_its_files_and_no_others(lab: Lab) -> None:
    written: set[str] = {"out/run.json"}
    for number, names in expected.OF_STEP.items():
        done = lab("step", str(number))
        assert done.code == 0, done.err
        written |= set(names)
        assert lab.files() == written
    assert lab.wrong_files() == {}


def test_a_part_of_a_run_keeps_the_records_of_the_others(lab: Lab) -> None:
    lab("run", "--to", "3")
    lab("step", "2")
    document = json.loads((lab.root / "out/run.json").read_text())
    assert [step["number"] for step in document["steps"]] == [1, 2, 3]


def test_the_summary_tells_what_was_learnt(lab: Lab) -> None:
    done = lab.run_all()
    assert [line.split()[:3] for line in done.out.splitlines()[:8]] == [
        ["step", str(number), "ok"] for number in range(1, 9)
    ]
    summary = done.out.split("\n\n", 1)[1]
    shown = [line.split() for line in summary.splitlines()]
    for line in expected.FILES["out/06-placement.txt"].splitlines():
        assert [words for words in shown if set(line.split()) <= set(words)], line
    assert "job-cross waits: it asks for nvidia.com/gpu" in " ".join(summary.split())
    assert lab.message_of_cross in done.out
    assert f"Files: {lab.root}\n" in summary


def test_the_installed_program_does_the_same(lab: Lab, gpuwl: Run) -> None:
    done = gpuwl("run", "--all")
    assert done.returncode == 0, done.stderr
    assert lab.wrong_files() == {}


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST"])
def test_a_local_run_is_told_from_a_real_one_however_the_address_is_spelt(
    host: str, lab: Lab, control_plane: plane.Plane, tmp_path: Path
) -> None:
    spelt = tmp_path / "kubeconfig"
    spelt.write_text(control_plane.kubeconfig.read_text().replace("//127.0.0.1:", f"//{host}:"))
    assert lab("step", "2", "--kubeconfig", str(spelt)).code == 0
    record = json.loads((lab.root / "out/run.json").read_bytes())
    assert (record["target"]["kind"], record["target"]["name"]) == ("local", control_plane.name)


def test_a_port_that_a_dead_control_plane_had_is_not_ours(
    lab: Lab, control_plane: plane.Plane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its records are still there after a reboot; the cluster there by now is a stranger's."""
    stale = tmp_path / "state/gpuwl/stale"
    stale.mkdir(parents=True)
    shutil.copy(control_plane.folder / "plane.json", stale)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert lab("step", "2").code == 0
    record = json.loads((lab.root / "out/run.json").read_bytes())
    assert record["target"]["kind"] == "cluster"
