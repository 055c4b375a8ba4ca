"""Files are written whole or not at all, and what is in the way is said."""

import errno
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwl.errors import SetupError
from gpuwl.lab.artifacts import Artifacts
from gpuwl.system.files import replace_file


@pytest.fixture
def artifacts(tmp_path: Path) -> Artifacts:
    return Artifacts(tmp_path / "root")


def names(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


def test_text_and_bytes_arrive_as_they_are(artifacts: Artifacts) -> None:
    artifacts.write("out/a.txt", "한국어\n")
    artifacts.write("out/b.txt", b"\r\n\x00")
    assert (artifacts.root / "out/a.txt").read_bytes() == "한국어\n".encode()
    assert (artifacts.root / "out/b.txt").read_bytes() == b"\r\n\x00"
    assert names(artifacts.root) == {"out", "out/a.txt", "out/b.txt"}


@pytest.fixture(params=[0o000, 0o022, 0o077, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    (tmp_path / "root/out").mkdir(parents=True)
    before = os.umask(request.param)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("mode", [0o644, 0o755])
def test_the_mode_does_not_depend_on_the_umask(mode: int, artifacts: Artifacts) -> None:
    path = artifacts.write("out/a", "x", mode=mode)
    assert path.stat().st_mode & 0o7777 == mode


def test_a_reader_never_sees_a_part(artifacts: Artifacts) -> None:
    old, new = "a" * 200_000, "b" * 300_000
    path = artifacts.write("out/a", old, durable=False)
    seen: set[str] = set()
    done = threading.Event()

    def read() -> None:
        seen.add(path.read_text())
        while not done.is_set():
            seen.add(path.read_text())

    reader = threading.Thread(target=read)
    reader.start()
    for _ in range(20):
        artifacts.write("out/a", new, durable=False)
        artifacts.write("out/a", old, durable=False)
    done.set()
    reader.join()
    assert seen
    assert seen <= {old, new}


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifacts.write("out/a", "old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SetupError) as raised:
        artifacts.write("out/a", "new")
    assert raised.value.message == f"cannot write {artifacts.root}/out/a: No space left on device"
    assert names(artifacts.root) == {"out", "out/a"}
    assert (artifacts.root / "out/a").read_text() == "old"


def test_an_interrupted_write_leaves_nothing(
    artifacts: Artifacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        artifacts.write("out/a", "new")
    assert names(artifacts.root) == {"out"}


KILLED = """
import os, signal, sys
from pathlib import Path
from gpuwl.lab.artifacts import Artifacts
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
Artifacts(Path(sys.argv[1])).write("out/a", "new")
"""


def test_what_a_killed_process_left_is_no_file_and_goes(artifacts: Artifacts) -> None:
    artifacts.write("out/a", "old")
    child = subprocess.run([sys.executable, "-c", KILLED, str(artifacts.root)], check=False)
    assert child.returncode == -signal.SIGKILL
    assert (artifacts.root / "out/a").read_text() == "old"
    assert len(names(artifacts.root)) == 3, "the part that was written is there"
    artifacts.prepare()
    assert names(artifacts.root) == {"out", "out/a", "bin", "k8s"}


def test_a_leftover_of_the_same_name_is_no_obstacle(artifacts: Artifacts) -> None:
    (artifacts.root / "out").mkdir(parents=True)
    (artifacts.root / "out/.a.gpuwl-unfinished").symlink_to("/etc/passwd")
    before = Path("/etc/passwd").read_bytes()
    artifacts.write("out/a", "new")
    assert names(artifacts.root) == {"out", "out/a"}
    assert Path("/etc/passwd").read_bytes() == before


def test_a_read_only_file_is_replaced(artifacts: Artifacts) -> None:
    artifacts.write("out/a", "old", mode=0o444)
    artifacts.write("out/a", "new")
    assert (artifacts.root / "out/a").read_text() == "new"
    assert (artifacts.root / "out/a").stat().st_mode & 0o777 == 0o644


def test_a_folder_in_the_way_is_named(artifacts: Artifacts) -> None:
    (artifacts.root / "out/a").mkdir(parents=True)
    with pytest.raises(SetupError) as raised:
        artifacts.write("out/a", "new")
    assert raised.value.message == f"cannot write {artifacts.root}/out/a: Is a directory"
    assert raised.value.hint
    assert names(artifacts.root) == {"out", "out/a"}
    with pytest.raises(SetupError, match="a folder is there"):
        artifacts.check(["out/b", "out/a"])


def test_a_file_in_a_folders_way_is_named(artifacts: Artifacts) -> None:
    artifacts.root.mkdir()
    (artifacts.root / "out").write_text("")
    for act in (artifacts.prepare, lambda: artifacts.write("out/a", "new")):
        with pytest.raises(SetupError, match=f"cannot write {artifacts.root}/out"):
            act()


def test_check_makes_nothing(tmp_path: Path) -> None:
    Artifacts(tmp_path / "a/b/c").check(["out/a"])
    assert names(tmp_path) == set()


@pytest.mark.parametrize("root", ["file", "file/below", "/proc/self/task", "/sys/kernel"])
def test_a_root_that_cannot_be(root: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    impossible = Artifacts(tmp_path / root)

    def all_that_a_run_does_first() -> None:
        impossible.check()
        impossible.prepare()

    with pytest.raises(SetupError, match="cannot write"):
        all_that_a_run_does_first()


@pytest.fixture
def somebody(tmp_path: Path) -> Iterator[None]:
    """Somebody else than root, whom modes do bind."""
    if os.getuid():
        pytest.skip("only root may become somebody else")
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(folder.stat().st_mode | 0o011)
    os.setresuid(65534, 65534, 0)
    yield
    os.setresuid(0, 0, 0)


@pytest.mark.usefixtures("somebody")
@pytest.mark.parametrize("below", ["", "lab/deep"])
def test_a_root_that_belongs_to_somebody_else(below: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError) as raised:
        Artifacts(tmp_path / below).check()
    refused = rf"cannot write {tmp_path / below}: (not writable|Permission denied)"
    assert re.match(refused, raised.value.message)


def test_missing_tells_files_from_folders_and_dangling_links(artifacts: Artifacts) -> None:
    artifacts.write("out/a", "x")
    (artifacts.root / "out/b").mkdir()
    (artifacts.root / "out/c").symlink_to("nowhere")
    assert artifacts.missing(["out/a", "out/b", "out/c", "out/d"]) == ["out/b", "out/c", "out/d"]


def test_a_digest(artifacts: Artifacts) -> None:
    artifacts.write("out/a", "")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert artifacts.digest("out/a") == f"sha256:{empty}"


def test_remove_is_done_once_and_again(artifacts: Artifacts) -> None:
    artifacts.write("out/a", "x")
    artifacts.remove("out/a")
    artifacts.remove("out/a")
    assert names(artifacts.root) == {"out"}


def test_replace_file_raises_what_the_system_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "nowhere/a", b"", 0o644)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_has_no_end_has_no_digest(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "odd"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    with pytest.raises(SetupError, match=r"not a regular file|Is a directory"):
        Artifacts(tmp_path).digest("odd")
