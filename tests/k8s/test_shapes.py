"""Kubeconfigs of every shape: gpuwl succeeds where kubectl does, and shows a server the same."""

import base64
import contextlib
import json
import os
import socket
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import program
from tests.k8s import shapes, witness
from tests.k8s.shapes import Shape, World
from tests.k8s.witness import Identities, Seen

from gpuwl.errors import ClusterError, SetupError
from gpuwl.k8s import client
from gpuwl.k8s.client import ReadOnlyCluster

WRONG = ("null", "none", "7")
"""Values that take different paths; more of them were tried once, with the same end."""
SWEEP = {name: make for name, make in shapes.SWEEP.items() if name.split("=")[1] in WRONG}
ALL = {**shapes.SHAPES, **SWEEP}


@dataclass
class Place:
    """A world of its own, so that two shapes may be tried at once."""

    world: World
    seen: Seen
    folder: Path


@contextlib.contextmanager
def place(folder: Path, identities: Identities) -> Iterator[Place]:
    seen = Seen()
    with contextlib.ExitStack() as stack:
        contexts = []
        for name, of in (("server", seen), ("proxy", Seen())):
            (folder / name).mkdir(parents=True)
            contexts.append(witness.server_context(identities, folder / name, of))
        port = stack.enter_context(witness.serving(seen, contexts[0]))
        plain = stack.enter_context(witness.serving(seen, None))
        proxy = stack.enter_context(witness.proxying(seen))
        tls_proxy = stack.enter_context(witness.proxying(seen, contexts[1]))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            closed = free.getsockname()[1]
        world = World(working(identities, port), plain, proxy, tls_proxy, closed)
        yield Place(world, seen, folder)


def working(identities: Identities, port: int) -> dict[str, Any]:
    """Return a kubeconfig with everything in itself."""
    data = {
        "certificate-authority-data": identities.authority,
        "client-certificate-data": identities.client.certificate,
        "client-key-data": identities.client.key,
    }
    text = {name: base64.b64encode(pem).decode() for name, pem in data.items()}
    authority = {"certificate-authority-data": text.pop("certificate-authority-data")}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "clusters": [
            {"name": "c", "cluster": {"server": f"https://127.0.0.1:{port}", **authority}}
        ],
        "users": [{"name": "u", "user": text}],
        "contexts": [{"name": "lab", "context": {"cluster": "c", "user": "u"}}],
    }


@dataclass
class Tried:
    """How it went, and what server and proxies saw of it."""

    done: bool
    words: str
    shown: str
    names: list[str]
    tunnels: set[str]


def tried(at: Place, *, done: bool, words: str) -> Tried:
    shown = json.dumps([_readable(request) for request in at.seen.requests[:1]], sort_keys=True)
    names = [str(name).lower() for name in at.seen.names[:1]]
    found = Tried(done, words, shown, names, set(at.seen.tunnels))
    for kept in (at.seen.requests, at.seen.names, at.seen.tunnels):
        kept.clear()
    return found


def _readable(request: dict[str, list[str]]) -> dict[str, Any]:
    """Return a request with what a plugin was told as an object, whose order says nothing."""
    told = [value.removeprefix("Bearer ") for value in request.get("authorization", [])]
    if told and told[0].startswith(base64.b64encode(b'{"kind"').decode()[:8]):
        return {**request, "authorization": json.loads(base64.b64decode(told[0]))}
    return request


def kubectl_on(at: Place, name: str) -> tuple[Shape, Tried]:
    shape = Shape(at.world, at.folder / "shapes" / name)
    ALL[name](shape)
    paths = shape.written()
    for path in paths.split(":"):
        with contextlib.suppress(OSError):
            os.utime(path, (1, 1))  # nobody is still writing it
    go = {"GOMAXPROCS": "1", "GOGC": "off"}  # a third less processor time
    env = {"KUBECONFIG": paths, "HOME": str(at.folder), **go, **shape.env}
    done = program("kubectl", **env)(
        "get", "--raw", "/version", "--request-timeout=5s", stdin=-3, errors="replace"
    )
    return shape, tried(at, done=done.returncode == 0, words=done.stderr)


def gpuwl_on(at: Place, shape: Shape) -> Tried:
    """Do the same in this process; any error but one for people is one of ours."""
    try:
        cluster = ReadOnlyCluster.from_kubeconfig(shape.paths, request_timeout=5, patience=5)
        with contextlib.closing(cluster):
            cluster.raw("/version")
    except (SetupError, ClusterError) as error:
        words = " ".join([error.message, *error.details, error.hint or ""])
        return tried(at, done=False, words=words)
    return tried(at, done=True, words="")


def unlike(ours: Tried, theirs: Tried) -> str:
    """Say what differs, empty for nothing."""
    if ours.done != theirs.done:
        return f"kubectl {theirs.done} ({theirs.words[-200:]}), gpuwl {ours.done} ({ours.words})"
    if ours.done and (ours.shown, ours.names) != (theirs.shown, theirs.names):
        return f"kubectl {theirs.shown} {theirs.names}, gpuwl {ours.shown} {ours.names}"
    if ours.tunnels != theirs.tunnels:
        return f"kubectl {theirs.tunnels}, gpuwl {ours.tunnels}"
    return ""


NO_PERSON = ("Error", "Exception", "Traceback", "None", "<", "0x", "_ssl", "Errno")
"""What a library says, and no person."""


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


def test_every_shape_ends_as_with_kubectl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    identities = Identities.made()
    monkeypatch.setattr(client, "RETRY_PAUSE", 0.0)
    halves = [list(ALL)[::2], list(ALL)[1::2]]
    differing: dict[str, str] = {}
    with (
        place(tmp_path / "0", identities) as first,
        place(tmp_path / "1", identities) as second,
        ThreadPoolExecutor(2) as pool,
    ):
        places = (first, second)
        tasks = [
            pool.submit(lambda at, names: [kubectl_on(at, name) for name in names], at, names)
            for at, names in zip(places, halves, strict=True)
        ]
        for at, names, task in zip(places, halves, tasks, strict=True):
            for name, (shape, theirs) in zip(names, task.result(), strict=True):
                with monkeypatch.context() as patch, warnings.catch_warnings():
                    patch.setenv("HOME", str(at.folder))
                    for variable, value in shape.env.items():
                        patch.setenv(variable, value)
                    ours = gpuwl_on(at, shape)
                if found := unlike(ours, theirs):
                    differing[name] = found
                assert shapes.TOKEN not in ours.words, name
                plain = ours.words.replace(str(shape.paths), "").replace(str(at.folder), "")
                assert not any(word in plain for word in NO_PERSON), (name, plain)
    assert differing == {}
    assert shapes.TOKEN not in "".join(capfd.readouterr())
