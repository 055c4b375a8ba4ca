"""The cache of binaries: one folder per Kubernetes version, platform and origin.

    <cache>/binaries/1.37.2-linux-amd64/build/{etcd,kube-apiserver,kube-scheduler,manifest.json}

The manifest says what the folder holds, so that a hit costs one small read and three stats: no
binary is started or hashed. It is written last and the folder renamed into place complete, so a
folder with a readable manifest is whole. A folder in place is never changed again: running control
planes have been started from it.

Every command reads it, so it is kept cheap: named tuples, which are made in a fifth of a
dataclass's time, and no pattern that is compiled before somebody needs it.
"""

import json
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from gpuwl.errors import InputError, SetupError
from gpuwl.system import folders

NAMES = ("etcd", "kube-apiserver", "kube-scheduler")
"""In the order of start; they are stopped the other way round."""
ORIGINS = ("download", "bundle", "build")  # the order in which the cache is searched
MANIFEST = "manifest.json"

# What releases are called: https://kubernetes.io/releases/version-skew-policy/#supported-versions
_VERSION = r"v?(\d{1,3}\.\d{1,3}\.\d{1,3}(?:-(?:alpha|beta|rc)\.\d{1,3})?)"
# How Go (and so the releases) call what `uname -m` calls otherwise: https://go.dev/doc/install/source
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class Entry(NamedTuple):
    """What the manifest says about one binary: its own version, SHA-256 in hex, size in bytes."""

    version: str
    sha256: str
    size: int


class Manifest(NamedTuple):
    """What one folder of the cache, or one bundle, holds.

    `version` is the Kubernetes version, `platform` Go's words for system and architecture
    (`linux-amd64`), `origin` how the binaries were made (`download`, `build`) or came (`bundle`).
    """

    version: str
    platform: str
    origin: str
    files: Mapping[str, Entry]

    def to_json(self) -> str:
        """Render the document that `from_json` reads."""
        document = {
            "manifest": 1,
            "version": self.version,
            "platform": self.platform,
            "origin": self.origin,
            "files": {name: entry._asdict() for name, entry in self.files.items()},
        }
        return json.dumps(document, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> "Manifest":
        """Read a manifest. Raises ValueError where it is none, or not of all three binaries."""
        try:
            document = json.loads(text)
        except RecursionError as error:
            raise ValueError("no manifest: nested too deeply") from error
        if not isinstance(document, dict) or document.get("manifest") != 1:
            raise ValueError("no manifest of form 1")
        try:
            files = {name: _entry(document["files"][name]) for name in NAMES}
            head = [_text(document[key]) for key in ("version", "platform", "origin")]
        except (KeyError, TypeError) as error:
            raise ValueError(f"incomplete manifest: {error}") from error
        return cls(head[0], head[1], head[2], files)


def _entry(document: Mapping[str, Any]) -> Entry:
    size = document["size"]
    if not isinstance(size, int) or isinstance(size, bool):
        raise TypeError("size is not a number")
    return Entry(_text(document["version"]), _text(document["sha256"]), size)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def parse_version(text: str) -> str:
    """Return a Kubernetes version without the v. Raises InputError for anything else."""
    match = re.fullmatch(_VERSION, text.strip())
    if not match:
        raise InputError(
            f"{text!r} is not a Kubernetes version",
            hint="a version is three numbers, such as 1.37.2",
        )
    return match[1]


def platform() -> str:
    """Return this machine's system and architecture in Go's words (`linux-amd64`)."""
    machine = os.uname().machine
    return f"{sys.platform}-{_ARCHITECTURES.get(machine, machine)}"


def store() -> Path:
    """Return the folder that holds all of this; not created here."""
    return folders.cache() / "binaries"


def place(version: str, origin: str) -> Path:
    """Return where binaries of a version and origin belong in the cache."""
    return store() / f"{version}-{platform()}" / origin


def find(version: str, origin: str | None = None) -> Path | None:
    """Return the cache's folder for a version, of one origin or of any; None where there is none."""
    for candidate in [origin] if origin else ORIGINS:
        folder = place(version, candidate)
        if is_whole(folder, version):
            return folder
    return None


def is_whole(folder: Path, version: str) -> bool:
    """Say whether a folder holds what its manifest says, by name, version, platform and size."""
    try:
        manifest = read(folder)
        sizes = {name: (folder / name).stat().st_size for name in NAMES}
    except (OSError, ValueError):
        return False
    recorded = {name: entry.size for name, entry in manifest.files.items()}
    return (manifest.version, manifest.platform, recorded) == (version, platform(), sizes)


def check_may_run(folder: Path) -> None:
    """Raise SetupError for a folder, which is there, on a disk from which no program may run."""
    if os.statvfs(folder).f_flag & getattr(os, "ST_NOEXEC", 0):
        raise SetupError(
            f"no program may run from {folder}: its disk is mounted noexec",
            hint="set XDG_CACHE_HOME, or GPUWL_ASSETS for binaries of your own, to a folder elsewhere",
        )


def read(folder: Path) -> Manifest:
    """Read a folder's manifest. Raises OSError or ValueError where there is no good one."""
    return Manifest.from_json((folder / MANIFEST).read_bytes())
