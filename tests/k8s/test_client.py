"""The client of the API: what it leaves behind, and where its secrets are."""

import contextlib
import socket
import tempfile
import time
from pathlib import Path

import pytest
import yaml
from tests.conftest import program

from gpuwl.controlplane import plane
from gpuwl.errors import ClusterError
from gpuwl.k8s.client import RETRY_PAUSE, Call, Cluster, _PassingError, _refused
from gpuwl.k8s.kubeconfig import credentials
from gpuwl.k8s.kubeconfig.choice import Choice
from gpuwl.k8s.kubeconfig.records import Cluster as ClusterEntry
from gpuwl.k8s.kubeconfig.records import User
from gpuwl.lab import paths
from gpuwl.texts import text

pytestmark = pytest.mark.cluster


def test_a_closed_client_leaves_no_connection_and_no_credentials(
    control_plane: plane.Plane,
) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        client = Cluster.from_kubeconfig(control_plane.kubeconfig)
        assert client.get(paths.VERSION)
        client.close()
        client.close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_no_secret_is_written_to_a_file(
    control_plane: plane.Plane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    client = Cluster.from_kubeconfig(control_plane.kubeconfig)
    assert client.get(paths.VERSION)
    assert list(tmp_path.iterdir()) == []
    client.close()


def test_a_client_counts_its_requests(control_plane: plane.Plane) -> None:
    client = Cluster.from_kubeconfig(control_plane.kubeconfig)
    client.get(paths.VERSION)
    assert client.find(paths.node("nowhere")) is None
    assert client.requests == 2
    client.close()


def test_an_object_of_another_uid_is_left_alone(cluster: Cluster) -> None:
    cluster.delete(paths.node("lab-node-0"), uid="00000000-0000-0000-0000-000000000000")
    assert cluster.find(paths.node("lab-node-0"))
    cluster.delete(paths.node("nowhere"), uid="0")


def test_the_servers_own_words_are_kept(cluster: Cluster) -> None:
    with pytest.raises(ClusterError) as raised:
        cluster.create(paths.NODES, {"metadata": {"name": "Not_A_Name"}})
    assert raised.value.status == 422
    assert raised.value.reason == "Invalid"
    assert raised.value.message.startswith("the API server refused to create nodes (422): ")
    assert "Not_A_Name" in raised.value.message


def test_a_server_that_says_nothing_is_given_up_in_time(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        choice = Choice(
            "a",
            ClusterEntry(f"https://127.0.0.1:{silent.getsockname()[1]}"),
            User(token="none"),  # noqa: S106
        )
        client = Cluster(credentials.of(choice), request_timeout=0.3, patience=0.8)
        begin = time.monotonic()
        with contextlib.closing(client), pytest.raises(ClusterError, match=r"nothing within 0\.\d"):
            client.get(paths.VERSION)
        assert 0.3 <= time.monotonic() - begin < 1.2


def test_nobody_but_us_warns_of_a_server_that_is_not_checked(
    control_plane: plane.Plane, tmp_path: Path
) -> None:
    config = yaml.safe_load(control_plane.kubeconfig.read_text())
    del config["clusters"][0]["cluster"]["certificate-authority-data"]
    config["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    path = tmp_path / "config"
    path.write_text(yaml.safe_dump(config))
    gpuwl = program("gpuwl", KUBECONFIG=str(path), GPUWL_ROOT=str(tmp_path / "root"))
    for quiet in ([], ["-q"]):
        done = gpuwl("step", "1", *quiet)
        assert done.returncode == 0
        warnings = [line for line in done.stderr.splitlines() if "warn" in line.lower()]
        assert warnings == [f"warning: {text('lab.insecure')}"]


@pytest.mark.parametrize("pause", ["²", "-1", "soon", "", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_pause_that_cannot_be_read_is_none(pause: str) -> None:
    passing = _refused(Call("get", "GET", paths.NODES), 503, b"", pause)
    assert isinstance(passing, _PassingError)
    assert passing.retry_after == RETRY_PAUSE
