"""One spoilt request in a run, for every request and every kind of fault.

Each run either ends with the right bytes, or fails with a message and a code that says why. No file
is ever half-written or holds a value that the cluster did not return, and the run after it succeeds.

How long the client pauses before it asks again is no matter here, so all but one kind get by with
short pauses; that a server's Retry-After is heeded is tested by itself.
"""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import undo_lab
from tests.faults import proxy as faults
from tests.faults.proxy import Proxy

from gpuwl.cli import entry
from gpuwl.controlplane.plane import Plane
from gpuwl.k8s.client import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

TOO_MANY = faults.status(429, "TooManyRequests", **{"Retry-After": "1"})
SPOIL: dict[str, Callable[[Proxy, int], None]] = {
    "refused": lambda proxy, at: proxy.refuse(at),
    "dropped before": lambda proxy, at: proxy.spoil(at, faults.drop_before),
    "dropped after": lambda proxy, at: proxy.spoil(at, faults.drop_after),
    "delayed": lambda proxy, at: proxy.spoil(at, faults.delay),
    "429": lambda proxy, at: proxy.spoil(at, TOO_MANY),
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
def command(proxy: Proxy, tmp_path: Path) -> list[str]:
    """The words of a run through the proxy."""
    kubeconfig = proxy.write_kubeconfig(tmp_path / "kubeconfig")
    return ["run", "--all", "--kubeconfig", str(kubeconfig), "--root", str(tmp_path / "root")]


@pytest.fixture
def run(command: list[str]) -> Callable[..., int]:
    """Return a function that runs the lab through the proxy, in this process, and its exit code."""
    return lambda *more: entry.call([*command, *more])


@pytest.fixture
def right(
    proxy: Proxy, run: Callable[..., int], cluster: Cluster, tmp_path: Path
) -> dict[str, bytes]:
    """The bytes of an untouched run; the cluster is bare again afterwards."""
    assert run() == 0
    found = contents(tmp_path / "root")
    undo_lab(cluster)
    return found


ENDS = {"409": {0, 3}, "delayed": {0, 3}}
"""With which exit codes a run may end; behind every other fault a repeated request succeeds."""
SAME_PATH = {"500"}
"""What a run meets as it meets a 503."""


@pytest.mark.parametrize("kind", sorted(set(SPOIL) - SAME_PATH))
def test_every_request_spoilt_once(
    kind: str,
    proxy: Proxy,
    run: Callable[..., int],
    right: dict[str, bytes],
    cluster: Cluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    record_property: Callable[[str, object], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if kind != "refused":  # nobody listens for a moment that a short pause does not outlast
        monkeypatch.setattr("gpuwl.k8s.client.RETRY_PAUSE", 0.02)
        monkeypatch.setattr("gpuwl.k8s.client.LONGEST_RETRY_AFTER", 0.02)
    limits = ("--timeout", "0.5") if kind == "delayed" else ()
    ended: dict[int, int] = {}
    at = 0
    while True:
        at += 1
        undo_lab(cluster)
        clear(tmp_path / "root")
        SPOIL[kind](proxy, at)
        capsys.readouterr()
        code = run(*limits)
        errors = capsys.readouterr().err
        if proxy.count < at:
            break
        assert code in ENDS.get(kind, {0}), (kind, at, errors)
        ended[code] = ended.get(code, 0) + 1
        check_files(tmp_path / "root", right, whole=code == 0)
        if code:
            assert "error: " in errors
            proxy.spoil(0)
            assert run() == 0, (kind, at, capsys.readouterr().err)
            check_files(tmp_path / "root", right, whole=True)
    assert at > 20, "the run hardly sent a request"
    record_property("ended", str(ended))
    with capsys.disabled():
        print(f"  {kind}: {at - 1} requests spoilt, exit codes {ended}", file=sys.stderr)


def test_a_server_that_names_a_pause_is_given_it(proxy: Proxy, run: Callable[..., int]) -> None:
    proxy.spoil(1, TOO_MANY)
    began = time.monotonic()
    assert run() == 0
    assert time.monotonic() - began >= 1


def test_killed_at_every_request(
    proxy: Proxy,
    command: list[str],
    run: Callable[..., int],
    right: dict[str, bytes],
    cluster: Cluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # each run is a process of its own, forked from one that has imported what a run needs
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["__main__", "tests.faults.test_faults", "gpuwl.cli.running"])
    at = 0
    while True:
        at += 1
        undo_lab(cluster)
        clear(tmp_path / "root")
        process = processes.Process(target=run_into, args=(command, tmp_path / "said"))
        proxy.spoil(at, faults.drop_after, before=process.kill)
        process.start()
        process.join(60)
        if proxy.count < at:
            assert process.exitcode == 0, (at, (tmp_path / "said").read_text())
            break
        assert process.exitcode == -9
        check_files(tmp_path / "root", right, whole=False)
        proxy.spoil(0)
        assert run() == 0, (at, capsys.readouterr().err)
        check_files(tmp_path / "root", right, whole=True)
        assert not [p for p in (tmp_path / "root").rglob(".*") if p.is_file()]
    assert at > 20
    with capsys.disabled():
        print(f"  killed: {at - 1} times", file=sys.stderr)


def run_into(command: list[str], file: Path) -> None:
    """Run a command as the whole of this process, which writes into a file."""
    said = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(said, 1)
    os.dup2(said, 2)
    sys.exit(entry.call(command))


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
