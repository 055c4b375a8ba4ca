"""One spoilt request in a reset, for every request: lost after it acted, refused for now, a conflict.

A reset that ends well has taken everything back; one that fails says why, and the next one does the
rest. What it says it deleted is gone.
"""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import finish_namespace, undo_lab
from tests.faults.proxy import Proxy
from tests.faults.test_faults import SPOIL
from tests.lab.test_reset import seen

from gpuwl.cli import entry
from gpuwl.controlplane.plane import Plane
from gpuwl.k8s import objects
from gpuwl.k8s.client import Cluster
from gpuwl.lab import paths

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

LAST_STEP = 4
"""Namespace, labels, resources and a Pod: one of each kind of thing to take back."""


@pytest.fixture
def namespace_controller(control_plane: Plane) -> Iterator[None]:
    """Finish the deletion of the namespace, as kube-controller-manager does elsewhere.

    Behind the proxy the control plane is a cluster like any other, which gpuwl leaves that to.
    """
    stop = threading.Event()
    client = Cluster.from_kubeconfig(control_plane.kubeconfig)
    thread = threading.Thread(target=_finish_namespaces, args=(client, stop))
    thread.start()
    yield
    stop.set()
    thread.join()
    client.close()


def _finish_namespaces(client: Cluster, stop: threading.Event) -> None:
    while not stop.wait(0.02):
        found = client.find(paths.THE_NAMESPACE)
        if found and objects.is_terminating(found):
            finish_namespace(client, found)


@pytest.fixture
def call(
    control_plane: Plane, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Proxy, Callable[..., int]]]:
    """A proxy, and a function that runs a command through it, in this process."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    proxy = Proxy(control_plane.kubeconfig)
    kubeconfig = proxy.write_kubeconfig(tmp_path / "kubeconfig")
    options = ["--kubeconfig", str(kubeconfig), "--root", str(tmp_path / "root")]
    yield proxy, lambda *words: entry.call([*words, *options])
    proxy.close()


@pytest.mark.usefixtures("namespace_controller")
@pytest.mark.parametrize("kind", ["dropped after", "409"])
def test_every_request_of_a_reset_spoilt_once(
    kind: str,
    call: tuple[Proxy, Callable[..., int]],
    cluster: Cluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    proxy, gpuwl = call
    before = seen(cluster)
    ended: dict[int, int] = {}
    at = 0
    while True:
        at += 1
        assert gpuwl("run", "--to", str(LAST_STEP)) == 0
        SPOIL[kind](proxy, at)
        capsys.readouterr()
        code = gpuwl("reset")
        said = capsys.readouterr()
        if proxy.count < at:
            break
        ended[code] = ended.get(code, 0) + 1
        proxy.spoil(0)
        assert code in ({0, 3} if kind == "409" else {0}), (at, said)
        assert ("error: " in said.err) == (code != 0)
        if code or "left as it is: " in said.err:  # what could not be looked through is kept
            assert gpuwl("reset") == 0, (at, capsys.readouterr())
        assert seen(cluster) == before, (at, said)
        assert not [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert at > 10, "the reset hardly sent a request"
    with capsys.disabled():
        print(f"  reset, {kind}: {at - 1} requests spoilt, exit codes {ended}")
    undo_lab(cluster)
