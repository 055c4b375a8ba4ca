"""Packing the real binaries and unpacking them elsewhere; and archives that must be refused."""

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import mounted, program
from tests.heard import DEAF, Heard

from gpuwl.controlplane.binaries import acquire, bundle, cache, inspection, lookup
from gpuwl.controlplane.binaries.cache import NAMES, Manifest
from gpuwl.errors import InputError, SetupError
from gpuwl.system.progress import SILENCE

PROGRAMS = {
    "etcd": b"#!/bin/sh\necho 'etcd Version: 3.7.0'\n",
    "kube-apiserver": b"#!/bin/sh\necho 'Kubernetes v1.30.1'\n",
    "kube-scheduler": b"#!/bin/sh\necho 'Kubernetes v1.30.1'\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three small programs that say a version."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name, text in PROGRAMS.items():
        (folder / name).write_bytes(text)
        (folder / name).chmod(0o755)
    return folder


def found(folder: Path) -> lookup.Binaries:
    return lookup.Binaries("1.30.1", "assets", folder)


@pytest.fixture
def good(folder: Path) -> dict[str, bytes]:
    """The members of a good archive, in order."""
    manifest = inspection.measure(folder, origin="build").to_json().encode()
    return {"manifest.json": manifest, **PROGRAMS}


def write(file: Path, members: dict[str, bytes], mode: str = "w:gz") -> Path:
    with tarfile.open(file, mode) as archive:  # type: ignore[call-overload]  # mode is a variable
        for name, body in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
    return file


@pytest.mark.cluster
def test_a_round_trip_gives_the_same_real_binaries_on_an_empty_machine(
    real: lookup.Binaries, tmp_path: Path, said: Heard
) -> None:
    file = tmp_path / "gpuwl.tar.gz"
    bundle.pack(real, file, said)
    assert lookup.find() is None
    unpacked = bundle.unpack(file, said)
    assert (unpacked.source, unpacked.version) == ("bundle", real.version)
    for name in NAMES:
        assert (unpacked.folder / name).read_bytes() == (real.folder / name).read_bytes()
        assert os.access(unpacked.folder / name, os.X_OK)
    again = acquire.obtain(listener=DEAF)
    assert (again.source, again.folder) == ("cache", unpacked.folder)
    assert {one.origin for one in inspection.describe(again.folder)} == {"bundle"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "gpuwl.tar.gz"]


def test_packing_twice_gives_the_same_bytes(folder: Path, tmp_path: Path, said: Heard) -> None:
    for name in ("one", "two"):
        bundle.pack(found(folder), tmp_path / name, said)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_place_that_cannot_be_written_is_said_and_nothing_is_left(
    folder: Path, tmp_path: Path, said: Heard
) -> None:
    with pytest.raises(SetupError, match="cannot write"):
        bundle.pack(found(folder), tmp_path / "no such folder" / "file", said)
    with pytest.raises(SetupError, match="cannot write"):
        bundle.pack(found(folder), folder, said)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["programs"]


@pytest.mark.parametrize("place", ["no such folder/file", "programs"])
def test_a_place_that_cannot_be_written_is_known_before_anything_is_fetched(
    folder: Path, tmp_path: Path, place: str
) -> None:
    run = program("gpuwl", GPUWL_ASSETS=str(tmp_path))
    done = run("local", "fetch", "--bundle", str(tmp_path / place))
    assert done.returncode == 3
    assert done.stderr.startswith(f"error: cannot write {tmp_path / place}: ")


def test_an_archive_of_another_version_than_asked_for_is_refused(
    tmp_path: Path, good: dict[str, bytes]
) -> None:
    file = write(tmp_path / "file", good)
    run = program("gpuwl")
    done = run("local", "fetch", "--from", str(file), "--kubernetes-version", "1.37.2")
    assert done.returncode == 2
    assert f"error: {file} holds Kubernetes 1.30.1, and 1.37.2 was asked for\n" in done.stderr
    assert cache.find("1.30.1") is None
    done = run("local", "fetch", "--from", str(file), "--source", "build")
    assert done.returncode == 2
    assert "--from and --source (GPUWL_SOURCE) exclude each other" in done.stderr


def test_a_full_disk_is_not_the_archives_fault(
    tmp_path: Path, good: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write(tmp_path / "file", good | {"etcd": bytes(1 << 20)})
    with mounted(tmp_path / "small", "size=256k") as place:
        monkeypatch.setenv("XDG_CACHE_HOME", str(place))
        with pytest.raises(
            SetupError, match=r"cannot write the cache folder .*: No space left on device"
        ):
            bundle.unpack(file, SILENCE)


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_an_archive_may_have_been_packed_again(
    tmp_path: Path, good: dict[str, bytes], said: Heard, mode: str
) -> None:
    unpacked = bundle.unpack(write(tmp_path / "file", good, mode), said)
    assert unpacked.version == "1.30.1"
    assert bundle.unpack(tmp_path / "file", said) == unpacked


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no file"):
        bundle.unpack(tmp_path / "file", DEAF)


def without(name: str) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
    return lambda good: {key: body for key, body in good.items() if key != name}


def renamed(old: str, new: str) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
    return lambda good: {new if key == old else key: body for key, body in good.items()}


def manifest(**changes: object) -> Callable[[dict[str, bytes]], dict[str, bytes]]:
    def change(good: dict[str, bytes]) -> dict[str, bytes]:
        old = Manifest.from_json(good["manifest.json"])
        new = old._replace(**changes)  # type: ignore[arg-type]  # wrong on purpose
        return {**good, "manifest.json": new.to_json().encode()}

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (without("manifest.json"), "expected manifest.json, found 'etcd'"),
        (without("kube-scheduler"), "expected kube-scheduler, found None"),
        (renamed("etcd", "../etcd"), "expected etcd, found '../etcd'"),
        (renamed("etcd", "/etc/etcd"), "expected etcd, found '/etc/etcd'"),
        (lambda good: {**good, "../../.bashrc": b"x"}, "it also holds '../../.bashrc'"),
        (lambda good: {**good, "etcd": b"#!/bin/sh\necho no\n"}, "etcd has a wrong SHA-256"),
        (lambda good: {**good, "manifest.json": b"{}"}, "no manifest of form 1"),
        (lambda good: {**good, "manifest.json": b"\xff"}, "decode"),
        (lambda good: {**good, "manifest.json": b"[" * 50_000}, "nested too deeply"),
        (lambda good: {**good, "manifest.json": b" " * 100_000}, "expected manifest.json"),
    ],
)
def test_an_archive_that_is_not_as_it_should_be_is_refused(
    tmp_path: Path,
    good: dict[str, bytes],
    said: Heard,
    change: Callable[[dict[str, bytes]], dict[str, bytes]],
    reason: str,
) -> None:
    write(tmp_path / "file", change(good))
    with pytest.raises(InputError, match="is not a gpuwl bundle, or is damaged") as caught:
        bundle.unpack(tmp_path / "file", said)
    assert reason in caught.value.details[0]
    assert nothing_left(tmp_path)


