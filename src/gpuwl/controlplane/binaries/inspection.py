"""Looking into binaries: which version they say they are, their digests, their architecture."""

import hashlib
import os
import re
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from gpuwl.controlplane.binaries import cache
from gpuwl.controlplane.binaries.cache import NAMES, Entry, Manifest
from gpuwl.errors import SetupError

_LIMIT = 30  # seconds for `--version`; it takes 0.1 s, but a busy machine's disk may be slow
# What `--version` prints first; for Kubernetes see k8s.io/component-base/version/verflag.
_SPOKEN = re.compile(r"^(?:Kubernetes v|etcd Version: )(\S+)", re.MULTILINE)
_ASSETS_HINT = (
    "point GPUWL_ASSETS at a folder with etcd, kube-apiserver and kube-scheduler of one "
    "Kubernetes version, or unset it"
)


@dataclass(frozen=True)
class Described:
    """One binary as it is now: path, its own version, SHA-256 in hex, size in bytes.

    `origin` is `download`, `build`, `bundle` or, for a folder of GPUWL_ASSETS, `assets`. `intact`
    is False where the digest is not the one recorded when the binary came into the cache.
    """

    name: str
    path: Path
    version: str
    origin: str
    sha256: str
    size: int
    intact: bool


def describe(folder: Path) -> list[Described]:
    """Describe the three binaries of a folder, hashing each (about 0.2 s in all).

    Versions come from the manifest where the folder has one, else the binaries are asked. Raises
    SetupError where one cannot be read or started.
    """
    try:
        recorded: Manifest | None = cache.read(folder)
    except (OSError, ValueError):
        recorded = None
    found = recorded or measure(folder, origin="assets")
    return [_described(folder / name, found, name, fresh=not recorded) for name in NAMES]


def _described(path: Path, manifest: Manifest, name: str, *, fresh: bool) -> Described:
    entry = manifest.files[name]
    digest = entry.sha256 if fresh else sha256(path)
    return Described(
        name=name,
        path=path,
        version=entry.version,
        origin=manifest.origin,
        sha256=digest,
        size=path.stat().st_size,
        intact=digest == entry.sha256,
    )


def damaged(folder: Path) -> list[Path]:
    """Return the binaries of a folder of the cache that are not what its manifest says."""
    recorded = cache.read(folder).files
    return [folder / name for name in NAMES if sha256(folder / name) != recorded[name].sha256]


def measure(folder: Path, *, origin: str) -> Manifest:
    """Return the manifest of three binaries: versions asked of them, digests and sizes read.

    Raises SetupError where one cannot be started, or API server and scheduler differ in version.
    """
    spoken = versions(folder)
    entries = {
        name: Entry(spoken[name], sha256(folder / name), (folder / name).stat().st_size)
        for name in NAMES
    }
    return Manifest(one_version(folder, spoken), cache.platform(), origin, entries)


def assets_version(folder: Path, wanted: str | None) -> str:
    """Return the Kubernetes version of a folder that GPUWL_ASSETS names.

    Raises SetupError where it lacks a binary, holds a mixture, or is not the version `wanted`.
    """
    if folder.is_dir():
        cache.check_may_run(folder)
    missing = [name for name in NAMES if not os.access(folder / name, os.X_OK)]
    if missing:
        raise SetupError(
            f"GPUWL_ASSETS={folder} has no executable {', '.join(missing)}", hint=_ASSETS_HINT
        )
    version = one_version(folder, versions(folder))
    if wanted and wanted != version:
        raise SetupError(
            f"GPUWL_ASSETS={folder} holds Kubernetes {version}, and {wanted} was asked for",
            hint=_ASSETS_HINT,
        )
    return version


def one_version(folder: Path, spoken: Mapping[str, str]) -> str:
    """Return the version that API server and scheduler share. Raises SetupError otherwise."""
    server, scheduler = spoken["kube-apiserver"], spoken["kube-scheduler"]
    if server != scheduler:
        raise SetupError(
            f"{folder} mixes Kubernetes versions: kube-apiserver {server}, "
            f"kube-scheduler {scheduler}",
            hint=_ASSETS_HINT,
        )
    return server


def versions(folder: Path) -> dict[str, str]:
    """Ask the three binaries their versions, all at once. Raises SetupError where one cannot say."""
    with ThreadPoolExecutor(len(NAMES)) as pool:
        return dict(zip(NAMES, pool.map(lambda name: ask(folder / name), NAMES), strict=True))


def ask(binary: Path) -> str:
    """Return the version that a binary says it is. Raises SetupError where it cannot say."""
    try:
        done = subprocess.run(
            [binary, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_LIMIT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(f"{binary} cannot be started", details=[str(error)]) from error
    output = done.stdout.decode(errors="replace")
    spoken = _SPOKEN.search(output)
    if done.returncode or not spoken:
        raise SetupError(
            f"{binary} does not say its version", details=output.strip().splitlines()[-5:]
        )
    return spoken[1]


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
