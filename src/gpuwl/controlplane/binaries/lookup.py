"""Which three binaries of one Kubernetes version are used, and where they came from.

The look-up order, first hit wins: the folder that GPUWL_ASSETS names, the cache, the official
download, a build from Go modules. Only the first two are on the path of every command, so this
module imports nothing that they do not need (docs/decisions/0003).
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gpuwl.controlplane.binaries import cache

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


def find(version: str | None = None, source: Source | None = None) -> Binaries | None:
    """Return the binaries that are there already (GPUWL_ASSETS, then the cache), else None.

    `version` is a Kubernetes version (`1.37.2`, a leading v is allowed); None takes whatever
    GPUWL_ASSETS holds, and DEFAULT_VERSION from the cache. With a `source` GPUWL_ASSETS is passed
    over, and of the cache only what came that way counts. Raises SetupError for a GPUWL_ASSETS
    that is incomplete, mixed or of another version, InputError for what is no version.
    """
    wanted = None if version is None else cache.parse_version(version)
    if os.environ.get("GPUWL_ASSETS") and source is None:
        return _assets(Path(os.environ["GPUWL_ASSETS"]), wanted)
    folder = cache.find(wanted or DEFAULT_VERSION, source)
    return Binaries(wanted or DEFAULT_VERSION, "cache", folder) if folder else None


def _assets(folder: Path, wanted: str | None) -> Binaries:
    from gpuwl.controlplane.binaries import inspection

    version = inspection.assets_version(folder, wanted)
    return Binaries(version, "assets", folder.absolute())
