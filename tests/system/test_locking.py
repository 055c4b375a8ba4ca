"""Locks: exclusive, self-describing, gone afterwards, worthless once their holder is dead."""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
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


@pytest.fixture
def common() -> Iterator[Path]:
    """A folder that every user may write to."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


@contextlib.contextmanager
def another_user() -> Iterator[None]:
    if os.geteuid():
        pytest.skip("only root may become another user")
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_lock_of_another_user_says_who_holds_it(common: Path) -> None:
    umask = os.umask(0o077)
    try:
        process = holding(common / "lock")
    finally:
        os.umask(umask)
    with another_user(), pytest.raises(SetupError) as raised, locking.held(common / "lock", "it"):
        pass
    assert f"another gpuwl works on it: process {process.pid} (" in raised.value.message
    process.communicate()


def test_a_file_that_another_user_left_is_no_lock(common: Path) -> None:
    with holding(common / "lock") as process:
        process.kill()
    with another_user(), locking.held(common / "lock", "it"):
        assert (common / "lock").stat().st_uid == 65534
    assert not list(common.iterdir())


def test_a_lock_of_another_user_that_cannot_be_told_from_a_leftover_names_its_owner(
    common: Path,
) -> None:
    (common / "lock").touch(mode=0o600)
    with (
        another_user(),
        pytest.raises(SetupError, match=r"^another user \(uid 0\) works on it, or did "),
        locking.held(common / "lock", "it"),
    ):
        pass
    assert (common / "lock").exists()


def test_what_others_use_is_not_had_alone(tmp_path: Path) -> None:
    (tmp_path / "mark").touch()
    with locking.shared(tmp_path / "mark") as first, locking.shared(tmp_path / "mark") as second:
        assert first
        assert second
        with locking.alone(tmp_path / "mark") as mine:
            assert not mine
    with locking.alone(tmp_path / "mark") as mine, locking.shared(tmp_path / "mark") as other:
        assert mine
        assert not other


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
