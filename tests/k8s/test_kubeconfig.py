"""What is taken from a kubeconfig: the context and the identity that kubectl would take."""

import base64
import json
import os
import ssl
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives import serialization

from gpuwl.controlplane import credentials
from gpuwl.errors import SetupError
from gpuwl.k8s import kubeconfig
from gpuwl.system import waiting


@pytest.fixture
def made(tmp_path: Path) -> Any:
    """Write a kubeconfig with one context of that name; return its path."""

    def write(name: str, *, current: str | None = None, **user: Any) -> str:
        path = tmp_path / name
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": f"https://{name}.invalid"}}],
            "users": [{"name": name, "user": user or {"token": "none"}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        }
        if current is not None:
            document["current-context"] = current
        path.write_text(yaml.safe_dump(document))
        return str(path)

    return write


def loaded(path: str, context: str | None = None) -> kubeconfig.Credentials:
    return kubeconfig.load(path, context)


@pytest.mark.parametrize(
    ("currents", "taken"),
    [
        (("a", "b"), "a"),
        (("b", "a"), "b"),
        ((None, "b"), "b"),
        (("", "b"), "b"),
        (("a", None), "a"),
    ],
    ids=str,
)
def test_of_several_files_the_first_current_context_wins(
    currents: tuple[str | None, str | None], taken: str, made: Any
) -> None:
    paths = [made(name, current=c) for name, c in zip("ab", currents, strict=True)]
    found = loaded(":".join(paths))
    assert found.context == taken
    assert str(found.server) == f"https://{taken}.invalid"


def test_a_context_that_is_asked_for_wins(made: Any) -> None:
    found = loaded(f"{made('a', current='a')}:{made('b', current='b')}", "b")
    assert (found.context, str(found.server)) == ("b", "https://b.invalid")


def test_an_unknown_context_is_answered_with_those_there_are(made: Any) -> None:
    path = f"{made('a', current='a')}:{made('b')}"
    with pytest.raises(SetupError) as raised:
        loaded(path, "c")
    assert raised.value.message == (
        f"cannot use the kubeconfig {path}: it has no context c; choose one with --context: a, b"
    )


def test_without_a_current_context_the_choice_is_named(made: Any) -> None:
    with pytest.raises(SetupError, match=r"names no current context; choose one .*: a$"):
        loaded(made("a"))


PLUGIN = {"apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no-such-plugin"], "plugin no-such-plugin is not installed"),
        (["sh", "-c", "echo please log in >&2; exit 1"], "it ended with exit code 1"),
        (["sh", "-c", "kill -9 $$"], "it ended with signal 9"),
        (["echo", "{}"], "its answer is not of version v1"),
    ],
)
def test_a_plugin_that_fetches_no_credentials(words: list[str], said: str, made: Any) -> None:
    with pytest.raises(SetupError, match=said):
        loaded(made("a", current="a", exec={**PLUGIN, "command": words[0], "args": words[1:]}))


