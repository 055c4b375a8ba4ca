"""Roots that cannot be written, the checker in process, a control plane that does not start."""

import os
import re
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Run, mounted, program

from gpuwl.controlplane.binaries.lookup import Binaries
from gpuwl.k8s.client import Cluster
from gpuwl.lab import check_script, paths

CASES = sorted((Path(__file__).parents[1] / "checker/cases").glob("*.json"))


@pytest.fixture
def file_in_the_way(tmp_path: Path) -> Path:
    (tmp_path / "file").write_text("somebody's")
    return tmp_path / "file"


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A file system that cannot be written, not even by root."""
    with mounted(tmp_path / "read-only", "ro,size=64k") as place:
        yield place


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A disk that has room for a folder's name, and for nothing in a file."""
    with mounted(tmp_path / "full", "size=4k") as place:
        (place / "filler").write_bytes(bytes(4096))
        yield place


@pytest.fixture
def too_long(tmp_path: Path) -> Path:
    return tmp_path / ("x" * 300)


@pytest.mark.cluster
def test_a_state_folder_on_a_full_disk(full: Path, root: Path, found_binaries: Binaries) -> None:
    done = program("gpuwl", XDG_STATE_HOME=str(full))(
        "run", "--all", "--local", "--root", str(root)
    )
    assert done.returncode == 3, done.stderr
    assert done.stderr.splitlines()[-2:] == [
        "error: cannot write: No space left on device",
        f"hint: make room where {full}/gpuwl is, or set XDG_STATE_HOME to another folder",
    ]
    assert not list((full / "gpuwl").glob("default*"))


@pytest.mark.cluster
def test_a_disk_without_room_for_a_control_plane_is_said(
    tmp_path: Path, found_binaries: Binaries
) -> None:
    with mounted(tmp_path / "small", "size=1m") as place:
        done = program("gpuwl", XDG_STATE_HOME=str(place))("local", "up")
    assert done.returncode == 3
    assert re.search(
        r" has [01] MB of disk left, and a start takes 128$", done.stderr, re.MULTILINE
    )


@pytest.mark.cluster
def test_a_state_folder_that_was_open_to_others_is_closed(
    tmp_path: Path, found_binaries: Binaries
) -> None:
    (tmp_path / "gpuwl").mkdir()
    (tmp_path / "gpuwl").chmod(0o777)
    run = program("gpuwl", XDG_STATE_HOME=str(tmp_path))
    try:
        assert run("local", "up").returncode == 0
        assert stat.S_IMODE((tmp_path / "gpuwl").stat().st_mode) == 0o700
    finally:
        assert run("local", "down").returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a folder away")
def test_a_state_folder_of_another_user_is_not_used(
    tmp_path: Path, found_binaries: Binaries
) -> None:
    (tmp_path / "gpuwl").mkdir()
    os.chown(tmp_path / "gpuwl", 65534, 65534)
    done = program("gpuwl", XDG_STATE_HOME=str(tmp_path))("local", "up")
    assert done.returncode == 3
    assert done.stderr.splitlines() == [
        f"error: {tmp_path}/gpuwl belongs to another user (uid 65534)",
        "hint: set XDG_STATE_HOME to a folder of your own",
    ]
    assert not (tmp_path / "gpuwl" / "default").exists()


@pytest.mark.cluster
def test_a_state_folder_with_a_colon_in_its_path(tmp_path: Path, found_binaries: Binaries) -> None:
    done = program("gpuwl", XDG_STATE_HOME=str(tmp_path / "a:b"))("local", "up")
    assert done.returncode == 3
    assert done.stderr.splitlines()[-2].endswith(
        "a colon in its path ends the name of a kubeconfig"
    )


@pytest.mark.cluster
def test_what_is_made_is_closed_whatever_the_umask(
    tmp_path: Path, found_binaries: Binaries
) -> None:
    run = program("gpuwl", XDG_STATE_HOME=str(tmp_path / "new/state"))
    try:
        assert run("local", "up", umask=0).returncode == 0
        modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").rglob("*")}
        assert modes == {0o600, 0o700}
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    finally:
        assert run("local", "down").returncode == 0


