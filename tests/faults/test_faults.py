"""One spoilt request in a run, for every request and every kind of fault.

Each run either ends with the right bytes, or fails with a message and a code that says why. No file
is ever half-written or holds a value that the cluster did not return, and the run after it succeeds.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import undo_lab
from tests.faults import proxy as faults
from tests.faults.proxy import Proxy

from gpuwl.cli import entry
from gpuwl.cluster import Cluster
from gpuwl.controlplane.plane import Plane

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

SPOIL: dict[str, Callable[[Proxy, int], None]] = {
    "refused": lambda proxy, at: proxy.refuse(at),
    "dropped before": lambda proxy, at: proxy.spoil(at, faults.drop_before),
    "dropped after": lambda proxy, at: proxy.spoil(at, faults.drop_after),
    "delayed": lambda proxy, at: proxy.spoil(at, faults.delay),
    "429": lambda proxy, at: proxy.spoil(
        at, faults.status(429, "TooManyRequests", **{"Retry-After": "1"})
    ),
    "500": lambda proxy, at: proxy.spoil(at, faults.status(500, "InternalError")),
    "503": lambda proxy, at: proxy.spoil(at, faults.status(503, "ServiceUnavailable")),
    "409": lambda proxy, at: proxy.spoil(at, faults.status(409, "Conflict")),
    "cut off": lambda proxy, at: proxy.spoil(at, faults.cut_off),
}
SERVER_OWN = {"out/nodes.json", "out/run.json"}
"""Files that hold the server's own metadata, or times."""


@pytest.fixture
def proxy(control_plane: Plane, cluster: Cluster, tmp_path: Path) -> Iterator[Proxy]:
    """A proxy in front of a control plane whose lab is untouched."""
    running = Proxy(control_plane.kubeconfig)
    yield running
    running.close()


@pytest.fixture
def run(proxy: Proxy, tmp_path: Path) -> Callable[[], int]:
    """Return a function that runs the lab through the proxy, in this process, and its exit code."""
    kubeconfig = proxy.write_kubeconfig(tmp_path / "kubeconfig")
    options = ["--kubeconfig", str(kubeconfig), "--root", str(tmp_path / "root"), "--timeout", "1"]
    return lambda: entry.call(["run", "--all", *options])


@pytest.fixture
def right(
    proxy: Proxy, run: Callable[[], int], cluster: Cluster, tmp_path: Path
) -> dict[str, bytes]:
    """The bytes of an untouched run; the cluster is bare again afterwards."""
    assert run() == 0
    found = contents(tmp_path / "root")
    undo_lab(cluster)
    return found


@pytest.mark.parametrize("kind", SPOIL)
def test_every_request_spoilt_once(
    kind: str,
    proxy: Proxy,
    run: Callable[[], int],
    right: dict[str, bytes],
    cluster: Cluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    record_property: Callable[[str, object], None],
) -> None:
    ended: dict[int, int] = {}
    at = 0
    while True:
        at += 1
        undo_lab(cluster)
        clear(tmp_path / "root")
        SPOIL[kind](proxy, at)
        capsys.readouterr()
        code = run()
        errors = capsys.readouterr().err
        if proxy.count < at:
            break
        ended[code] = ended.get(code, 0) + 1
        check_files(tmp_path / "root", right, whole=code == 0)
        if code:
            assert code in {3, 4}, (kind, at, errors)
            assert "error: " in errors
            proxy.spoil(0)
            assert run() == 0, (kind, at, capsys.readouterr().err)
            check_files(tmp_path / "root", right, whole=True)
    assert at > 20, "the run hardly sent a request"
    record_property("ended", str(ended))
    with capsys.disabled():
        print(f"  {kind}: {at - 1} requests spoilt, exit codes {ended}", file=sys.stderr)


def test_killed_at_every_request(
    proxy: Proxy,
    run: Callable[[], int],
    right: dict[str, bytes],
    cluster: Cluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    command = [sys.executable, "-m", "gpuwl", "run", "--all", "--kubeconfig", str(kubeconfig)]
    command += ["--root", str(tmp_path / "root"), "--timeout", "5"]
    at = 0
    while True:
        at += 1
        undo_lab(cluster)
        clear(tmp_path / "root")
        victim: list[subprocess.Popen[bytes]] = []
        proxy.spoil(at, faults.drop_after, before=lambda v=victim: v[0].kill())  # type: ignore[misc]
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            victim.append(process)
            code = process.wait(60)
        if proxy.count < at:
            assert code == 0
            break
        assert code == -9
        check_files(tmp_path / "root", right, whole=False)
        proxy.spoil(0)
        assert run() == 0, (at, capsys.readouterr().err)
        check_files(tmp_path / "root", right, whole=True)
        assert not [p for p in (tmp_path / "root").rglob(".*") if p.is_file()]
    assert at > 20


def contents(root: Path) -> dict[str, bytes]:
    """Return the bytes of every file below a root."""
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def clear(root: Path) -> None:
    """Remove every file below a root."""
    for path in root.rglob("*"):
        if path.is_file():
            path.unlink()


def check_files(root: Path, right: dict[str, bytes], *, whole: bool) -> None:
    """Assert that no file holds anything but the right bytes; with `whole` that all are there."""
    found = {name: data for name, data in contents(root).items() if name in right}
    if whole:
        assert set(found) == set(right)
    for name, data in found.items():
        if name not in SERVER_OWN:
            assert data == right[name], name
