"""Which cluster the installed program takes, and what it says of those it cannot use."""

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.conftest import Run

from gpuwl.controlplane import credentials, plane
from gpuwl.k8s.client import Cluster
from gpuwl.lab import local_plane, paths

pytestmark = pytest.mark.cluster

Config = dict[str, Any]


@pytest.fixture
def config(control_plane: plane.Plane) -> Config:
    """The kubeconfig of the session's control plane, to be spoilt."""
    loaded: Config = yaml.safe_load(control_plane.kubeconfig.read_text())
    return loaded


@pytest.fixture
def written(tmp_path: Path) -> Path:
    return tmp_path / "kubeconfig"


def refused(gpuwl: Run, kubeconfig: Path, root: Path, *more: str) -> str:
    """Run the lab with a kubeconfig that must fail; return what was said."""
    done = gpuwl("run", "--all", "--kubeconfig", str(kubeconfig), "--timeout", "2", *more)
    assert done.returncode == 3, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert "\nhint: " in done.stderr
    assert "Traceback" not in done.stderr
    assert not root.exists(), "nothing was written"
    return done.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "has no contexts"),
        ("{ : :", "a mistake in line 1"),
        ("\tkey: value", "a mistake in line 1"),
        ("[1, 2]", "the file is a list"),
        ("just words", "cannot use the kubeconfig"),
        ("contexts: 3", "contexts is a number"),
        ("current-context: a\ncontexts: [{name: a}]\n", "cannot use the kubeconfig"),
        ("current-context: a\ncontexts: [{name: a, context: {cluster: b}}]\n", "cannot use"),
        ("apiVersion: v1\nkind: Config\n", "cannot use the kubeconfig"),
        ("\x00\x01", "cannot use the kubeconfig"),
    ],
    ids=range(10),
)
def test_a_broken_kubeconfig(
    content: str, words: str, gpuwl: Run, written: Path, root: Path
) -> None:
    written.write_text(content)
    said = refused(gpuwl, written, root)
    assert f"cannot use the kubeconfig {written}: " in said
    assert words in said


def test_a_kubeconfig_that_is_not_there(gpuwl: Run, written: Path, root: Path) -> None:
    said = refused(gpuwl, written, root)
    assert f"error: there is no kubeconfig at {written} (from --kubeconfig)\n" in said
    assert "--local" in said


def test_a_kubeconfig_that_is_a_folder(gpuwl: Run, tmp_path: Path, root: Path) -> None:
    said = refused(gpuwl, tmp_path, root)
    assert f"cannot use the kubeconfig {tmp_path}: Is a directory\n" in said


def test_an_unknown_context(gpuwl: Run, control_plane: plane.Plane, root: Path) -> None:
    said = refused(gpuwl, control_plane.kubeconfig, root, "--context", "nowhere")
    assert "it has no context nowhere; choose one with --context: gpuwl-tests" in said


def test_a_server_that_is_not_there(gpuwl: Run, config: Config, written: Path, root: Path) -> None:
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    written.write_text(yaml.safe_dump(config))
    said = refused(gpuwl, written, root)
    assert "no answer from https://127.0.0.1:1 to get version" in said
    assert "Connection refused" in said
    assert "--local" in said


def test_a_name_that_does_not_resolve(
    gpuwl: Run, config: Config, written: Path, root: Path
) -> None:
    config["clusters"][0]["cluster"]["server"] = "https://cluster.invalid:6443"
    written.write_text(yaml.safe_dump(config))
    assert "no answer from https://cluster.invalid:6443" in refused(gpuwl, written, root)


def test_a_server_that_another_authority_vouches_for(
    gpuwl: Run, config: Config, written: Path, root: Path, other_authority: bytes
) -> None:
    data = base64.b64encode(other_authority).decode()
    config["clusters"][0]["cluster"]["certificate-authority-data"] = data
    written.write_text(yaml.safe_dump(config))
    said = refused(gpuwl, written, root)
    assert "its certificate is not trusted" in said
    assert "_ssl.c" not in said


@pytest.fixture(scope="session")
def other_authority() -> bytes:
    """A certificate authority of somebody else."""
    return credentials.Authority().certificate


def test_credentials_that_the_server_does_not_know(
    gpuwl: Run, config: Config, written: Path, root: Path
) -> None:
    config["users"][0]["user"] = {"token": "nobody"}
    written.write_text(yaml.safe_dump(config))
    said = refused(gpuwl, written, root)
    assert "(401)" in said
    assert "credentials" in said


