"""Canaries: what a kubeconfig keeps secret is on no stream and in no file of gpuwl's."""

import base64
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.conftest import program
from tests.k8s import shapes
from tests.k8s.shapes import Shape
from tests.k8s.test_shapes import place
from tests.k8s.witness import Identities

from gpuwl.cli import bugreport
from gpuwl.controlplane import plane
from gpuwl.system import secrets

GPUWL = Path(sys.executable).with_name("gpuwl")

VERBS = (
    ["run", "--all", "-v"],
    ["run", "--all", "--dry-run"],
    ["step", "1", "--output", "json"],
    ["verify", "-v"],
    ["verify", "--output", "junit"],
    ["inventory"],
    ["reset", "-v"],
)
"""Every command that reads a kubeconfig."""
LEAKY = (
    "plain",
    "broken-with-key",
    "same-user-twice",
    "other-user-key-broken",
    "key-garbled",
    "key-not-base64",
    "key-raw-pem",
    "token",
    "token-newline",
    "token-object",
    "token-file-two-lines",
    "token-and-password",
    "basic",
    "exec-no-json",
    "exec-token-newline",
    "exec-and-certificate",
    "oidc-unreachable",
    "oidc-no-jwt",
    "provider-gcp",
    "provider-unknown",
    "user-in-address",
    "proxy-login",
    "proxy-login-closed",
    "proxy-socks-login",
    "env-proxy-login",
    "impersonate-newline",
)
"""Shapes that hold a secret where something goes wrong, each another way to say it."""


def canaries(identities: Identities) -> list[str]:
    """Return the secrets, and parts of keys in each form that they have in a file."""
    key = identities.client.key.decode()
    body = "".join(key.splitlines()[1:-1])
    coded = base64.b64encode(identities.client.key).decode()
    return [shapes.TOKEN, body[10:50], coded[40:80], coded[100:140]]


def found(text: str, secret: list[str]) -> list[str]:
    return [one for one in secret if one in text]


@pytest.fixture(scope="module")
def identities() -> Identities:
    return Identities.made()


@pytest.mark.parametrize("name", LEAKY)
def test_no_command_shows_or_keeps_a_secret(
    name: str, tmp_path: Path, identities: Identities
) -> None:
    """One command for each shape, all commands in turn: the reader is the same for all."""
    verb = VERBS[LEAKY.index(name) % len(VERBS)]
    root = [] if verb == ["inventory"] else ["--root", str(tmp_path / "root")]
    folders = {part: tmp_path / part for part in ("home", "root", "state", "cache", "tmp")}
    for folder in folders.values():
        folder.mkdir()
    with place(tmp_path / "place", identities) as at:
        shape = Shape(at.world, tmp_path / "shape")
        shapes.SHAPES[name](shape)
        done = program(
            "gpuwl",
            KUBECONFIG=shape.written(),
            HOME=str(folders["home"]),
            XDG_STATE_HOME=str(folders["state"]),
            XDG_CACHE_HOME=str(folders["cache"]),
            TMPDIR=str(folders["tmp"]),
            **shape.env,
        )(*verb, *root, "--timeout", "2")
    assert done.returncode in {0, 1, 3}, done.stderr
    secret = canaries(identities)
    assert not found(done.stdout + done.stderr, secret)
    for folder in folders.values():
        for path in folder.rglob("*"):
            assert path.is_dir() or not found(path.read_text(errors="replace"), secret), path


@pytest.mark.cluster
def test_no_key_is_written_even_for_a_moment(control_plane: plane.Plane, tmp_path: Path) -> None:
    """strace is the witness of every byte that a whole run writes: a key goes to memory alone."""
    strace = shutil.which("strace")
    if not strace:
        pytest.skip("no strace here")
    config = yaml.safe_load(control_plane.kubeconfig.read_text())
    coded = config["users"][0]["user"]["client-key-data"]
    pem = base64.b64decode(coded).decode().splitlines()[1][:40]
    trace, calls = tmp_path / "trace", "trace=write,pwrite64,writev,sendto"
    words = [strace, "-f", "-y", "-s", "100000", "-e", calls, "-o", str(trace)]
    environment = {**os.environ, "KUBECONFIG": str(control_plane.kubeconfig)}
    run = [str(GPUWL), "run", "--all", "--root", str(tmp_path / "root")]
    done = subprocess.run(
        [*words, *run], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = trace.read_text(errors="replace").splitlines()
    writes = [line for line in lines if pem in line or coded[40:80] in line]
    assert writes
    assert all("memfd:" in line for line in writes)


def test_the_bug_log_hides_what_was_read_and_what_looks_like_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    pair = Identities.made().client
    secrets.know(shapes.TOKEN, "two\nlines-of-it", pair.key)
    pem = pair.key.decode()
    forms = {
        "known": f"Bearer {shapes.TOKEN}",
        "lines": repr("two\nlines-of-it"),
        "line": "lines-of-it",
        "key": pem,
        "escaped": repr(pem),
        "coded": base64.b64encode(pair.key).decode(),
        "address": f"https://me:{'x' * 9}@mirror.invalid/a",
        "jwt": "eyJhbGciOiJub25lIn0.eyJleHAiOjF9.c2ln",
        "basic": "Authorization: Basic bWU6c2VjcmV0",
    }
    told = bugreport.write(ValueError(str(forms)))
    (log,) = tmp_path.rglob("*.log")
    body = "".join(pem.splitlines()[1:-1])
    hidden = [shapes.TOKEN, "lines-of-it", body[10:50], body[70:110], forms["coded"][40:80]]
    hidden += ["x" * 9, "eyJleHAiOjF9", "bWU6c2VjcmV0"]
    for text in (log.read_text(), told.message):
        assert found(text, hidden) == []
        assert "ValueError" in text
        assert "mirror.invalid" in text
