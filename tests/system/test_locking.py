"""Locks: exclusive, self-describing, gone afterwards, worthless once their holder is dead."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwl.errors import SetupError
from gpuwl.lab.artifacts import LOCK, Artifacts
from gpuwl.system import locking
from gpuwl.target import address

HOLD = """
import sys
from pathlib import Path
from gpuwl.system import locking
with locking.held(Path(sys.argv[1]), "it"):
    print("held", flush=True)
    sys.stdin.read()
"""


def holding(path: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    return process


def test_the_second_is_told_who_holds_it_and_since_when(tmp_path: Path) -> None:
    with holding(tmp_path / "lock") as process:
        with pytest.raises(SetupError) as raised, locking.held(tmp_path / "lock", "the thing"):
            pass
        process.communicate()
    assert f"another gpuwl works on the thing: process {process.pid} (" in raised.value.message
    assert " since 20" in raised.value.message
    assert raised.value.exit_code == 3


def test_nothing_is_left_and_the_next_one_gets_it(tmp_path: Path) -> None:
    for _ in range(2):
        with locking.held(tmp_path / "lock", "it"):
            assert (tmp_path / "lock").exists()
        assert not list(tmp_path.iterdir())


def test_the_file_of_a_killed_holder_is_no_lock(tmp_path: Path) -> None:
    with holding(tmp_path / "lock") as process:
        process.kill()
    found = locking.holder(tmp_path / "lock")
    assert found
    assert found.pid == process.pid
    with locking.held(tmp_path / "lock", "it"):
        renewed = locking.holder(tmp_path / "lock")
        assert renewed
        assert renewed.pid == os.getpid()
    assert not list(tmp_path.iterdir())


def test_a_file_that_somebody_put_in_its_place_stays(tmp_path: Path) -> None:
    with locking.held(tmp_path / "lock", "it"):
        (tmp_path / "lock").unlink()
        (tmp_path / "lock").write_text("another")
    assert (tmp_path / "lock").read_text() == "another"


def test_a_lock_without_words_is_a_lock(tmp_path: Path) -> None:
    with locking.held(tmp_path / "lock", "it"):
        (tmp_path / "lock").write_text("")
        with (
            pytest.raises(SetupError, match="has not said yet"),
            locking.held(tmp_path / "lock", "it"),
        ):
            pass


@pytest.mark.parametrize(
    "other",
    ["https://127.0.0.1:6443/", "https://localhost:6443", "HTTPS://127.0.0.1:6443"],
)
def test_one_cluster_is_one_lock_however_it_is_spelt(other: str) -> None:
    with (
        address.held("https://127.0.0.1:6443"),
        pytest.raises(SetupError, match="another gpuwl"),
        address.held(other),
    ):
        pass


def test_two_clusters_are_two_locks() -> None:
    with (
        address.held("https://127.0.0.1:6443"),
        address.held("https://127.0.0.1:6444"),
    ):
        pass


def test_a_root_is_one_by_whatever_path_it_is_reached(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "root")
    with (
        Artifacts(tmp_path / "root").claimed(),
        pytest.raises(SetupError, match="another gpuwl works on root"),
        Artifacts(tmp_path / "link").claimed(),
    ):
        pass


def test_a_root_made_for_the_lock_goes_with_it_while_empty(tmp_path: Path) -> None:
    with Artifacts(tmp_path / "a" / "root").claimed():
        assert (tmp_path / "a" / "root" / LOCK).exists()
    assert not list(tmp_path.iterdir())


def test_a_root_in_use_stays(tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path / "root")
    with artifacts.claimed():
        artifacts.prepare()
        artifacts.made_is_recorded()
    assert artifacts.made == [".", "out", "bin", "k8s"]
    assert sorted(entry.name for entry in artifacts.root.iterdir()) == ["bin", "k8s", "out"]


def test_folders_that_no_file_tells_of_go_again(tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path / "root")
    (tmp_path / "root" / "bin").mkdir(parents=True)
    with artifacts.claimed():
        artifacts.prepare()
    assert [entry.name for entry in artifacts.root.iterdir()] == ["bin"]
