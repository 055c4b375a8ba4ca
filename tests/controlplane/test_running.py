"""A control plane that is up: what is open, who may read and enter, how fast it is found again."""

import base64
import dataclasses
import http.client
import json
import re
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from tests.controlplane.support import command, identity, listeners

from gpuwl.controlplane import components, logs, plane, state, status
from gpuwl.errors import InputError
from gpuwl.k8s.client import Cluster
from gpuwl.lab import local_plane
from gpuwl.system.progress import SILENCE

pytestmark = pytest.mark.cluster


def test_a_second_call_finds_it_within_milliseconds(control_plane: plane.Plane) -> None:
    found = [local_plane.ensure_up(control_plane.name, listener=SILENCE) for _ in range(5)]
    assert min(up.seconds for up in found) < 0.1, "the best of several: other work may go on here"
    for up in found:
        assert not up.started
        assert up.plane == control_plane


def test_finding_it_imports_neither_the_client_nor_the_library_of_certificates(
    control_plane: plane.Plane,
) -> None:
    code = (
        "import sys; from gpuwl.lab import local_plane; from gpuwl.system.progress import SILENCE; "
        "assert not local_plane.ensure_up(sys.argv[1], listener=SILENCE).started; "
        "print(sorted({'kubernetes', 'cryptography', 'ssl', 'yaml'} & set(sys.modules)))"
    )
    child = command(code, control_plane.name)
    out, err = child.communicate(timeout=30)
    assert (out.strip(), err) == ("[]", "")


def test_it_listens_on_one_loopback_port_and_on_path_sockets_only(
    control_plane: plane.Plane,
) -> None:
    found = sorted(listeners(control_plane.name))
    port = f"0100007F:{control_plane.port:04X}"  # 127.0.0.1 in the byte order of proc(5)
    assert found == [
        ("tcp", port),
        ("unix", components.CLIENT_SOCKET),
        ("unix", components.PEER_SOCKET),
    ]
    for socket in (components.CLIENT_SOCKET, components.PEER_SOCKET):
        assert stat.S_ISSOCK((control_plane.folder / socket).stat().st_mode)


def test_only_its_owner_can_read_anything(control_plane: plane.Plane) -> None:
    entries = [control_plane.folder, *control_plane.folder.rglob("*")]
    assert len(entries) > 15
    for entry in entries:
        mode = entry.lstat().st_mode
        assert stat.S_IMODE(mode) & 0o077 == 0, f"{entry} {stat.filemode(mode)}"
        if entry.is_dir():
            assert stat.S_IMODE(mode) == 0o700
    for file in ("kubeconfig", components.LOADER_IDENTITY, components.SERVER_KEY):
        assert stat.S_IMODE((control_plane.folder / file).stat().st_mode) == 0o600


def test_no_key_is_on_a_command_line_or_in_a_log(control_plane: plane.Plane) -> None:
    keys = [path.read_text() for path in control_plane.folder.glob("*.key")]
    kubeconfig = control_plane.kubeconfig.read_text()
    keys += re.findall(r"client-key-data: (\S+)", kubeconfig)
    keys.append((control_plane.folder / components.LOADER_IDENTITY).read_text().partition(",")[0])
    assert len(keys) == 4
    secrets = {line for key in keys for line in key.splitlines() if not line.startswith("---")}
    public = [path.read_text(errors="replace") for path in control_plane.folder.glob("*.log")]
    for name in components.NAMES:
        pid = identity(control_plane.name, name).pid
        public.append(Path(f"/proc/{pid}/cmdline").read_text())
        public.append(Path(f"/proc/{pid}/environ").read_text())
    assert not [secret for secret in secrets for text in public if secret in text]


def _get(context: ssl.SSLContext, port: int, path: str) -> int:
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def test_nobody_enters_without_a_certificate_or_token(control_plane: plane.Plane) -> None:
    trusted = ssl.create_default_context(cafile=control_plane.folder / "ca.crt")
    for path in ("/api/v1/nodes", "/readyz", "/version"):
        assert _get(trusted, control_plane.port, path) == 401


def test_the_server_is_verified(control_plane: plane.Plane) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        _get(ssl.create_default_context(), control_plane.port, "/version")
    kubeconfig = control_plane.kubeconfig.read_text()
    assert "insecure-skip" not in kubeconfig
    ca = re.findall(r"certificate-authority-data: (\S+)", kubeconfig)[0]
    assert base64.b64decode(ca) == (control_plane.folder / "ca.crt").read_bytes()


