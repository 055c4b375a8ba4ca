"""The official builds of one Kubernetes version, and the etcd that goes with it.

Kubernetes: single files with a digest beside each (https://kubernetes.io/releases/download/). etcd:
an archive per platform and one SHA256SUMS (https://github.com/etcd-io/etcd/releases).
"""

import os
import re
import shutil
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from gpuwl.controlplane.binaries import cache, cachewriter, download
from gpuwl.controlplane.binaries.download import DownloadError, Limits
from gpuwl.system import folders
from gpuwl.system.progress import Listener, Progress

_KUBERNETES = ("GPUWL_KUBERNETES_MIRROR", "https://dl.k8s.io")
_ETCD = ("GPUWL_ETCD_MIRROR", "https://github.com/etcd-io/etcd/releases/download")

# The etcd that each minor release (1.x) was tested with: the server module in the go.mod of
# k8s.io/kubernetes at v1.x.0, which for 1.36.3 and 1.37.2 is kubeadm's DefaultEtcdVersion as well.
_ETCD_OF_MINOR = {
    32: "3.5.16",
    33: "3.5.21",
    34: "3.6.4",
    35: "3.6.5",
    36: "3.6.8",
    37: "3.7.0",
}


@dataclass(frozen=True)
class Wanted:
    """One file of a release: its address, its SHA-256 in hex, and what it is called here."""

    url: str
    sha256: str
    name: str


def etcd_version(kubernetes: str) -> str:
    """Return the etcd version for a Kubernetes version.

    A minor release that the table does not know gets the nearest one's, as kubeadm does it
    (EtcdSupportedVersion in k8s.io/kubernetes/cmd/kubeadm/app/constants).
    """
    minor = int(kubernetes.split(".")[1])
    known = min(max(minor, min(_ETCD_OF_MINOR)), max(_ETCD_OF_MINOR))
    return _ETCD_OF_MINOR[known]


def fetch(version: str, into: Path, listener: Listener) -> None:
    """Download the three binaries into a folder. Only for the holder of the cache's lock.

    Digests come first, so that what cannot work ends at once and not after 200 MB.
    Raises DownloadError, of which DigestError for a file that is not the released one.
    """
    limits = Limits()
    platform = cache.platform()
    if not platform.startswith("linux-"):
        raise DownloadError(f"there are official builds for Linux only, not for {platform}")
    listener.progress(Progress("asking the official download"))
    wanted = [*_kubernetes(version, platform, limits), _etcd(version, platform, limits)]
    kept = cachewriter.scratch() / "downloads" / f"{version}-{platform}"
    folders.make(kept)
    for one in wanted:
        download.file(one.url, kept / one.name, one.sha256, listener, limits)
    _extract_etcd(kept / wanted[-1].name, into / "etcd")
    for one in wanted[:-1]:
        (kept / one.name).replace(into / one.name)
    shutil.rmtree(kept, ignore_errors=True)


def _base(mirror: tuple[str, str]) -> str:
    variable, official = mirror
    return (os.environ.get(variable) or official).rstrip("/")


def _kubernetes(version: str, platform: str, limits: Limits) -> list[Wanted]:
    folder = f"{_base(_KUBERNETES)}/v{version}/bin/{platform.replace('-', '/')}"
    wanted = []
    for name in ("kube-apiserver", "kube-scheduler"):
        url = f"{folder}/{name}"
        spoken = download.text(f"{url}.sha256", limits).split()
        if not spoken or not _is_digest(spoken[0]):
            raise DownloadError(f"{download.shown(url)}.sha256 holds no SHA-256")
        wanted.append(Wanted(url, spoken[0].lower(), name))
    return wanted


def _etcd(version: str, platform: str, limits: Limits) -> Wanted:
    etcd = etcd_version(version)
    folder = f"{_base(_ETCD)}/v{etcd}"
    archive = f"etcd-v{etcd}-{platform}.tar.gz"
    for line in download.text(f"{folder}/SHA256SUMS", limits).splitlines():
        digest, _, name = line.partition(" ")
        if name.lstrip(" *") == archive and _is_digest(digest):
            return Wanted(f"{folder}/{archive}", digest.lower(), archive)
    raise DownloadError(f"{download.shown(folder)}/SHA256SUMS has no line for {archive}")


def _is_digest(text: str) -> bool:
    return bool(re.fullmatch(r"[0-9a-fA-F]{64}", text))


def _extract_etcd(archive: Path, to: Path) -> None:
    """Copy the one file that is wanted out of etcd's archive; its digest was checked before."""
    member = f"{archive.name.removesuffix('.tar.gz')}/etcd"
    try:
        with tarfile.open(archive, "r:gz") as opened:
            source = opened.extractfile(member)
            if source is None:
                raise DownloadError(f"{archive.name} holds no file {member}")
            with source, to.open("wb") as out:
                shutil.copyfileobj(source, out, 1 << 20)
    except (KeyError, tarfile.TarError, EOFError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise  # a full disk, which is not the archive's fault
        raise DownloadError(f"{archive.name} cannot be unpacked", details=[str(error)]) from error
