"""The lab through its command line, in this process, on the session's control plane."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.lab import expected

from gpuwl.cli import entry
from gpuwl.controlplane import plane
from gpuwl.k8s.client import Cluster, ReadOnlyCluster
from gpuwl.k8s.kubeconfig import credentials
from gpuwl.k8s.kubeconfig.choice import Choice
from gpuwl.k8s.kubeconfig.records import Cluster as ClusterEntry
from gpuwl.k8s.kubeconfig.records import User
from gpuwl.k8s.objects import Object
from gpuwl.lab import paths


@dataclass(frozen=True)
class Done:
    """Exit code, standard output and standard error of one command."""

    code: int
    out: str
    err: str


def unanswered(server: str) -> ReadOnlyCluster:
    """Return a client of a server that need not be there."""
    found = credentials.of(Choice("nowhere", ClusterEntry(server), User(token="none")))  # noqa: S106
    return ReadOnlyCluster(found, request_timeout=1)


class Lab:
    """Runs commands and looks at the files below the root."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Done:
        self._capsys.readouterr()
        code = entry.call(arguments)
        return Done(code, *self._capsys.readouterr())

    def run_all(self, *more: str) -> Done:
        done = self("run", "--all", *more)
        assert done.code == 0, done.err
        return done

    def files(self) -> set[str]:
        found = (Path(folder, name) for folder, _, names in os.walk(self.root) for name in names)
        return {str(path.relative_to(self.root)) for path in found}

    def contents(self) -> dict[str, bytes]:
        return {name: (self.root / name).read_bytes() for name in self.files()}

    def wrong_files(self, names: set[str] | None = None) -> dict[str, str]:
        """Return those files whose bytes are not what the lab promises, with what they hold."""
        wanted = {**expected.FILES, "out/07-cross.txt": expected.cross(self.message_of_cross)}
        held = {name: self._text(name) for name in wanted if names is None or name in names}
        return {name: text for name, text in held.items() if text != wanted[name]}

    message_of_cross = ""

    def _text(self, name: str) -> str:
        path = self.root / name
        return path.read_text() if path.is_file() else "no file"


@pytest.fixture
def lab(
    cluster: Cluster,
    control_plane: plane.Plane,
    root: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    message_of_cross: str,
) -> Lab:
    """The command line with the session's control plane as its target and `root` as its root."""
    monkeypatch.setenv("KUBECONFIG", str(control_plane.kubeconfig))
    monkeypatch.setenv("GPUWL_ROOT", str(root))
    made = Lab(root, capsys)
    made.message_of_cross = message_of_cross
    return made


@pytest.fixture(scope="session")
def message_of_cross(control_plane: plane.Plane) -> str:
    """What the scheduler says of job-cross, as the lab's specification has it for Kubernetes 1.37."""
    if control_plane.version.startswith("1.37."):
        return expected.MESSAGE_OF_1_37
    pytest.skip("the message is known for Kubernetes 1.37 only")


def make_pod(client: Cluster, name: str, *, status: Object | None = None, **spec: Any) -> Object:
    """Create a Pod in the lab's namespace the way somebody else would; return it."""
    container = {"name": "cuda", "image": "nvcr.io/nvidia/cuda:12.4.1-base-ubuntu22.04"}
    container["resources"] = spec.pop("resources", {})
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **spec.pop("metadata", {})},
        "spec": {"containers": [container], **spec},
    }
    made = client.create(paths.PODS, body)
    return client.merge_patch(f"{paths.pod(name)}/status", {"status": status}) if status else made


def remove_pod(client: Cluster, name: str) -> None:
    """Delete a Pod at once."""
    found = client.find(paths.pod(name))
    if found:
        client.delete(paths.pod(name), uid=found["metadata"]["uid"], grace_period=0)


def set_resources(client: Cluster, node: str, **amounts: str | None) -> None:
    """Set resources of a node in capacity and allocatable; `GA102GL_A10` means nvidia.com/…."""
    named = {f"nvidia.com/{name}": amount for name, amount in amounts.items()}
    status = {"capacity": named, "allocatable": named}
    client.merge_patch(f"{paths.node(node)}/status", {"status": status})
