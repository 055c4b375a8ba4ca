"""Which three binaries of one Kubernetes version are used, and where they came from.

The look-up order, first hit wins: the folder that GPUWL_ASSETS names, the cache, the official
download, a build from Go modules. Only the first two are on the path of every command, so this
module imports nothing that they do not need (docs/decisions/0003).
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gpuwl.controlplane import binarycache

if TYPE_CHECKING:
    from gpuwl.controlplane.inspection import Described

DEFAULT_VERSION = "1.37.2"

Source = Literal["download", "build"]


@dataclass(frozen=True)
class Binaries:
    """etcd, kube-apiserver and kube-scheduler of one Kubernetes version in one folder.

    `version` is the Kubernetes version without the v (`1.37.2`). `source` says which place of the
    look-up order won: `assets`, `cache`, `download` or `build`; `bundle` for an archive that was
    just unpacked.
    """

    version: str
    source: str
    folder: Path

    @property
    def etcd(self) -> Path:
        """The path of etcd."""
        return self.folder / "etcd"

    @property
    def kube_apiserver(self) -> Path:
        """The path of kube-apiserver."""
        return self.folder / "kube-apiserver"

    @property
    def kube_scheduler(self) -> Path:
        """The path of kube-scheduler."""
        return self.folder / "kube-scheduler"


def find(version: str | None = None, source: Source | None = None) -> Binaries | None:
    """Return the binaries that are there already (GPUWL_ASSETS, then the cache), else None.

    `version` is a Kubernetes version (`1.37.2`, a leading v is allowed); None takes whatever
    GPUWL_ASSETS holds, and DEFAULT_VERSION from the cache. With a `source` GPUWL_ASSETS is passed
    over, and of the cache only what came that way counts. Raises SetupError for a GPUWL_ASSETS
    that is incomplete, mixed or of another version, InputError for what is no version.
    """
    wanted = None if version is None else binarycache.parse_version(version)
    if os.environ.get("GPUWL_ASSETS") and source is None:
        return _assets(Path(os.environ["GPUWL_ASSETS"]), wanted)
    folder = binarycache.find(wanted or DEFAULT_VERSION, source)
    return Binaries(wanted or DEFAULT_VERSION, "cache", folder) if folder else None


def obtain(
    version: str | None = None,
    *,
    source: Source | None = None,
    say: Callable[[str], None],
) -> Binaries:
    """Return binaries of one Kubernetes version, downloading or building them where none are there.

    `version` as in `find`. `source` forces a download or a build: GPUWL_ASSETS is passed over then,
    and of the cache only what came that way counts. `say` is given one short line of progress at a
    time, at most a few a second; one that starts with `warning: ` must not be lost among the others,
    such as that a download had a wrong digest. Another gpuwl that is at it already is waited for, and its result
    used. Raises SetupError with the reason of each place that failed.
    """
    if source is None and (found := find(version)):
        return found
    from gpuwl.controlplane import acquire

    wanted = DEFAULT_VERSION if version is None else binarycache.parse_version(version)
    return acquire.acquire(wanted, source, say)


def _assets(folder: Path, wanted: str | None) -> Binaries:
    from gpuwl.controlplane import inspection

    version = inspection.assets_version(folder, wanted)
    return Binaries(version, "assets", folder.absolute())


def describe(found: Binaries) -> "list[Described]":
    """Describe the three binaries: path, own version, origin, SHA-256 of now, size, intact or not.

    Takes about 0.2 s, since it reads every byte. Raises SetupError for one that cannot be read.
    """
    from gpuwl.controlplane import inspection

    return inspection.describe(found.folder)


def clean(say: Callable[[str], None]) -> int:
    """Empty the cache, with what unfinished downloads and builds left; return the bytes freed.

    A control plane that runs from the cache goes on running. Raises SetupError at once while
    another gpuwl is downloading or building.
    """
    from gpuwl.controlplane import cachewriter

    return cachewriter.clean(say)