def test_what_a_plugin_says_reaches_the_terminal(
    made: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    words = {"command": "sh", "args": ["-c", "echo please log in >&2; exit 1"]}
    with pytest.raises(SetupError):
        loaded(made("a", current="a", exec={**PLUGIN, **words}))
    assert capfd.readouterr() == ("", "please log in\n")


def test_the_hint_of_a_missing_plugin_is_shown(made: Any) -> None:
    words = {"command": "no-such-plugin", "installHint": "get it\x1b[1m from us"}
    with pytest.raises(SetupError) as raised:
        loaded(made("a", current="a", exec={**PLUGIN, **words}))
    assert raised.value.hint == "get it [1m from us"


@pytest.mark.parametrize(
    ("expiry", "runs"), [("2000-01-01T00:00:00Z", 4), ("2999-01-01T00:00:00Z", 1)]
)
def test_a_plugin_runs_again_when_its_credentials_are_over(
    expiry: str, runs: int, made: Any, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    status = json.dumps({"token": "abc", "expirationTimestamp": expiry})
    answer = f'{{"apiVersion": "{PLUGIN["apiVersion"]}", "status": {status}}}'
    script = f"echo run >> {log}; echo '{answer}'"
    found = loaded(made("a", current="a", exec={**PLUGIN, "command": "sh", "args": ["-c", script]}))
    assert found.headers() == found.headers() == [("Authorization", "Bearer abc")]
    assert len(log.read_text().splitlines()) == runs


def test_a_token_file_is_read_again(made: Any, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one\n")
    found = loaded(made("a", current="a", tokenFile=str(token)))
    assert found.headers() == [("Authorization", "Bearer one")]
    token.write_text("two")
    assert found.headers() == [("Authorization", "Bearer two")]
    token.unlink()
    assert found.headers() == [("Authorization", "Bearer one")]


def test_removed_providers_are_named_as_removed(made: Any) -> None:
    for name, successor in (("gcp", "gke-gcloud-auth-plugin"), ("azure", "kubelogin")):
        with pytest.raises(SetupError, match=f"{name}, which Kubernetes has removed") as raised:
            loaded(made("a", current="a", **{"auth-provider": {"name": name}}))
        assert successor in str(raised.value.hint)


def test_a_file_that_is_being_written_is_waited_for(made: Any, tmp_path: Path) -> None:
    path = Path(made("a", current="a"))
    whole = path.read_bytes()
    path.write_bytes(b"")
    started = threading.Event()

    def write() -> None:
        with path.open("wb") as file:
            started.set()
            for start in range(0, len(whole), 40):
                file.write(whole[start : start + 40])
                file.flush()
                waiting.pause(0.005)

    thread = threading.Thread(target=write)
    thread.start()
    started.wait()
    assert loaded(str(path)).context == "a"
    thread.join()


def test_many_threads_load_at_once(made: Any) -> None:
    data = {
        "client-certificate-data": base64.b64encode(PAIR.certificate).decode(),
        "client-key-data": base64.b64encode(PAIR.key).decode(),
    }
    path = made("a", current="a", **data)
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(loaded, [path] * 64))
    assert {one.context for one in found} == {"a"}


@pytest.mark.parametrize("memory", [True, False])
def test_a_key_is_in_no_file_once_it_is_loaded(
    made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, memory: bool
) -> None:
    """Without memory files, as on macOS, a private file holds it for a moment."""
    seen: list[tuple[str, int]] = []
    show = ssl.SSLContext.load_cert_chain

    def watched(self: ssl.SSLContext, path: str, **more: Any) -> None:
        seen.append((path, Path(path).stat().st_mode & 0o777))
        show(self, path, **more)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", watched)
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    if not memory:
        monkeypatch.delattr(os, "memfd_create")
    data = {
        "client-certificate-data": base64.b64encode(PAIR.certificate).decode(),
        "client-key-data": base64.b64encode(PAIR.key).decode(),
    }
    loaded(made("a", current="a", **data))
    ((path, mode),) = seen
    assert path.startswith("/proc/self/fd/" if memory else str(folder))
    assert memory or mode == 0o600
    assert list(folder.iterdir()) == []


PAIR = credentials.Authority().client("somebody", "some")
OTHER = credentials.Authority().client("somebody", "some")
_PEM_KEY = serialization.load_pem_private_key(PAIR.key, None)
ENCRYPTED = _PEM_KEY.private_bytes(
    serialization.Encoding.PEM,
    serialization.PrivateFormat.PKCS8,
    serialization.BestAvailableEncryption(b"password"),
)


@pytest.mark.parametrize(
    ("certificate", "key"),
    [
        (PAIR.certificate, b"no key"),
        (b"no certificate", PAIR.key),
        (PAIR.certificate, OTHER.key),
        (PAIR.certificate, ENCRYPTED),
    ],
    ids=["no-key", "no-certificate", "key-of-another", "encrypted"],
)
def test_an_identity_that_cannot_be_used(
    made: Any, tmp_path: Path, certificate: bytes, key: bytes
) -> None:
    (tmp_path / "certificate").write_bytes(certificate)
    (tmp_path / "key").write_bytes(key)
    files = {"client-certificate": "certificate", "client-key": "key"}
    with pytest.raises(
        SetupError, match=r"client (certificate|key|certificate and key) of its user cannot be used"
    ):
        loaded(made("a", current="a", **{name: str(tmp_path / f) for name, f in files.items()}))


def test_an_authority_that_is_no_certificate(made: Any) -> None:
    path = Path(made("a", current="a"))
    document = yaml.safe_load(path.read_text())
    document["clusters"][0]["cluster"]["certificate-authority-data"] = "bm8gY2VydGlmaWNhdGU="
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(
        SetupError, match="certificate authority of its cluster holds no certificate"
    ):
        loaded(str(path))