@pytest.fixture
def token(cluster: Cluster) -> Iterator[str]:
    """The token of a service account that has no rights but those of every identity."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    made = cluster.create(accounts, {"metadata": {"name": "no-rights"}})
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    request = cluster.create(f"{accounts}/no-rights/token", body)
    yield str(request["status"]["token"])
    cluster.delete(f"{accounts}/no-rights", uid=made["metadata"]["uid"])


def test_a_right_that_is_missing(
    gpuwl: Run, config: Config, written: Path, root: Path, token: str
) -> None:
    config["users"][0]["user"] = {"token": token}
    written.write_text(yaml.safe_dump(config))
    done = gpuwl("run", "--all", "--kubeconfig", str(written))
    assert done.returncode == 3
    assert "error: the API server refused to get " in done.stderr
    assert " (403): " in done.stderr
    assert "hint: ask for the rights that the README lists" in done.stderr
    assert not root.exists()


def test_an_identity_that_the_kubeconfig_acts_as(
    gpuwl: Run, config: Config, written: Path, root: Path
) -> None:
    config["users"][0]["user"]["as"] = "alice"
    written.write_text(yaml.safe_dump(config))
    done = gpuwl("run", "--all", "--kubeconfig", str(written))
    assert done.returncode == 3
    assert 'User "alice" cannot ' in done.stderr
    assert not root.exists()


def test_all_groups_of_an_identity_are_sent(
    gpuwl: Run, config: Config, written: Path, cluster: Cluster
) -> None:
    config["users"][0]["user"].update(
        {"as": "alice", "as-groups": ["first", "system:masters", "last"]}
    )
    written.write_text(yaml.safe_dump(config))
    done = gpuwl("run", "--all", "--kubeconfig", str(written))
    assert done.returncode == 0, done.stderr


class Answer(BaseHTTPRequestHandler):
    """Answers every request with what the test put here."""

    status, body = 200, b""

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def other_server() -> Iterator[HTTPServer]:
    """Something that speaks HTTP and is no API server."""
    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (200, b"<html>hello</html>", "is not JSON"),
        (200, b"[]", "is not an object"),
        (404, b"nothing here", "(404): nothing here"),
        (200, b"", "is not JSON"),
    ],
    ids=["html", "list", "not-found", "empty"],
)
def test_a_server_that_is_no_api_server(
    status: int,
    body: bytes,
    words: str,
    gpuwl: Run,
    config: Config,
    written: Path,
    root: Path,
    other_server: HTTPServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Answer, "status", status)
    monkeypatch.setattr(Answer, "body", body)
    address = f"http://127.0.0.1:{other_server.server_port}"
    config["clusters"][0]["cluster"] = {"server": address}
    written.write_text(yaml.safe_dump(config))
    assert words in refused(gpuwl, written, root)


def test_a_server_without_tls_where_tls_is_asked_for(
    gpuwl: Run, config: Config, written: Path, root: Path, other_server: HTTPServer
) -> None:
    address = f"https://127.0.0.1:{other_server.server_port}"
    config["clusters"][0]["cluster"]["server"] = address
    written.write_text(yaml.safe_dump(config))
    assert f"no answer from {address}" in refused(gpuwl, written, root)


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "http_proxy"])
def test_a_proxy_of_the_environment_does_not_stand_between(variable: str, gpuwl: Run) -> None:
    done = gpuwl("step", "2", env={variable: "http://proxy.invalid:3128"})
    assert done.returncode == 0, done.stderr


def where(done: Any) -> str:
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout)["target"]["name"])


def test_an_option_wins_over_every_variable(
    gpuwl: Run, control_plane: plane.Plane, written: Path
) -> None:
    written.write_text("broken: [")
    variables = {"GPUWL_KUBECONFIG": str(written), "KUBECONFIG": str(written), "GPUWL_CONTEXT": "x"}
    context = yaml.safe_load(control_plane.kubeconfig.read_text())["current-context"]
    chosen = ("--kubeconfig", str(control_plane.kubeconfig), "--context", context)
    assert where(gpuwl("--output", "json", *chosen, "step", "2", env=variables)) == "tests"
    assert where(gpuwl("step", "2", *chosen, "--output", "json", env=variables)) == "tests"


def test_local_wins_over_variables_that_name_a_cluster(gpuwl: Run, written: Path) -> None:
    variables = {"GPUWL_KUBECONFIG": str(written), "GPUWL_CONTEXT": "x", "GPUWL_NAME": "tests"}
    assert where(gpuwl("step", "2", "--local", "--output", "json", env=variables)) == "tests"


def test_a_kubeconfig_wins_over_the_variable_for_local(
    gpuwl: Run, control_plane: plane.Plane
) -> None:
    done = gpuwl(
        "step",
        "2",
        "--kubeconfig",
        str(control_plane.kubeconfig),
        "--output",
        "json",
        env={"GPUWL_LOCAL": "1", "GPUWL_NAME": "not-this-one"},
    )
    assert where(done) == "tests"
    assert "already up" not in done.stderr


def test_our_variable_wins_over_kubeconfig(
    gpuwl: Run, control_plane: plane.Plane, written: Path
) -> None:
    variables = {"GPUWL_KUBECONFIG": str(control_plane.kubeconfig), "KUBECONFIG": str(written)}
    assert where(gpuwl("step", "2", "--output", "json", env=variables)) == "tests"


def test_the_usual_kubeconfig_is_taken(
    gpuwl: Run, control_plane: plane.Plane, tmp_path: Path
) -> None:
    usual = tmp_path / ".kube" / "config"
    usual.parent.mkdir()
    usual.symlink_to(control_plane.kubeconfig)
    variables = {"HOME": str(tmp_path), "KUBECONFIG": ""}
    assert where(gpuwl("step", "2", "--output", "json", env=variables)) == "tests"


def test_local_and_a_cluster_exclude_each_other(gpuwl: Run, root: Path) -> None:
    done = gpuwl("run", "--all", "--local", "--context", "x")
    assert done.returncode == 2
    assert "exclude each other" in done.stderr
    assert not root.exists()


def test_a_chosen_cluster_that_fails_is_never_replaced_by_the_local_one(
    gpuwl: Run, written: Path, root: Path
) -> None:
    written.write_text("")
    done = gpuwl("run", "--all", env={"KUBECONFIG": str(written), "GPUWL_NAME": "tests"})
    assert done.returncode == 3
    assert "--local" in done.stderr
    assert not root.exists()


def test_a_command_that_is_named_as_a_remedy_keeps_the_target(
    gpuwl: Run, cluster: Cluster, control_plane: plane.Plane, root: Path
) -> None:
    chosen = ("--kubeconfig", str(control_plane.kubeconfig), "--root", str(root))
    done = gpuwl("step", "4", *chosen)
    same = f"--root {root} --kubeconfig {control_plane.kubeconfig}"
    assert f"hint: gpuwl run --from 1 --to 3 {same}\n" in done.stderr
    assert "hint: gpuwl run --from 1 --to 3\n" in gpuwl("step", "4").stderr


def test_the_nodes_of_a_control_plane_that_is_not_the_default_one(
    gpuwl: Run, cluster: Cluster
) -> None:
    node = cluster.get(paths.node("lab-node-2"))
    cluster.delete(paths.node("lab-node-2"), uid=node["metadata"]["uid"])
    try:
        said = gpuwl("step", "1").stderr
    finally:
        cluster.create(paths.NODES, local_plane.lab_nodes()[2])
    assert "lacks nodes of the lab: lab-node-2\n" in said
    assert "hint: name three of its nodes: --lab-nodes A,B,C; or take another control plane" in said


def test_other_nodes_than_the_labs_that_are_not_there(gpuwl: Run, root: Path) -> None:
    done = gpuwl("run", "--all", "--lab-nodes", "lab-node-0,b,c")
    assert done.returncode == 3
    assert "lacks nodes of the lab: b, c\n" in done.stderr
    assert "hint: name three of its nodes: --lab-nodes A,B,C\n" in done.stderr
    assert not root.exists()


def test_where_nothing_is_named_the_local_control_plane_is_taken_and_said(
    gpuwl: Run, tmp_path: Path
) -> None:
    variables = {"HOME": str(tmp_path), "KUBECONFIG": "", "GPUWL_NAME": "tests"}
    done = gpuwl("step", "2", env=variables)
    assert done.returncode == 0, done.stderr
    first = done.stderr.splitlines()[0]
    assert first == "local control plane tests is already up (no kubeconfig found)"
    assert done.stdout.endswith("; gpuwl local down --name tests\n")