@pytest.mark.parametrize("command", ["run --all --local", "local up"])
@pytest.mark.parametrize("obstacle", ["file_in_the_way", "read_only", "too_long"])
def test_a_state_folder_that_cannot_be_written(
    command: str, obstacle: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    place = request.getfixturevalue(obstacle)
    run = program("gpuwl", XDG_STATE_HOME=str(place), GPUWL_ROOT=str(tmp_path / "root"))
    done = run(*command.split())
    assert done.returncode == 3, done.stderr
    error, hint = done.stderr.splitlines()[-2:]
    assert error.startswith(f"error: cannot use {place}")
    assert hint == "hint: free that path, or set XDG_STATE_HOME to a folder that can be written"
    assert not (tmp_path / "root").exists()


@pytest.mark.cluster
@pytest.mark.parametrize("below", ["", "deep/er"])
def test_a_file_in_the_way_of_the_root(
    below: str, file_in_the_way: Path, gpuwl: Run, cluster: Cluster
) -> None:
    root = file_in_the_way / below
    before = cluster.get(paths.NODES)["items"]
    done = gpuwl("run", "--all", "--root", str(root))
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.splitlines()[-2:] == [
        f"error: cannot write {root}: not a folder{f' ({file_in_the_way})' if below else ''}",
        "hint: free that path, or choose another folder with --root",
    ]
    assert cluster.get(paths.NODES)["items"] == before
    assert file_in_the_way.read_text() == "somebody's"


@pytest.mark.cluster
@pytest.mark.parametrize("below", ["", "sub/folder"])
def test_a_root_on_a_read_only_disk(
    below: str, read_only: Path, gpuwl: Run, cluster: Cluster
) -> None:
    before = cluster.get(paths.NODES)["items"]
    done = gpuwl("run", "--all", "--root", str(read_only / below))
    assert done.returncode == 3
    assert f"error: cannot write {read_only / below}: " in done.stderr
    assert "--root" in done.stderr
    assert cluster.get(paths.NODES)["items"] == before


@pytest.mark.cluster
@pytest.mark.parametrize(
    "root", ["/proc/lab", "/proc/self", "/sys/lab", "/dev/null", "/dev/null/x"]
)
def test_a_root_that_cannot_be(root: str, gpuwl: Run) -> None:
    done = gpuwl("run", "--all", "--root", root)
    assert done.returncode == 3
    assert f"error: cannot write {root}: " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name[:3])
def test_check_says_what_the_script_says(case: Path, tmp_path: Path) -> None:
    script = tmp_path / "check-config.sh"
    script.write_text(check_script.render())
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    ours = program("gpuwl")("check", str(case))
    alone = subprocess.run([str(script), str(case)], capture_output=True, text=True, check=False)
    assert (ours.returncode, ours.stdout) == (alone.returncode, alone.stdout)
    assert ours.stderr == alone.stderr


def test_check_reads_standard_input_and_prints_one_document() -> None:
    with CASES[0].open() as dump:
        done = program("gpuwl")("check", "-", "--output", "json", stdin=dump)
    assert done.returncode == 0
    assert done.stdout.count("\n{") == 0
    assert done.stdout.startswith("{")


def test_the_printed_script_is_the_one_that_is_rendered() -> None:
    assert program("gpuwl")("check", "--print-script").stdout == check_script.render()


DYING = """#!/bin/sh
[ "$1" = --version ] && exec "$REAL" "$@"
echo "flag provided but not defined: -nonsense" >&2
echo "usage of the component follows" >&2
exit 2
"""


@pytest.mark.cluster
def test_a_component_that_dies_at_start_is_quoted(
    tmp_path: Path, root: Path, found_binaries: Binaries
) -> None:
    assets = tmp_path / "assets"
    assets.mkdir()
    for name in ("etcd", "kube-apiserver", "kube-scheduler"):
        (assets / name).symlink_to(found_binaries.folder / name)
    (assets / "kube-scheduler").unlink()
    (assets / "kube-scheduler").write_text(
        DYING.replace("$REAL", str(found_binaries.folder / "kube-scheduler"))
    )
    (assets / "kube-scheduler").chmod(0o755)
    run = program("gpuwl", GPUWL_ASSETS=str(assets), GPUWL_ROOT=str(root), GPUWL_NAME="dying")
    done = run("run", "--all", "--local")
    try:
        assert done.returncode == 3, done.stderr
        assert "error: kube-scheduler " in done.stderr
        assert "  flag provided but not defined: -nonsense\n" in done.stderr
        assert "hint: " in done.stderr
        assert "Traceback" not in done.stderr
        assert not root.exists()
    finally:
        assert run("local", "down").returncode == 0