def test_every_identity_has_a_certificate_of_its_own(control_plane: plane.Plane) -> None:
    admin = control_plane.kubeconfig.read_text()
    scheduler = (control_plane.folder / components.SCHEDULER_KUBECONFIG).read_text()
    pattern = r"client-certificate-data: (\S+)"
    certificates = {re.findall(pattern, text)[0] for text in (admin, scheduler)}
    certificates.add(
        base64.b64encode(
            (control_plane.folder / components.SERVER_CERTIFICATE).read_bytes()
        ).decode()
    )
    assert len(certificates) == 3
    assert not list(control_plane.folder.glob("ca.key"))


def test_status_is_plain_data_about_three_processes(control_plane: plane.Plane) -> None:
    found = status.status(control_plane.name)
    document = json.loads(json.dumps(dataclasses.asdict(found)))
    assert document["phase"] == "up"
    assert (document["nodes"], document["port"]) == (3, control_plane.port)
    assert document["version"] == control_plane.version
    assert [part["name"] for part in document["components"]] == list(components.NAMES)
    for part in document["components"]:
        assert part["alive"]
        assert part["version"]
        assert part["pid"] == identity(control_plane.name, part["name"]).pid
        assert 10 * 2**20 < part["memory"] < 2**30
        assert 0 < part["uptime"] < 3600
    assert document["memory"] == sum(part["memory"] for part in document["components"])


def test_status_of_what_never_was(own_state: Path) -> None:
    found = status.status("never-was")
    assert (found.phase, found.components) == ("down", ())
    assert plane.kubeconfig_path("never-was") == state.folder("never-was") / "kubeconfig"
    assert not plane.is_up("never-was")
    assert not plane.down("never-was").stopped


def test_another_version_or_other_nodes_are_refused(
    control_plane: plane.Plane, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"already up with Kubernetes") as wrong:
        local_plane.ensure_up(control_plane.name, version="1.30.0", listener=SILENCE)
    assert wrong.value.hint == f"stop it first: gpuwl local down --name {control_plane.name}"
    dump = tmp_path / "nodes.json"
    dump.write_text("{}")
    with pytest.raises(InputError, match=r"already up with other nodes, those of the lab"):
        local_plane.ensure_up(control_plane.name, nodes=dump, listener=SILENCE)


@pytest.mark.parametrize("bad", ["", "UP", "a/b", "..", "a b", "x" * 41, "ä", "a\n"])
def test_unusable_names_are_refused(bad: str) -> None:
    for call in (plane.down, plane.is_up, plane.kubeconfig_path, status.status):
        with pytest.raises(InputError, match="cannot name"):
            call(bad)
    with pytest.raises(InputError, match="cannot name"):
        local_plane.ensure_up(bad, listener=SILENCE)


def test_logs_are_found_and_followed(control_plane: plane.Plane) -> None:
    paths = logs.paths(control_plane.name)
    assert [path.stem for path in paths] == list(components.NAMES)
    assert logs.paths(control_plane.name, "etcd") == paths[:1]
    lines = list(logs.read(paths))
    assert {line.component for line in lines} >= {"kube-apiserver"}
    followed = logs.follow(paths)
    first = [next(followed) for _ in range(len(lines))]
    followed.close()
    assert sorted(first, key=str) == sorted(lines, key=str)
    with pytest.raises(InputError, match="no component 'kubelet'"):
        logs.paths(control_plane.name, "kubelet")


def test_following_ends_with_its_reader(control_plane: plane.Plane) -> None:
    with subprocess.Popen(
        [
            Path(sys.executable).parent / "gpuwl",
            "local",
            "logs",
            "-f",
            "--name",
            control_plane.name,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        while not child.stdout.readline().startswith("kube-scheduler: "):
            pass
        child.stdout.close()
        assert child.wait(timeout=10) == 141
        assert child.stderr.read() == ""


def test_the_labs_nodes_are_ready_and_have_no_taint(control_plane: plane.Plane) -> None:
    client = Cluster.from_kubeconfig(control_plane.kubeconfig)
    nodes = client.get("/api/v1/nodes")["items"]
    client.close()
    assert [node["metadata"]["name"] for node in nodes] == [f"lab-node-{i}" for i in range(3)]
    for node in nodes:
        assert "taints" not in node["spec"]
        assert node["metadata"]["labels"]["kubernetes.io/hostname"] == node["metadata"]["name"]
        assert [c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready"] == [
            "True"
        ]
