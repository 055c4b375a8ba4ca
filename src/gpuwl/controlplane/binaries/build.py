"""Building the three binaries from Go modules (measured: 6 min 40 s with two cores, from nothing).

The packaged go.mod and go.sum name every module with its digest, so what is built is what was
released, whichever proxy it came from. Module and build caches lie in the cache's folder for
unfinished work: a build that was stopped goes on from there, and they go once one has succeeded.
"""

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpuwl.controlplane.binaries import cache, cachewriter, gotoolchain
from gpuwl.controlplane.binaries.gorun import GoCommand
from gpuwl.errors import SetupError
from gpuwl.system import folders
from gpuwl.system.progress import Listener, Progress

_PACKAGED = Path(__file__).parent / "go"
_PACKAGES = {
    "k8s.io/kubernetes/cmd/kube-apiserver": "kube-apiserver",
    "k8s.io/kubernetes/cmd/kube-scheduler": "kube-scheduler",
    "go.etcd.io/etcd/server/v3": "etcd",
}
_ROOM = 5 * 10**9  # bytes: 1.1 GB of modules, 3.2 GB of build cache, and the result (measured)


@dataclass(frozen=True)
class Recipe:
    """What to build: a folder with go.mod and go.sum, and per package the name of its binary.

    `room` is how many bytes of disk the build takes, its caches included.
    """

    version: str
    folder: Path
    packages: Mapping[str, str] = field(default_factory=lambda: _PACKAGES)
    room: int = _ROOM

    def go_version(self) -> tuple[int, int]:
        """Return the Go version that go.mod asks for. Raises ValueError where it names none."""
        line = re.search(
            r"^go (\d+)\.(\d+)", (self.folder / "go.mod").read_text("utf-8"), re.MULTILINE
        )
        if not line:
            raise ValueError(f"{self.folder}/go.mod has no go line")
        return int(line[1]), int(line[2])


def recipe(version: str) -> Recipe:
    """Return how a Kubernetes version is built. Raises SetupError for one without module files."""
    folder = _PACKAGED / version
    if not (folder / "go.mod").exists():
        raise SetupError(
            f"Kubernetes {version} cannot be built here, only downloaded",
            hint=f"versions that can be built: {', '.join(buildable())}",
        )
    return Recipe(version, folder)


def buildable() -> list[str]:
    """Return the Kubernetes versions that can be built, newest first."""
    return sorted((path.parent.name for path in _PACKAGED.glob("*/go.mod")), reverse=True)


def build(what: Recipe, into: Path, listener: Listener) -> None:
    """Build the three binaries into the folder `into`. Only for the holder of the cache's lock.

    Raises SetupError at once where Go or room is missing, and for a build that fails, with its
    last lines and the path of its log.
    """
    scratch = cachewriter.scratch() / "build"
    toolchain = gotoolchain.find(what.go_version())
    _check_room(what, scratch)
    work = _prepare(what, scratch)
    go = GoCommand(
        go=toolchain.go,
        cwd=work,
        environment=gotoolchain.environment(toolchain, scratch, cache.platform()),
        log=scratch / f"build-{what.version}.log",
    )
    packages = _fetch_modules(go, what, listener)
    _compile(go, what, into, packages, listener)
    for package, name in what.packages.items():
        (into / _output_name(package)).rename(into / name)


def discard_caches(listener: Listener) -> None:
    """Remove the build's own caches; for after the binaries have been published."""
    listener.progress(Progress("removing the build's caches"))
    shutil.rmtree(cachewriter.scratch() / "build", ignore_errors=True)


def _check_room(what: Recipe, scratch: Path) -> None:
    """Ask for the room that is still missing: what a broken-off build left counts as there."""
    folders.make(scratch)
    free = shutil.disk_usage(scratch).free
    if free >= what.room or free + cachewriter.size_of(scratch) >= what.room:
        return
    raise SetupError(
        f"building needs {what.room / 1e9:.0f} GB of disk, and {scratch} has {free / 1e9:.1f} free",
        hint="make room there, or set XDG_CACHE_HOME to a folder on another disk",
    )


def _prepare(what: Recipe, scratch: Path) -> Path:
    work, temporary = scratch / f"work-{what.version}", scratch / "tmp"
    for folder in (work, temporary):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(what.folder, work)
    temporary.mkdir()
    return work


def _fetch_modules(go: GoCommand, what: Recipe, listener: Listener) -> set[str]:
    """Fetch all modules, and return the import paths of everything that will be compiled."""
    sums = (what.folder / "go.sum").read_text("utf-8").splitlines()
    total = sum("/go.mod " not in line for line in sums)
    packages: set[str] = set()
    fetched = 0
    for line in go.run("list", "-deps", *what.packages):
        if line and line.startswith("go: downloading"):
            fetched += 1
        elif line and " " not in line:
            packages.add(line)
        listener.progress(Progress("fetching Go modules", fetched, total, "modules"))
    return packages - {"unsafe"}  # a name of the language, nothing to compile


def _compile(
    go: GoCommand, what: Recipe, into: Path, packages: set[str], listener: Listener
) -> None:
    """Compile and link. Packages that an earlier, broken-off build compiled count from the start."""
    done = go.logged("build") & packages
    flags = f"-s -w {_version_flags(what.version)}"
    build = ("build", "-v", "-trimpath", "-ldflags", flags, "-o", f"{into}/", *what.packages)
    for line in go.run(*build):
        if line in packages:
            done.add(line)
        stage = "linking" if done.issuperset(what.packages) else "compiling"
        listener.progress(Progress(stage, len(done), len(packages), "packages"))


def _version_flags(version: str) -> str:
    """Set what a release's own build sets: k8s.io/component-base/version/base.go has the names."""
    major, minor = version.split(".")[:2]
    values = {
        "gitVersion": f"v{version}",
        "gitMajor": major,
        "gitMinor": minor,
        "gitCommit": "",
        "gitTreeState": "archive",
    }
    return " ".join(f"-X k8s.io/component-base/version.{name}={v}" for name, v in values.items())


def _output_name(package: str) -> str:
    """Return what `go build` calls a package's binary: a major version suffix does not count."""
    *front, last = package.split("/")
    return front[-1] if re.fullmatch(r"v\d+", last) else last