def nothing_left(tmp_path: Path) -> bool:
    return {path.name for path in cache.store().iterdir()} <= {"lock"} and {
        path.name for path in tmp_path.iterdir()
    } == {"programs", "file", "cache"}


def test_links_and_folders_are_refused(tmp_path: Path, good: dict[str, bytes], said: Heard) -> None:
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE):
        with tarfile.open(tmp_path / "file", "w:gz") as archive:
            member = tarfile.TarInfo("manifest.json")
            member.size = len(good["manifest.json"])
            archive.addfile(member, io.BytesIO(good["manifest.json"]))
            link = tarfile.TarInfo("etcd")
            link.type, link.linkname = kind, "/bin/sh"
            archive.addfile(link)
        with pytest.raises(InputError) as caught:
            bundle.unpack(tmp_path / "file", said)
        assert "expected etcd" in caught.value.details[0]
        assert nothing_left(tmp_path)


def test_an_archive_for_another_platform_is_refused(
    tmp_path: Path, good: dict[str, bytes], said: Heard
) -> None:
    write(tmp_path / "file", manifest(platform="linux-riscv64")(good))
    with pytest.raises(InputError, match="is for linux-riscv64, and this machine is linux-"):
        bundle.unpack(tmp_path / "file", said)


def test_a_manifest_that_claims_another_version_is_refused(
    tmp_path: Path, good: dict[str, bytes], said: Heard
) -> None:
    write(tmp_path / "file", manifest(version="1.37.2")(good))
    with pytest.raises(SetupError, match=r"1\.37\.2 was asked for, and 1\.30\.1 came"):
        bundle.unpack(tmp_path / "file", said)
    assert nothing_left(tmp_path)


