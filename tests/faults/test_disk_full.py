"""A run on a full disk ends right or says so, writes nothing by halves, and goes on once there is room.

The disk is a tmpfs of the test's own, which a test may mount as root: one as the lab's root, one as
the state folder, where locks and journal are. Each is filled up but for a little, and a little more
each time, until a run gets through; once space is short, once file names (inodes).
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.conftest import mounted
from tests.lab.test_reset import make_namespace, seen

from gpuwl.cli import entry
from gpuwl.controlplane.plane import Plane
from gpuwl.k8s.client import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

PAGE = 4096
SIZE = 1 << 20
INODES = 100
SERVER_OWN = {"out/nodes.json", "out/run.json"}
"""Files that hold the server's own metadata, or times."""


@dataclass
class Disk:
    """A small disk that can be filled up to a number of pages or, with `inodes`, of new files."""

    path: Path
    inodes: bool
    _fillers: list[Path] = field(default_factory=list)

    def leave(self, room: int) -> None:
        """Take all that is free but for `room`."""
        free = os.statvfs(self.path)
        if self.inodes:
            for number in range(free.f_ffree - room):
                self._fill(f"filler-{number}", b"")
        else:
            self._fill("filler", bytes((free.f_bavail - room) * free.f_bsize))

    def free(self) -> None:
        """Give back what `leave` took."""
        while self._fillers:
            self._fillers.pop().unlink()

    def _fill(self, name: str, data: bytes) -> None:
        self._fillers.append(self.path / name)
        self._fillers[-1].write_bytes(data)

    def contents(self) -> dict[str, bytes]:
        """Return the bytes of every other file."""
        return {
            str(path.relative_to(self.path)): path.read_bytes()
            for path in self.path.rglob("*")
            if path.is_file() and path not in self._fillers
        }


@pytest.fixture(params=["space", "inodes"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    """A tmpfs of 1 MiB and 100 inodes."""
    with mounted(tmp_path / "disk", f"size={SIZE},nr_inodes={INODES},mode=0700") as path:
        yield Disk(path, inodes=request.param == "inodes")


@dataclass
class Lab:
    """Runs commands in this process, and keeps what they said."""

    root: Path
    kubeconfig: Path
    capsys: pytest.CaptureFixture[str]
    err: str = ""

    def __call__(self, *arguments: str) -> int:
        self.capsys.readouterr()
        options = ["--root", str(self.root), "--kubeconfig", str(self.kubeconfig)]
        code = entry.call([*arguments, *options])
        self.err = self.capsys.readouterr().err
        return code

    def must(self, *arguments: str) -> None:
        """Run a command that has to end well."""
        assert self(*arguments) == 0, self.err

    def failed_clearly(self, where: Path) -> None:
        """Assert that the error names the disk and what ails it, and what to do."""
        assert "No space left on device" in self.err, self.err
        assert str(where) in self.err
        assert "hint: " in self.err
        assert "Traceback" not in self.err


def expected_of(lab: Lab) -> dict[str, bytes]:
    """Return what the lab's files hold after a run on a disk with room enough."""
    lab.must("run", "--all")
    found = {name: (lab.root / name).read_bytes() for name in names_below(lab.root)}
    lab.must("reset", "--files")
    return found


def names_below(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def assert_right(found: dict[str, bytes], right: dict[str, bytes], *, whole: bool) -> None:
    """Assert that every file is one of the lab's and holds all of its bytes."""
    assert set(found) <= set(right)
    assert not whole or set(found) == set(right)
    for name, data in found.items():
        if name in SERVER_OWN:
            assert data.endswith(b"\n}\n"), name
        else:
            assert data == right[name], name


def test_a_full_root(
    disk: Disk,
    control_plane: Plane,
    cluster: Cluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    right = expected_of(Lab(tmp_path / "elsewhere", control_plane.kubeconfig, capsys))
    lab = Lab(disk.path, control_plane.kubeconfig, capsys)
    tight, room = 0, 0
    while True:
        disk.leave(room)
        code = lab("run", "--all")
        assert_right(disk.contents(), right, whole=code == 0)
        disk.free()
        if code == 0:
            break
        assert code == 3, lab.err
        lab.failed_clearly(disk.path)
        tight, room = tight + 1, room + 1 + room // 8
        lab.must("run", "--all")
        assert_right(disk.contents(), right, whole=True)
        lab.must("reset", "--files")
        assert not list(disk.path.iterdir())
    assert tight > 5, "the disk was hardly ever full"


@pytest.fixture
def lab(
    disk: Disk,
    control_plane: Plane,
    cluster: Cluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Lab:
    """A lab with its state on the disk, where the control plane is a cluster like any other."""
    monkeypatch.setenv("XDG_STATE_HOME", str(disk.path))
    make_namespace(cluster)
    return Lab(tmp_path / "root", control_plane.kubeconfig, capsys)


def test_a_full_state_folder(disk: Disk, lab: Lab, cluster: Cluster) -> None:
    """What cannot be journalled is not done; what was done before that can be taken back."""
    before = seen(cluster)
    tight, room = 0, 0
    while True:
        disk.leave(room)
        code = lab("run", "--all")
        disk.free()
        assert_no_leftovers(disk, lab.root)
        if code == 0:
            break
        assert code == 3, lab.err
        lab.failed_clearly(disk.path)
        tight, room = tight + 1, room + 1
        if room % 2:
            lab.must("run", "--all")
        lab.must("reset", "--files")
        assert seen(cluster) == before
        assert not [path for path in disk.path.rglob("*") if path.is_file()]
    assert tight > 0, "the disk was never full"
    lab.must("reset", "--files")
    assert seen(cluster) == before


@pytest.mark.parametrize("disk", ["space"], indirect=True)
def test_a_reset_on_a_full_state_folder(disk: Disk, lab: Lab, cluster: Cluster) -> None:
    before = seen(cluster)
    lab.must("run", "--all")
    disk.leave(0)
    assert lab("reset", "--files") == 3
    lab.failed_clearly(disk.path)
    disk.free()
    assert_no_leftovers(disk, lab.root)
    lab.must("reset", "--files")
    assert seen(cluster) == before
    assert not lab.root.exists()


def assert_no_leftovers(disk: Disk, root: Path) -> None:
    """Assert that no lock and no temporary file is left on the disk or below the root."""
    left = [path.name for folder in (disk.path, root) for path in folder.rglob("*")]
    assert not [name for name in left if "unfinished" in name or name.endswith(".lock")]
