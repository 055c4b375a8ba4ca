"""Which three binaries of one Kubernetes version are used, and where they came from."""

from dataclasses import dataclass
from pathlib import Path

DEFAULT_VERSION = "1.37.2"


@dataclass(frozen=True)
class Binaries:
    """etcd, kube-apiserver and kube-scheduler of one Kubernetes version in one folder.

    `version` is the Kubernetes version without the v (`1.37.2`). `source` says which place of the
    look-up order won: `assets`, `cache`, `download` or `build`.
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