def test_a_version_that_is_a_path_is_refused(
    tmp_path: Path, good: dict[str, bytes], said: Heard
) -> None:
    write(tmp_path / "file", manifest(version="../../1.30.1")(good))
    with pytest.raises(InputError):
        bundle.unpack(tmp_path / "file", said)
    assert nothing_left(tmp_path)


def test_a_binary_of_another_machine_is_refused(
    tmp_path: Path, folder: Path, good: dict[str, bytes], said: Heard
) -> None:
    """The digest is right and the platform claimed, but the program is none that can be started."""
    (folder / "etcd").write_bytes(body := b"\x7fELF\x02\x01\x01" + b"\0" * 9 + b"\x02\0\xf3\0")
    old = Manifest.from_json(good["manifest.json"])
    entry = cache.Entry("3.7.0", inspection.sha256(folder / "etcd"), len(body))
    files = {**old.files, "etcd": entry}
    write(tmp_path / "file", manifest(files=files)({**good, "etcd": body}))
    with pytest.raises(SetupError, match="etcd cannot be started"):
        bundle.unpack(tmp_path / "file", said)
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
def test_an_archive_cut_off_anywhere_is_refused(
    tmp_path: Path, good: dict[str, bytes], said: Heard, mode: str
) -> None:
    whole = write(tmp_path / "file", good, mode).read_bytes()
    data_end = len(whole) if mode != "w" else 512 * 2 * len(good)
    for length in range(0, data_end - 1, max(1, data_end // 40)):
        (tmp_path / "file").write_bytes(whole[:length])
        with pytest.raises(InputError, match="is not a gpuwl bundle"):
            bundle.unpack(tmp_path / "file", said)
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("body", [b"", b"hello", b"\x1f\x8b\x08hello", b"PK\x03\x04", b"\0" * 2000])
def test_what_is_no_archive_is_refused(tmp_path: Path, folder: Path, body: bytes) -> None:
    (tmp_path / "file").write_bytes(body)
    with pytest.raises(InputError, match="is not a gpuwl bundle"):
        bundle.unpack(tmp_path / "file", SILENCE)


@pytest.mark.parametrize("mode", ["w:gz", "w:xz", "w:bz2"])
@pytest.mark.parametrize("place", [0.1, 0.5, 0.99])
def test_an_archive_that_was_damaged_is_refused_however_it_was_packed(
    tmp_path: Path, good: dict[str, bytes], said: Heard, mode: str, place: float
) -> None:
    file = write(tmp_path / "file", good | {"etcd": os.urandom(100_000)}, mode)
    body = bytearray(file.read_bytes())
    at = int(len(body) * place)
    body[at : at + 8] = bytes(byte ^ 0xFF for byte in body[at : at + 8])
    file.write_bytes(body)
    with pytest.raises(InputError, match="is not a gpuwl bundle, or is damaged"):
        bundle.unpack(file, said)
