"""What is taken from a kubeconfig: the context and the identity that kubectl would take."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives import serialization

from gpuwl.controlplane import credentials
from gpuwl.errors import SetupError
from gpuwl.k8s import kubeconfig


@pytest.fixture
def made(tmp_path: Path) -> Any:
    """Write a kubeconfig with one context of that name; return its path."""

    def write(name: str, *, current: str | None = None, **user: Any) -> str:
        path = tmp_path / name
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": {"server": f"https://{name}.invalid"}}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        }
        if current is not None:
            document["current-context"] = current
        path.write_text(yaml.safe_dump(document))
        return str(path)

    return write


def loaded(path: str, context: str | None = None) -> kubeconfig.Credentials:
    found = kubeconfig.load(path, context)
    found.close()
    return found


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
    assert found.configuration.host == f"https://{taken}.invalid"


def test_a_context_that_is_asked_for_wins(made: Any) -> None:
    found = loaded(f"{made('a', current='a')}:{made('b', current='b')}", "b")
    assert (found.context, found.configuration.host) == ("b", "https://b.invalid")


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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no-such-plugin"], "No such file or directory: 'no-such-plugin'"),
        (["sh", "-c", "echo please log in >&2; exit 1"], "process returned 1. please log in"),
        (["echo", "{}"], "missing key"),
    ],
)
def test_a_plugin_that_fetches_no_credentials_is_told_once(
    words: list[str], said: str, made: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": words[0],
        "args": words[1:],
        "interactiveMode": "Never",
    }
    with pytest.raises(SetupError) as raised:
        loaded(made("a", current="a", exec=plugin))
    assert "the credentials of its user cannot be had: " in raised.value.message
    assert said in raised.value.message
    assert capfd.readouterr().err == ""


def test_a_plugin_s_token_is_taken(made: Any) -> None:
    answer = (
        '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
        ' "status": {"token": "abc"}}'
    )
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "echo",
        "args": [answer],
        "interactiveMode": "Never",
    }
    found = loaded(made("a", current="a", exec=plugin))
    assert found.configuration.api_key == {"BearerToken": "Bearer abc"}


def test_another_identity_is_acted_as(made: Any) -> None:
    user: dict[str, Any] = {
        "as": "alice",
        "as-uid": "7",
        "as-groups": ["dev", "ops"],
        "as-user-extra": {"example.org/scopes": ["x", "y"]},
    }
    assert loaded(made("a", current="a", **user)).impersonation == [
        ("Impersonate-User", "alice"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-example.org%2Fscopes", "x"),
        ("Impersonate-Extra-example.org%2Fscopes", "y"),
    ]


def test_nobody_else_is_acted_as_where_none_is_named(made: Any) -> None:
    groups = {"as-groups": ["dev"]}  # kubectl passes them over as well
    assert loaded(made("a", current="a", **groups)).impersonation == []


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
        (PAIR.certificate, b""),
    ],
    ids=["no-key", "no-certificate", "key-of-another", "encrypted", "empty"],
)
def test_an_identity_that_cannot_be_used(
    made: Any, tmp_path: Path, certificate: bytes, key: bytes
) -> None:
    (tmp_path / "certificate").write_bytes(certificate)
    (tmp_path / "key").write_bytes(key)
    files = {"client-certificate": "certificate", "client-key": "key"}
    with pytest.raises(SetupError, match="client certificate and key of its user cannot be used"):
        loaded(made("a", current="a", **{name: str(tmp_path / f) for name, f in files.items()}))


def test_an_authority_that_is_no_certificate(made: Any) -> None:
    path = Path(made("a", current="a"))
    document = yaml.safe_load(path.read_text())
    document["clusters"][0]["cluster"]["certificate-authority-data"] = "bm8gY2VydGlmaWNhdGU="
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(SetupError, match="certificate authority of its cluster cannot be used"):
        loaded(str(path))
