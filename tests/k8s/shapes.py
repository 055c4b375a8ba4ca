"""Kubeconfigs of many shapes, made from one that works: what people have on their machines."""

# ruff: noqa: S104, S105, S106, S108 - no secret in it is one

import base64
import copy
import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

TOKEN = "tok-CANARY-0123456789abcdef"
V1 = "client.authentication.k8s.io/v1"
BETA = "client.authentication.k8s.io/v1beta1"


@dataclass(frozen=True)
class World:
    """What the shapes lead to: servers and proxies that listen, ports where nobody does.

    `base` is a kubeconfig that works, with everything in itself.
    """

    base: dict[str, Any]
    plain: int
    proxy: int
    tls_proxy: int
    closed: int

    @property
    def port(self) -> int:
        return int(self.base["clusters"][0]["cluster"]["server"].rsplit(":", 1)[1])


@dataclass
class Shape:
    """One kubeconfig in the making: change `config` or its parts, or write files of your own."""

    world: World
    folder: Path
    config: dict[Any, Any] = field(init=False)
    paths: str = ""
    env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.config = copy.deepcopy(self.world.base)
        self.folder.mkdir(parents=True)

    @property
    def cluster(self) -> Any:
        return self.config["clusters"][0]["cluster"]

    @property
    def user(self) -> Any:
        return self.config["users"][0]["user"]

    @property
    def context(self) -> Any:
        return self.config["contexts"][0]["context"]

    def pem(self, field_name: str) -> bytes:
        part = self.world.base["clusters"][0]["cluster"] | self.world.base["users"][0]["user"]
        return base64.b64decode(part[field_name])

    def identity(self, **user: Any) -> Any:
        """Replace the user."""
        self.user.clear()
        self.user.update({name.replace("_", "-"): value for name, value in user.items()})

    def file(self, name: str, content: str | bytes = "") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def program(self, name: str, content: str | bytes, mode: int = 0o755) -> Any:
        self.file(name, content).chmod(mode)

    def files(self, folder: str = ".") -> Any:
        for name, of in FILES.items():
            self.file(f"{folder}/{name}", self.pem(of))

    def raw(self, text: str | bytes, name: str = "config") -> Any:
        """Write a file of this text, and add it to the list."""
        path = self.file(name, text)
        self.paths = f"{self.paths}:{path}" if self.paths else str(path)

    def written(self) -> str:
        """Write what nothing else was written for; return what KUBECONFIG is."""
        if not self.paths:
            self.raw(yaml.safe_dump(self.config))
        return self.paths


FILES = {
    "ca.crt": "certificate-authority-data",
    "me.crt": "client-certificate-data",
    "me.key": "client-key-data",
}
SHAPES: dict[str, Callable[[Shape], object]] = {}


def shape(make: Callable[[Shape], object]) -> Callable[[Shape], object]:
    SHAPES[make.__name__.replace("_", "-")] = make
    return make


def shapes(**makers: Callable[[Shape], object]) -> None:
    SHAPES.update({name.replace("_", "-"): make for name, make in makers.items()})


def plugin(script: str, version: str = V1, **more: Any) -> dict[str, Any]:
    """Return an exec entry that runs a shell script."""
    mode = {} if version != V1 else {"interactiveMode": "IfAvailable"}
    return {"apiVersion": version, "command": "sh", "args": ["-c", script], **mode, **more}


def credential(version: str = V1, **status: Any) -> str:
    """Return a script that prints an ExecCredential."""
    answer = {"apiVersion": version, "kind": "ExecCredential", "status": status}
    return f"printf %s {shlex.quote(json.dumps(answer))}"


def _pair(s: Shape) -> dict[str, str]:
    return {
        "clientCertificateData": s.pem("client-certificate-data").decode(),
        "clientKeyData": s.pem("client-key-data").decode(),
    }


def _jwt(expiry: int) -> str:
    def part(data: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(data).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none'})}.{part({'exp': expiry})}.c2ln"


def _oidc(**config: Any) -> dict[str, Any]:
    return {
        "name": "oidc",
        "config": {"client-id": "x", "idp-issuer-url": "https://127.0.0.1:1", **config},
    }


def _pop(part: dict[str, Any], *names: str) -> Any:
    for name in names:
        part.pop(name)


def _server(change: Callable[[str], str]) -> Callable[[Shape], object]:
    return lambda s: s.cluster.update(server=change(s.cluster["server"]))


# --- whole documents
shapes(
    plain=lambda s: None,
    json=lambda s: s.raw(json.dumps(s.config)),
    json_tabs=lambda s: s.raw(json.dumps(s.config, indent="\t")),
    bom=lambda s: s.raw("\ufeff" + yaml.safe_dump(s.config)),
    utf16=lambda s: s.raw(yaml.safe_dump(s.config).encode("utf-16")),
    not_utf8=lambda s: s.raw(yaml.safe_dump(s.config).encode() + b"# \xff\xfe\n"),
    not_utf8_value=lambda s: s.raw(yaml.safe_dump(s.config).encode() + b'x: "\xff"\n'),
    crlf=lambda s: s.raw(yaml.safe_dump(s.config).replace("\n", "\r\n")),
    cr_only=lambda s: s.raw(yaml.safe_dump(s.config).replace("\n", "\r")),
    nul=lambda s: s.raw(yaml.safe_dump(s.config) + "\0"),
    documents=lambda s: s.raw(yaml.safe_dump(s.config) + "---\nkind: Config\nclusters: []\n"),
    document_behind_is_broken=lambda s: s.raw(yaml.safe_dump(s.config) + "---\na: [\n"),
    first_document_empty=lambda s: s.raw("---\n---\n" + yaml.safe_dump(s.config)),
    document_marks=lambda s: s.raw("---\n" + yaml.safe_dump(s.config) + "...\n"),
    yaml_directive=lambda s: s.raw("%YAML 1.1\n---\n" + yaml.safe_dump(s.config)),
    yaml_1_2=lambda s: s.raw("%YAML 1.2\n---\n" + yaml.safe_dump(s.config)),
    tab_indent=lambda s: s.raw(yaml.safe_dump(s.config).replace("  ", "\t")),
    tab_behind=lambda s: s.raw(yaml.safe_dump(s.config).replace("kind: Config", "kind: Config\t")),
    broken=lambda s: s.raw("users: [{name: a, user: {token: " + TOKEN + "}\n"),
    broken_with_key=lambda s: s.raw(yaml.safe_dump(s.config) + f"token: {TOKEN}: x\n"),
    empty=lambda s: s.raw(""),
    comment_only=lambda s: s.raw("# nothing\n"),
    newline_only=lambda s: s.raw("\n"),
    a_string=lambda s: s.raw(f"{TOKEN}\n"),
    a_number=lambda s: s.raw("7\n"),
    a_list=lambda s: s.raw("[]\n"),
    an_empty_object=lambda s: s.raw("{}\n"),
    html=lambda s: s.raw("<html><body>404</body></html>\n"),
    anchors=lambda s: s.raw(
        yaml.safe_dump(s.config) + f"x: &u\n  user: {json.dumps(s.user)}\ny:\n- name: z\n  <<: *u\n"
    ),
    unknown_alias=lambda s: s.raw(yaml.safe_dump(s.config) + "x: *nowhere\n"),
    duplicate_key_same=lambda s: s.raw(yaml.safe_dump(s.config) + "kind: Config\n"),
    duplicate_key_last=lambda s: s.raw("current-context: nope\n" + yaml.safe_dump(s.config)),
    duplicate_key_first=lambda s: s.raw(yaml.safe_dump(s.config) + "current-context: nope\n"),
    json_duplicate_key=lambda s: s.raw(json.dumps(s.config)[:-1] + ', "current-context": "nope"}'),
    unknown_fields=lambda s: (s.cluster.update(foo={"a": 1}), s.config.update(bar=[1])),
    other_case=lambda s: s.cluster.update({"Server": "https://127.0.0.1:1", "SERVER": 7}),
    own_tag=lambda s: s.raw(yaml.safe_dump(s.config) + "x: !mine y\n"),
    tag_str=lambda s: s.raw(yaml.safe_dump(s.config).replace("kind: Config", "kind: !!str Config")),
    own_tag_on_a_field=lambda s: s.raw(
        yaml.safe_dump(s.config).replace("kind: Config", "kind: !mine Config")
    ),
    number_key=lambda s: s.config.update({7: "x", True: "y"}),
    null_key=lambda s: s.config.update({None: "x"}),
    list_key=lambda s: s.raw(yaml.safe_dump(s.config) + "? [a, b]\n: x\n"),
    odd_values=lambda s: s.raw(
        yaml.safe_dump(s.config) + "x: [.inf, .nan, 0o7, 0x1f, 1_000, 2020-01-01, 1:30, =, ~]\n"
    ),
    inf=lambda s: s.raw(yaml.safe_dump(s.config) + "x: .inf\n"),
    api_version_missing=lambda s: _pop(s.config, "apiVersion"),
    kind_missing=lambda s: _pop(s.config, "kind"),
    both_missing=lambda s: _pop(s.config, "kind", "apiVersion"),
    api_version_v2=lambda s: s.config.update(apiVersion="v2"),
    api_version_other=lambda s: s.config.update(apiVersion="apps/v1"),
    kind_other=lambda s: s.config.update(kind="Pod"),
    kind_lower=lambda s: s.config.update(kind="config"),
    too_many_aliases=lambda s: s.raw(
        yaml.safe_dump(s.config)
        + "".join(
            f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9) if i else 'x'}]\n" for i in range(8)
        )
    ),
    alias_of_itself=lambda s: s.raw(yaml.safe_dump(s.config) + "x: &x [*x]\n"),
    deep=lambda s: s.raw(yaml.safe_dump(s.config) + "x: " + "[" * 900 + "]" * 900 + "\n"),
    very_deep=lambda s: s.raw(yaml.safe_dump(s.config) + "x: " + "[" * 20000 + "]" * 20000 + "\n"),
)


def _anchored_users(s: Shape) -> None:
    user = json.dumps(s.user)
    rest = {name: value for name, value in s.config.items() if name != "users"}
    name = s.config["users"][0]["name"]
    s.raw(
        f"x-user: &u {user}\nusers:\n- name: {name}\n  user:\n    <<: *u\n    tokenFile: ''\n"
        + yaml.safe_dump(rest)
    )


def _merged_behind(s: Shape) -> None:
    name = s.config["users"][0]["name"]
    rest = {key: value for key, value in s.config.items() if key != "users"}
    s.raw(
        f"x: &u {{token: behind}}\ny: &v {{token: second}}\n"
        f"users:\n- name: {name}\n  user:\n    token: own\n    <<: [*u, *v]\n"
        + yaml.safe_dump(rest)
    )


def _merged_scalar(s: Shape) -> None:
    s.raw(yaml.safe_dump(s.config) + "x: {<<: y}\n")


shapes(merge_keys=_anchored_users, merge_behind=_merged_behind, merge_scalar=_merged_scalar)

# --- contexts and names
shapes(
    no_current_context=lambda s: _pop(s.config, "current-context"),
    empty_current_context=lambda s: s.config.update({"current-context": ""}),
    unknown_current_context=lambda s: s.config.update({"current-context": "nope"}),
    context_without_user=lambda s: _pop(s.context, "user"),
    context_with_unknown_user=lambda s: s.context.update(user="nope"),
    context_without_cluster=lambda s: _pop(s.context, "cluster"),
    context_with_unknown_cluster=lambda s: s.context.update(cluster="nope"),
    context_with_odd_namespace=lambda s: s.context.update(namespace="Not A Name"),
    context_without_body=lambda s: _pop(s.config["contexts"][0], "context"),
    cluster_without_body=lambda s: _pop(s.config["clusters"][0], "cluster"),
    user_without_body=lambda s: _pop(s.config["users"][0], "user"),
    other_user_without_body=lambda s: s.config["users"].append({"name": "other"}),
    other_cluster_without_body=lambda s: s.config["clusters"].append({"name": "other"}),
    other_context_null=lambda s: s.config["contexts"].append({"name": "other", "context": None}),
    other_entry_null=lambda s: s.config["users"].append(None),
    two_entries_null=lambda s: s.config["users"].extend([None, {}]),
    entry_is_a_string=lambda s: s.config["users"].append("x"),
    entry_without_name=lambda s: s.config["users"].append({"user": {"token": TOKEN}}),
    other_user_broken=lambda s: s.config["users"].append({"name": "o", "user": {"token": 7}}),
    other_user_key_broken=lambda s: s.config["users"].append(
        {"name": "o", "user": {"client-key-data": TOKEN}}
    ),
    other_user_plugin_broken=lambda s: s.config["users"].append(
        {"name": "o", "user": {"exec": {"command": ""}}}
    ),
    same_user_twice=lambda s: s.config["users"].append(s.config["users"][0]),
    same_cluster_twice=lambda s: s.config["clusters"].append(s.config["clusters"][0]),
    same_context_twice=lambda s: s.config["contexts"].append(s.config["contexts"][0]),
    number_as_name=lambda s: (
        s.config["users"][0].update(name=7),
        s.context.update(user=7),
    ),
    users_null=lambda s: s.config.update(users=None),
    users_an_object=lambda s: s.config.update(users={}),
    odd_name=lambda s: (
        s.config["users"][0].update(name="a b\n\u00e4 [red]"),
        s.context.update(user="a b\n\u00e4 [red]"),
    ),
    arn_name=lambda s: (
        s.config["contexts"][0].update(name="arn:aws:eks:eu-1:1:cluster/x"),
        s.config.update({"current-context": "arn:aws:eks:eu-1:1:cluster/x"}),
    ),
    extensions=lambda s: s.config.update(
        extensions=[{"name": "x", "extension": {"a": 1}}], preferences={"colors": True}
    ),
    extension_null=lambda s: s.config.update(extensions=[{"name": "x", "extension": None}]),
    extension_a_string=lambda s: s.cluster.update(extensions=[{"name": "x", "extension": "s"}]),
    extension_twice=lambda s: s.cluster.update(
        extensions=[{"name": "x", "extension": {}}, {"name": "x", "extension": {}}]
    ),
)

# --- servers
shapes(
    scheme_in_capitals=_server(lambda url: url.replace("https", "HTTPS")),
    no_scheme=_server(lambda url: url.removeprefix("https://")),
    slashes_only=_server(lambda url: url.removeprefix("https:")),
    no_scheme_path=_server(lambda url: url.removeprefix("https://") + "/k8s"),
    no_scheme_slash=_server(lambda url: url.removeprefix("https://") + "/"),
    no_scheme_localhost=_server(lambda url: url.replace("https://127.0.0.1", "localhost")),
    no_scheme_no_ca=lambda s: (
        _server(lambda url: url.removeprefix("https://"))(s),
        _pop(s.cluster, "certificate-authority-data"),
        s.identity(),
    ),
    no_scheme_insecure=lambda s: (
        _server(lambda url: url.removeprefix("https://"))(s),
        _pop(s.cluster, "certificate-authority-data"),
        s.cluster.update({"insecure-skip-tls-verify": True}),
    ),
    path=_server(lambda url: f"{url}/k8s/clusters/c-1"),
    path_slash=_server(lambda url: f"{url}/k8s/clusters/c-1/"),
    path_query=_server(lambda url: f"{url}/k8s/?a=b#c"),
    path_escaped=_server(lambda url: f"{url}/k8s/a%2Fb%20c"),
    path_space=_server(lambda url: f"{url}/k8s/a b"),
    query=_server(lambda url: f"{url}?a=b"),
    slash=_server(lambda url: f"{url}/"),
    two_slashes=_server(lambda url: f"{url}//k8s//a"),
    dots=_server(lambda url: f"{url}/a/../b/./c"),
    localhost=_server(lambda url: url.replace("127.0.0.1", "localhost")),
    host_in_capitals=_server(lambda url: url.replace("127.0.0.1", "LOCALHOST")),
    user_in_address=_server(lambda url: url.replace("https://", f"https://me:{TOKEN}@")),
    user_in_address_alone=lambda s: (
        _server(lambda url: url.replace("https://", f"https://me:{TOKEN}@"))(s),
        s.identity(),
    ),
    closed=lambda s: s.cluster.update(server=f"https://127.0.0.1:{s.world.closed}"),
    no_such_host=lambda s: s.cluster.update(server="https://no.such.host.invalid:6443"),
    server_space_before=_server(lambda url: f" {url}"),
    server_space_behind=_server(lambda url: f"{url} "),
    server_newline=_server(lambda url: f"{url}\n"),
    server_port_empty=_server(lambda url: "https://127.0.0.1:"),
    server_port_text=_server(lambda url: "https://127.0.0.1:https"),
    server_port_big=_server(lambda url: "https://127.0.0.1:99999"),
    server_ftp=_server(lambda url: url.replace("https", "ftp")),
    server_unix=_server(lambda url: "unix:///run/x.sock"),
    server_opaque=_server(lambda url: "https:127.0.0.1"),
    server_bracket=_server(lambda url: "https://[::1"),
    server_ipv6=_server(lambda url: url.replace("127.0.0.1", "[::1]")),
    server_zone=_server(lambda url: url.replace("127.0.0.1", "[fe80::1%25nope]")),
    server_percent=_server(lambda url: "https://127.0.0.1/%zz"),
    server_host_percent=_server(lambda url: "https://a%zz/"),
    server_umlaut=_server(lambda url: "https://\u00e4.invalid:1"),
    server_empty=lambda s: s.cluster.update(server=""),
    cluster_empty=lambda s: s.cluster.clear(),
    http=lambda s: s.cluster.update(server=f"http://127.0.0.1:{s.world.plain}"),
    http_token=lambda s: (
        s.cluster.update(server=f"http://127.0.0.1:{s.world.plain}"),
        s.identity(token=TOKEN),
    ),
    http_basic=lambda s: (
        s.cluster.update(server=f"http://127.0.0.1:{s.world.plain}"),
        s.identity(username="me", password=TOKEN),
    ),
    http_impersonate=lambda s: (
        s.cluster.update(server=f"http://127.0.0.1:{s.world.plain}"),
        s.user.update({"as": "lab"}),
    ),
    http_exec=lambda s: (
        s.cluster.update(server=f"http://127.0.0.1:{s.world.plain}"),
        s.identity(exec=plugin("echo $HOME; exit 1")),
    ),
    http_broken_ca=lambda s: (
        s.cluster.update(server=f"http://127.0.0.1:{s.world.plain}"),
        s.cluster.update({"certificate-authority-data": "bm8="}),
    ),
    http_missing_key=lambda s: (
        s.cluster.update(server=f"http://127.0.0.1:{s.world.plain}"),
        _pop(s.user, "client-key-data"),
    ),
    https_on_http=lambda s: s.cluster.update(server=f"https://127.0.0.1:{s.world.plain}"),
    http_on_https=_server(lambda url: url.replace("https", "http")),
)

# --- trust
CA = "certificate-authority-data"
shapes(
    no_ca=lambda s: _pop(s.cluster, CA),
    insecure=lambda s: (_pop(s.cluster, CA), s.cluster.update({"insecure-skip-tls-verify": True})),
    insecure_and_ca=lambda s: s.cluster.update({"insecure-skip-tls-verify": True}),
    insecure_and_name=lambda s: (
        _pop(s.cluster, CA),
        s.cluster.update({"insecure-skip-tls-verify": True, "tls-server-name": "wrong.example"}),
    ),
    insecure_wrong_host=lambda s: (
        _pop(s.cluster, CA),
        s.cluster.update({"insecure-skip-tls-verify": True}),
        _server(lambda url: url.replace("127.0.0.1", "127.0.0.2"))(s),
    ),
    insecure_text=lambda s: s.cluster.update({"insecure-skip-tls-verify": "true"}),
    insecure_yes=lambda s: (
        _pop(s.cluster, CA),
        s.raw(
            yaml.safe_dump(s.config).replace(
                "server:", "insecure-skip-tls-verify: yes\n    server:"
            )
        ),
    ),
    wrong_host=_server(lambda url: url.replace("127.0.0.1", "127.0.0.2")),
    wrong_host_right_name=lambda s: (
        _server(lambda url: url.replace("127.0.0.1", "127.0.0.2"))(s),
        s.cluster.update({"tls-server-name": "kubernetes.default"}),
    ),
    name_wrong=lambda s: s.cluster.update({"tls-server-name": "wrong.example"}),
    name_right=lambda s: s.cluster.update({"tls-server-name": "localhost"}),
    name_capitals=lambda s: s.cluster.update({"tls-server-name": "LOCALHOST"}),
    name_dot=lambda s: s.cluster.update({"tls-server-name": "localhost."}),
    name_address=lambda s: s.cluster.update({"tls-server-name": "10.0.0.1"}),
    name_address_wrong=lambda s: s.cluster.update({"tls-server-name": "10.9.9.9"}),
    name_odd=lambda s: s.cluster.update({"tls-server-name": "a b\n"}),
    name_port=lambda s: s.cluster.update({"tls-server-name": "localhost:6443"}),
    ca_no_pem=lambda s: s.cluster.update({CA: "bm8gY2VydGlmaWNhdGU="}),
    ca_empty=lambda s: s.cluster.update({CA: ""}),
    ca_not_base64=lambda s: s.cluster.update({CA: "!!!"}),
    ca_base64_lines=lambda s: s.cluster.update(
        {CA: "\n".join(s.cluster[CA][i : i + 64] for i in range(0, len(s.cluster[CA]), 64)) + "\n"}
    ),
    ca_base64_spaces=lambda s: s.cluster.update(
        {CA: s.cluster[CA][:64] + " " + s.cluster[CA][64:]}
    ),
    ca_base64_unpadded=lambda s: s.cluster.update(
        {
            CA: base64.b64encode(s.pem(CA) + b"\n" * (1 + (-len(s.pem(CA)) - 0) % 3))
            .decode()
            .rstrip("=")[:-1]
        }
    ),
    ca_base64_url=lambda s: s.cluster.update({CA: "-_" + s.cluster[CA][2:]}),
    ca_raw_pem=lambda s: s.cluster.update({CA: s.pem(CA).decode()}),
    ca_key_instead=lambda s: s.cluster.update({CA: s.user["client-key-data"]}),
    ca_another=lambda s: s.cluster.update({CA: s.user["client-certificate-data"]}),
    ca_and_text=lambda s: s.cluster.update(
        {CA: base64.b64encode(b"subject=/CN=x\n" + s.pem(CA) + b"tail\n").decode()}
    ),
    ca_garbage_then_ca=lambda s: s.cluster.update(
        {
            CA: base64.b64encode(
                b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" + s.pem(CA)
            ).decode()
        }
    ),
    ca_then_garbage=lambda s: s.cluster.update(
        {
            CA: base64.b64encode(
                s.pem(CA) + b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
            ).decode()
        }
    ),
    ca_cut=lambda s: s.cluster.update({CA: base64.b64encode(s.pem(CA)[:-40]).decode()}),
    ca_trusted_cert=lambda s: s.cluster.update(
        {CA: base64.b64encode(s.pem(CA).replace(b"CERTIFICATE", b"TRUSTED CERTIFICATE")).decode()}
    ),
    ca_crlf=lambda s: s.cluster.update(
        {CA: base64.b64encode(s.pem(CA).replace(b"\n", b"\r\n")).decode()}
    ),
    ca_twice=lambda s: s.cluster.update({CA: base64.b64encode(s.pem(CA) * 2).decode()}),
    ca_der=lambda s: s.cluster.update(
        {
            CA: base64.b64encode(
                base64.b64decode(b"".join(s.pem(CA).split(b"-----")[2].split()))
            ).decode()
        }
    ),
)


@shape
def ca_file(s: Shape) -> None:
    s.files()
    _pop(s.cluster, CA)
    s.cluster["certificate-authority"] = str(s.folder / "ca.crt")


shapes(
    ca_file_missing=lambda s: (
        _pop(s.cluster, CA),
        s.cluster.update({"certificate-authority": "/nonexistent"}),
    ),
    ca_file_empty=lambda s: (
        _pop(s.cluster, CA),
        s.cluster.update({"certificate-authority": str(s.file("e"))}),
    ),
    ca_file_folder=lambda s: (
        _pop(s.cluster, CA),
        s.cluster.update({"certificate-authority": "/tmp"}),
    ),
    ca_file_and_data=lambda s: (s.files(), s.cluster.update({"certificate-authority": "ca.crt"})),
    ca_file_missing_and_data=lambda s: s.cluster.update({"certificate-authority": "/nonexistent"}),
    ca_file_tilde=lambda s: (
        _pop(s.cluster, CA),
        s.cluster.update({"certificate-authority": "~/ca.crt"}),
    ),
    ca_file_and_insecure=lambda s: (
        s.files(),
        _pop(s.cluster, CA),
        s.cluster.update({"certificate-authority": "ca.crt", "insecure-skip-tls-verify": True}),
    ),
)


@shape
def relative_files(s: Shape) -> None:
    s.files("pki")
    _pop(s.cluster, CA)
    s.cluster["certificate-authority"] = "pki/ca.crt"
    s.identity(client_certificate="./pki/me.crt", client_key="../relative-files/pki/me.key")


# --- several files
@shape
def split_files(s: Shape) -> None:
    s.files("users")
    s.identity(client_certificate="me.crt", client_key="me.key")
    users = s.config.pop("users")
    s.raw(yaml.safe_dump(s.config), "clusters/config")
    s.raw(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", "users": users}), "users/config")


def _before(text: str | bytes) -> Callable[[Shape], object]:
    return lambda s: (s.raw(text, "before"), s.raw(yaml.safe_dump(s.config)))


def _behind(text: str | bytes) -> Callable[[Shape], object]:
    return lambda s: (s.raw(yaml.safe_dump(s.config)), s.raw(text, "behind"))


def _paths(make: Callable[[str, Shape], str]) -> Callable[[Shape], object]:
    def change(s: Shape) -> None:
        s.raw(yaml.safe_dump(s.config))
        s.paths = make(s.paths, s)

    return change


shapes(
    list_empty_file=_before(""),
    list_comment_file=_before("# nothing\n"),
    list_empty_object=_before("{}"),
    list_broken_file=_before("a: ["),
    list_broken_behind=_behind("a: ["),
    list_wrong_type_behind=_behind("users: {a: b}\n"),
    list_other_context_first=_before("current-context: nope\n"),
    list_other_context_behind=_behind("current-context: nope\n"),
    list_null_context_first=_before("current-context:\n"),
    list_missing_file=_paths(lambda p, s: f"/nonexistent:{p}"),
    list_missing_behind=_paths(lambda p, s: f"{p}:/nonexistent"),
    list_empty_entries=_paths(lambda p, s: f"::{p}:"),
    list_twice=_paths(lambda p, s: f"{p}:{p}"),
    list_folder=_paths(lambda p, s: f"{s.folder}:{p}"),
    list_tilde=_paths(lambda p, s: f"~/config:{p}"),
    list_below_a_file=_paths(lambda p, s: f"{p}/x:{p}"),
    all_missing=_paths(lambda p, s: "/nonexistent:/neither"),
    only_missing=_paths(lambda p, s: "/nonexistent"),
    a_folder=_paths(lambda p, s: str(s.folder)),
    only_colons=_paths(lambda p, s: "::"),
    space_in_list=_paths(lambda p, s: f" {p}"),
    list_same_names=lambda s: (
        s.raw(yaml.safe_dump(s.config)),
        s.identity(token=TOKEN),
        s.cluster.update(server="https://127.0.0.1:1"),
        s.raw(yaml.safe_dump(s.config), "behind"),
    ),
    list_empty_body_first=lambda s: (
        s.raw(yaml.safe_dump({"users": [{"name": s.config["users"][0]["name"]}]}), "before"),
        s.raw(yaml.safe_dump(s.config)),
    ),
)

# --- certificates and keys
KEY, CERT = "client-key-data", "client-certificate-data"
shapes(
    key_missing=lambda s: _pop(s.user, KEY),
    certificate_missing=lambda s: _pop(s.user, CERT),
    key_garbled=lambda s: s.user.update({KEY: s.user[KEY][:40] + s.user[KEY][44:]}),
    key_not_base64=lambda s: s.user.update({KEY: TOKEN}),
    key_raw_pem=lambda s: s.user.update({KEY: s.pem(KEY).decode()}),
    certificate_no_pem=lambda s: s.user.update({CERT: "bm8="}),
    certificate_is_a_key=lambda s: s.user.update({CERT: s.user[KEY]}),
    key_and_text=lambda s: s.user.update(
        {KEY: base64.b64encode(b"Bag Attributes\n" + s.pem(KEY)).decode()}
    ),
    certificate_and_text=lambda s: s.user.update(
        {CERT: base64.b64encode(b"subject=x\n" + s.pem(CERT)).decode()}
    ),
    both_in_both=lambda s: s.user.update(
        {n: base64.b64encode(s.pem(CERT) + s.pem(KEY)).decode() for n in (CERT, KEY)}
    ),
    certificate_chain=lambda s: s.user.update(
        {CERT: base64.b64encode(s.pem(CERT) + s.pem(CA)).decode()}
    ),
    certificate_wrong_order=lambda s: s.user.update(
        {CERT: base64.b64encode(s.pem(CA) + s.pem(CERT)).decode()}
    ),
    data_and_missing_files=lambda s: s.user.update(
        {"client-certificate": "/nonexistent.crt", "client-key": "/nonexistent.key"}
    ),
    data_and_files=lambda s: (
        s.files(),
        s.user.update({"client-certificate": "me.crt", "client-key": "me.key"}),
    ),
    key_file_and_certificate_data=lambda s: (
        s.files(),
        _pop(s.user, KEY),
        s.user.update({"client-key": "me.key"}),
    ),
    certificate_file_and_key_data=lambda s: (
        s.files(),
        _pop(s.user, CERT),
        s.user.update({"client-certificate": "me.crt"}),
    ),
    files_missing=lambda s: s.identity(
        client_certificate="/nonexistent.crt", client_key="/nonexistent.key"
    ),
    key_file_missing=lambda s: (
        s.files(),
        s.identity(client_certificate="me.crt", client_key="nope"),
    ),
    key_file_alone_missing=lambda s: s.user.update({"client-key": "/nonexistent"}),
    certificate_file_folder=lambda s: s.identity(client_certificate="/tmp", client_key="/tmp"),
    key_file_only=lambda s: s.identity(client_key="/nonexistent"),
    empty_paths=lambda s: s.user.update({"client-certificate": "", "client-key": ""}),
    empty_data_and_files=lambda s: (
        s.files(),
        s.identity(
            client_certificate="me.crt",
            client_key="me.key",
            client_certificate_data="",
            client_key_data="",
        ),
    ),
    no_identity=lambda s: s.identity(),
)


# --- tokens and passwords
def _unquoted(scalar: str) -> Callable[[Shape], object]:
    """Write a token that is not in quotes."""

    def change(s: Shape) -> None:
        s.identity(token="WORD")
        s.raw(yaml.safe_dump(s.config).replace("WORD", scalar))

    return change


shapes(
    token=lambda s: s.identity(token=TOKEN),
    token_and_certificate=lambda s: s.user.update(token=TOKEN),
    token_number=lambda s: s.identity(token=12345),
    token_date=_unquoted("2020-01-01"),
    token_exponent=_unquoted("1e5"),
    token_big_exponent=_unquoted("12e34567"),
    token_hex=_unquoted("0x12ab"),
    token_octal=_unquoted("0o17"),
    token_sexagesimal=_unquoted("190:20:30"),
    token_y=_unquoted("y"),
    token_on=_unquoted("on"),
    token_tilde=_unquoted("~"),
    token_equals=_unquoted("="),
    token_dot=_unquoted("."),
    token_merge=_unquoted("<<"),
    token_eight=_unquoted("0089"),
    token_huge=_unquoted("9" * 30),
    token_plus=_unquoted("+x"),
    token_underscores=_unquoted("1_2_3"),
    token_underscore_end=_unquoted("12_"),
    token_binary_tag=_unquoted("!!binary YWJj"),
    token_int_tag=_unquoted("!!int '7'"),
    token_newline=lambda s: s.identity(token=TOKEN + "\n"),
    token_newline_inside=lambda s: s.identity(token="a\nb"),
    token_space=lambda s: s.identity(token=f" {TOKEN} "),
    token_umlaut=lambda s: s.identity(token="t\u00e4"),
    token_latin_only=lambda s: s.identity(token="\u00ff"),
    token_korean=lambda s: s.identity(token="\ud1a0\ud070"),
    token_control=lambda s: s.identity(token="a\x7fb"),
    token_tab=lambda s: s.identity(token="a\tb"),
    token_null=lambda s: s.user.update(token=None),
    token_list=lambda s: s.identity(token=[TOKEN]),
    token_object=lambda s: s.identity(token={TOKEN: TOKEN}),
    token_and_password=lambda s: s.identity(token=TOKEN, username="me", password=TOKEN),
    token_and_password_only=lambda s: s.identity(token=TOKEN, password=TOKEN),
    basic=lambda s: s.identity(username="me", password=TOKEN),
    basic_without_password=lambda s: s.identity(username="me"),
    basic_without_name=lambda s: s.identity(password=TOKEN),
    basic_umlaut=lambda s: s.identity(username="m\u00fc\ud1a0", password="p:\n"),
    basic_and_certificate=lambda s: s.user.update(username="me", password=TOKEN),
)


def _token_file(content: str | bytes | None, **more: Any) -> Callable[[Shape], object]:
    def change(s: Shape) -> None:
        if content is not None:
            s.file("t", content)
        s.identity(tokenFile="t", **more)

    return change


shapes(
    token_file=_token_file(TOKEN),
    token_file_newline=_token_file(f"{TOKEN}\n"),
    token_file_spaces=_token_file(f"\r\n  {TOKEN}\t\r\n\n"),
    token_file_empty=_token_file(""),
    token_file_blank=_token_file(" \n"),
    token_file_missing=_token_file(None),
    token_file_two_lines=_token_file("a\nb\n"),
    token_file_umlaut=_token_file("t\u00e4\n"),
    token_file_not_utf8=_token_file(b"t\xff\n"),
    token_file_bom=_token_file(f"\ufeff{TOKEN}\n"),
    token_file_folder=lambda s: s.identity(tokenFile="/tmp"),
    token_file_null=lambda s: s.user.update(tokenFile=None),
    token_file_and_token=_token_file(TOKEN, token="other"),
    token_file_missing_and_token=_token_file(None, token=TOKEN),
    token_file_empty_and_token=_token_file("", token=TOKEN),
    token_file_and_basic=_token_file(TOKEN, username="me", password="x"),
    token_file_other_case=lambda s: (s.file("t", TOKEN), s.identity(tokenfile="t")),
    token_file_and_exec=_token_file(TOKEN, exec=plugin("exit 1")),
)

# --- acting as somebody
shapes(
    impersonate=lambda s: s.user.update(
        {
            "as": "lab",
            "as-groups": ["a", "b"],
            "as-uid": "7",
            "as-user-extra": {"example.org/scopes": ["x1", "x2"], "A_b": ["z"]},
        }
    ),
    impersonate_groups_alone=lambda s: s.user.update({"as-groups": ["system:masters"]}),
    impersonate_uid_alone=lambda s: s.user.update({"as-uid": "7"}),
    impersonate_extra_alone=lambda s: s.user.update({"as-user-extra": {"a": ["b"]}}),
    impersonate_empty=lambda s: s.user.update(
        {"as": "", "as-groups": [], "as-user-extra": {}, "as-uid": ""}
    ),
    impersonate_null=lambda s: s.user.update(
        {"as": None, "as-groups": None, "as-user-extra": None, "as-uid": None}
    ),
    impersonate_newline=lambda s: s.user.update({"as": "lab\nx"}),
    impersonate_umlaut=lambda s: s.user.update({"as": "l\u00e4b"}),
    impersonate_korean=lambda s: s.user.update({"as": "\ud559\uc0dd"}),
    impersonate_spaces=lambda s: s.user.update({"as": " lab "}),
    impersonate_group_null=lambda s: s.user.update({"as": "lab", "as-groups": [None, "x"]}),
    impersonate_group_newline=lambda s: s.user.update({"as": "lab", "as-groups": ["a\nb"]}),
    impersonate_group_number=lambda s: s.user.update({"as": "lab", "as-groups": [7]}),
    impersonate_groups_text=lambda s: s.user.update({"as": "lab", "as-groups": "x"}),
    impersonate_extra_text=lambda s: s.user.update({"as": "lab", "as-user-extra": {"a": "b"}}),
    impersonate_extra_null=lambda s: s.user.update(
        {"as": "lab", "as-user-extra": {"a": None, "b": ["c"]}}
    ),
    impersonate_extra_odd_key=lambda s: s.user.update(
        {"as": "lab", "as-user-extra": {"a b\u00e4%/": ["c"]}}
    ),
    impersonate_extra_empty_key=lambda s: s.user.update(
        {"as": "lab", "as-user-extra": {"": ["c"]}}
    ),
    impersonate_number=lambda s: s.user.update({"as": 7}),
    impersonate_uid_number=lambda s: s.user.update({"as": "lab", "as-uid": 7}),
    impersonate_token=lambda s: s.identity(**{"token": TOKEN, "as": "lab"}),
)

# --- plugins
shapes(
    exec_token=lambda s: s.identity(exec=plugin(credential(token=TOKEN))),
    exec_beta=lambda s: s.identity(exec=plugin(credential(BETA, token=TOKEN), BETA)),
    exec_pair=lambda s: s.identity(exec=plugin(credential(**_pair(s)))),
    exec_pair_and_token=lambda s: s.identity(exec=plugin(credential(token=TOKEN, **_pair(s)))),
    exec_alpha=lambda s: s.identity(exec=plugin(credential(token=TOKEN), V1 + "alpha1")),
    exec_alpha_answer=lambda s: s.identity(exec=plugin(credential(V1 + "alpha1", token=TOKEN))),
    exec_beta_answer=lambda s: s.identity(exec=plugin(credential(BETA, token=TOKEN))),
    exec_v1_answer_to_beta=lambda s: s.identity(exec=plugin(credential(V1, token=TOKEN), BETA)),
    exec_nulls=lambda s: s.identity(
        exec=plugin(credential(token=TOKEN), env=None, installHint=None, provideClusterInfo=None)
    ),
    exec_args_null=lambda s: s.identity(exec={**plugin(""), "command": "true", "args": None}),
    exec_null=lambda s: s.user.update(exec=None),
    exec_empty=lambda s: s.user.update(exec={}),
    exec_text=lambda s: s.identity(exec="aws"),
    exec_args_text=lambda s: s.identity(exec={**plugin(""), "args": "x"}),
    exec_arg_number=lambda s: s.identity(exec={**plugin(""), "args": [7]}),
    exec_no_version=lambda s: s.identity(
        exec={**plugin(credential(token=TOKEN)), "apiVersion": None}
    ),
    exec_no_mode=lambda s: s.identity(
        exec={**plugin(credential(token=TOKEN)), "interactiveMode": None}
    ),
    exec_no_mode_beta=lambda s: s.identity(
        exec={**plugin(credential(BETA, token=TOKEN), BETA), "interactiveMode": None}
    ),
    exec_odd_mode=lambda s: s.identity(
        exec=plugin(credential(token=TOKEN), interactiveMode="Sometimes")
    ),
    exec_never=lambda s: s.identity(exec=plugin(credential(token=TOKEN), interactiveMode="Never")),
    exec_always=lambda s: s.identity(
        exec=plugin(credential(token=TOKEN), interactiveMode="Always")
    ),
    exec_env=lambda s: s.identity(
        exec=plugin(
            'printf \'{"apiVersion": "'
            + V1
            + '", "kind": "ExecCredential", "status": {"token": "%s"}}\' "$A$HOME_X"',
            env=[{"name": "A", "value": "one"}, {"name": "HOME_X", "value": None}],
        )
    ),
    exec_env_twice=lambda s: s.identity(
        exec=plugin(
            'printf \'{"apiVersion": "'
            + V1
            + '", "kind": "ExecCredential", "status": {"token": "%s"}}\' "$A"',
            env=[{"name": "A", "value": "one"}, {"name": "A", "value": "two"}],
        )
    ),
    exec_env_without_name=lambda s: s.identity(
        exec=plugin(credential(token=TOKEN), env=[{"value": "x"}])
    ),
    exec_env_null_entry=lambda s: s.identity(exec=plugin(credential(token=TOKEN), env=[None])),
    exec_env_object=lambda s: s.identity(exec=plugin(credential(token=TOKEN), env={"A": "b"})),
    exec_env_number=lambda s: s.identity(
        exec=plugin(credential(token=TOKEN), env=[{"name": "A", "value": 7}])
    ),
    exec_info=lambda s: s.identity(
        exec=plugin(
            'printf \'{"apiVersion": "'
            + V1
            + '", "kind": "ExecCredential", "status": {"token": "%s"}}\' "$(printf %s "$KUBERNETES_EXEC_INFO" | tr -d \'\\n\' | base64 -w0)"'
        )
    ),
    exec_fails=lambda s: s.identity(
        exec=plugin("echo 'The session has expired; run: sso login' >&2; exit 255")
    ),
    exec_killed=lambda s: s.identity(exec=plugin("kill -9 $$")),
    exec_missing=lambda s: s.identity(
        exec={**plugin(""), "command": "no-such-plugin", "installHint": "get it from your admin"}
    ),
    exec_missing_path=lambda s: s.identity(exec={**plugin(""), "command": "./no-such-plugin"}),
    exec_not_executable=lambda s: (
        s.file("p", "x"),
        s.identity(exec={**plugin(""), "command": "./p"}),
    ),
    exec_no_format=lambda s: (
        s.program("p", b"\1\2"),
        s.identity(exec={**plugin(""), "command": "./p"}),
    ),
    exec_folder=lambda s: s.identity(exec={**plugin(""), "command": "/tmp"}),
    exec_no_command=lambda s: s.identity(exec={**plugin(""), "command": ""}),
    exec_command_nul=lambda s: s.identity(exec={**plugin(""), "command": "a\0b"}),
    exec_args_nul=lambda s: s.identity(exec={**plugin(""), "args": ["a\0b"]}),
    exec_silent=lambda s: s.identity(exec=plugin("true")),
    exec_no_json=lambda s: s.identity(exec=plugin(f"echo {TOKEN}")),
    exec_yaml=lambda s: s.identity(
        exec=plugin(f"printf 'apiVersion: {V1}\nkind: ExecCredential\nstatus:\n  token: {TOKEN}\n'")
    ),
    exec_list=lambda s: s.identity(exec=plugin("echo []")),
    exec_null_answer=lambda s: s.identity(exec=plugin("echo null")),
    exec_wrong_kind=lambda s: s.identity(
        exec=plugin(credential(token=TOKEN).replace("ExecCredential", "Config"))
    ),
    exec_kind_missing=lambda s: s.identity(
        exec=plugin(credential(token=TOKEN).replace('"kind": "ExecCredential", ', ""))
    ),
    exec_version_missing=lambda s: s.identity(
        exec=plugin(f'echo \'{{"kind": "ExecCredential", "status": {{"token": "{TOKEN}"}}}}\'')
    ),
    exec_no_status=lambda s: s.identity(
        exec=plugin(f'echo \'{{"apiVersion": "{V1}", "kind": "ExecCredential"}}\'')
    ),
    exec_status_null=lambda s: s.identity(
        exec=plugin(f'echo \'{{"apiVersion": "{V1}", "kind": "ExecCredential", "status": null}}\'')
    ),
    exec_status_empty=lambda s: s.identity(exec=plugin(credential())),
    exec_token_number=lambda s: s.identity(exec=plugin(credential(token=7))),
    exec_token_newline=lambda s: s.identity(exec=plugin(credential(token=TOKEN + "\n"))),
    exec_token_umlaut=lambda s: s.identity(exec=plugin(credential(token="t\u00e4"))),
    exec_certificate_alone=lambda s: s.identity(
        exec=plugin(credential(clientCertificateData=_pair(s)["clientCertificateData"]))
    ),
    exec_key_garbled=lambda s: s.identity(
        exec=plugin(credential(**{**_pair(s), "clientKeyData": "x"}))
    ),
    exec_expired=lambda s: s.identity(
        exec=plugin(credential(token=TOKEN, expirationTimestamp="2020-01-01T00:00:00Z"))
    ),
    exec_expiry_later=lambda s: s.identity(
        exec=plugin(credential(token=TOKEN, expirationTimestamp="2999-01-01T00:00:00Z"))
    ),
    exec_expiry_odd=lambda s: s.identity(
        exec=plugin(credential(token=TOKEN, expirationTimestamp="soon"))
    ),
    exec_expiry_null=lambda s: s.identity(
        exec=plugin(credential(token=TOKEN, expirationTimestamp=None))
    ),
    exec_expiry_zone=lambda s: s.identity(
        exec=plugin(credential(token=TOKEN, expirationTimestamp="2999-01-01T00:00:00.123+09:00"))
    ),
    exec_two_answers=lambda s: s.identity(exec=plugin(credential(token=TOKEN) + "; echo x")),
    exec_and_token=lambda s: s.identity(token=TOKEN, exec=plugin("exit 1")),
    exec_and_basic=lambda s: s.identity(username="me", password=TOKEN, exec=plugin("exit 1")),
    exec_and_certificate=lambda s: s.user.update(exec=plugin("exit 1")),
    exec_and_provider=lambda s: s.identity(exec=plugin("exit 1"), auth_provider=_oidc()),
    exec_and_impersonation=lambda s: s.identity(
        **{"exec": plugin(credential(token=TOKEN)), "as": "lab"}
    ),
    exec_reads=lambda s: s.identity(exec=plugin("read x; " + credential(token=TOKEN))),
    exec_relative=lambda s: (
        s.program("p", "#!/bin/sh\n" + credential(token=TOKEN)),
        s.identity(exec={**plugin(""), "command": "./p", "args": []}),
    ),
    exec_relative_bare=lambda s: (
        s.program("p", "#!/bin/sh\n" + credential(token=TOKEN)),
        s.identity(exec={**plugin(""), "command": "p", "args": []}),
    ),
    exec_in_a_folder=lambda s: (
        s.program("bin/p", "#!/bin/sh\n" + credential(token=TOKEN)),
        s.identity(exec={**plugin(""), "command": "bin/p", "args": []}),
    ),
    exec_tilde=lambda s: s.identity(exec={**plugin(""), "command": "~/p", "args": []}),
    exec_big_answer=lambda s: s.identity(
        exec=plugin("head -c 300000 /dev/zero | tr '\\0' ' '; " + credential(token=TOKEN))
    ),
    exec_leaves_a_child=lambda s: s.identity(exec=plugin("sleep 0.2 & " + credential(token=TOKEN))),
)


@shape
def exec_cluster_info(s: Shape) -> None:
    s.cluster["extensions"] = [
        {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "x"}},
        {"name": "other", "extension": {"a": 1}},
    ]
    s.cluster["tls-server-name"] = "localhost"
    s.identity(exec=told(V1))
    s.user["exec"]["provideClusterInfo"] = True


@shape
def exec_cluster_info_beta(s: Shape) -> None:
    _server(lambda url: f"{url}/path/?q=1")(s)
    s.identity(exec=told(BETA))
    s.user["exec"]["provideClusterInfo"] = True


@shape
def exec_cluster_info_files(s: Shape) -> None:
    s.files()
    _pop(s.cluster, CA)
    s.cluster.update(
        {"certificate-authority": "ca.crt", "proxy-url": f"http://127.0.0.1:{s.world.proxy}"}
    )
    s.identity(exec=told(V1))
    s.user["exec"]["provideClusterInfo"] = True


def told(version: str) -> dict[str, Any]:
    """Return a plugin whose token is what it was told, in base64."""
    return plugin(
        'printf \'{"apiVersion": "'
        + version
        + '", "kind": "ExecCredential", "status": {"token": "%s"}}\' "$(printf %s "$KUBERNETES_EXEC_INFO" | tr -d \'\\n\' | base64 -w0)"',
        version,
        interactiveMode="Never",
    )


# --- auth providers
shapes(
    oidc_valid=lambda s: s.identity(auth_provider=_oidc(**{"id-token": _jwt(32503680000)})),
    oidc_expired=lambda s: s.identity(auth_provider=_oidc(**{"id-token": _jwt(1)})),
    oidc_unreachable=lambda s: s.identity(
        auth_provider=_oidc(**{"client-secret": TOKEN, "refresh-token": TOKEN + "r"})
    ),
    oidc_no_jwt=lambda s: s.identity(auth_provider=_oidc(**{"id-token": TOKEN})),
    oidc_no_json=lambda s: s.identity(auth_provider=_oidc(**{"id-token": "a.b.c"})),
    oidc_no_issuer=lambda s: s.identity(
        auth_provider=_oidc(**{"idp-issuer-url": "", "id-token": _jwt(32503680000)})
    ),
    oidc_no_client=lambda s: s.identity(
        auth_provider=_oidc(**{"client-id": None, "id-token": _jwt(32503680000)})
    ),
    oidc_config_null=lambda s: s.identity(auth_provider={"name": "oidc", "config": None}),
    oidc_and_token=lambda s: s.identity(token=TOKEN, auth_provider=_oidc()),
    oidc_and_certificate=lambda s: s.user.update({"auth-provider": _oidc()}),
    oidc_broken_ca=lambda s: s.identity(
        auth_provider=_oidc(
            **{"id-token": _jwt(32503680000), "idp-certificate-authority-data": "!!"}
        )
    ),
    provider_gcp=lambda s: s.identity(
        auth_provider={
            "name": "gcp",
            "config": {"access-token": TOKEN, "expiry": "2999-01-01T00:00:00Z"},
        }
    ),
    provider_azure=lambda s: s.identity(
        auth_provider={"name": "azure", "config": {"access-token": TOKEN}}
    ),
    provider_openstack=lambda s: s.identity(auth_provider={"name": "openstack"}),
    provider_unknown=lambda s: s.identity(auth_provider={"name": TOKEN}),
    provider_null=lambda s: s.user.update({"auth-provider": None}),
    provider_empty=lambda s: s.user.update({"auth-provider": {}}),
    provider_text=lambda s: s.user.update({"auth-provider": "gcp"}),
    provider_number=lambda s: s.identity(auth_provider={"name": "oidc", "config": {"a": 7}}),
    provider_gcp_and_token=lambda s: s.identity(token=TOKEN, auth_provider={"name": "gcp"}),
)

# --- proxies
PROXY = "proxy-url"
shapes(
    proxy=lambda s: s.cluster.update({PROXY: f"http://127.0.0.1:{s.world.proxy}"}),
    proxy_closed=lambda s: s.cluster.update({PROXY: f"http://127.0.0.1:{s.world.closed}"}),
    proxy_login=lambda s: s.cluster.update(
        {PROXY: f"http://me:{TOKEN}%40@127.0.0.1:{s.world.proxy}"}
    ),
    proxy_login_closed=lambda s: s.cluster.update(
        {PROXY: f"http://me:{TOKEN}%40@127.0.0.1:{s.world.closed}"}
    ),
    proxy_name_only=lambda s: s.cluster.update({PROXY: f"http://me@127.0.0.1:{s.world.proxy}"}),
    proxy_path=lambda s: s.cluster.update({PROXY: f"http://127.0.0.1:{s.world.proxy}/a?b"}),
    proxy_tls=lambda s: s.cluster.update({PROXY: f"https://127.0.0.1:{s.world.tls_proxy}"}),
    proxy_tls_login=lambda s: s.cluster.update(
        {PROXY: f"https://me:{TOKEN}@127.0.0.1:{s.world.tls_proxy}"}
    ),
    proxy_tls_wrong_host=lambda s: s.cluster.update(
        {PROXY: f"https://127.0.0.2:{s.world.tls_proxy}"}
    ),
    proxy_tls_server_name=lambda s: s.cluster.update(
        {PROXY: f"https://127.0.0.1:{s.world.tls_proxy}", "tls-server-name": "kubernetes"}
    ),
    proxy_tls_on_plain=lambda s: s.cluster.update({PROXY: f"https://127.0.0.1:{s.world.proxy}"}),
    proxy_tls_insecure=lambda s: (
        _pop(s.cluster, CA),
        s.cluster.update(
            {PROXY: f"https://127.0.0.2:{s.world.tls_proxy}", "insecure-skip-tls-verify": True}
        ),
    ),
    proxy_socks=lambda s: s.cluster.update({PROXY: f"socks5://127.0.0.1:{s.world.proxy}"}),
    proxy_socks_name=lambda s: (
        s.cluster.update({PROXY: f"socks5://127.0.0.1:{s.world.proxy}"}),
        _server(lambda url: url.replace("127.0.0.1", "localhost"))(s),
    ),
    proxy_socks_login=lambda s: s.cluster.update(
        {PROXY: f"socks5://me:{TOKEN}@127.0.0.1:{s.world.proxy}"}
    ),
    proxy_socks_closed=lambda s: s.cluster.update({PROXY: f"socks5://127.0.0.1:{s.world.closed}"}),
    proxy_socks_http=lambda s: s.cluster.update(
        {
            PROXY: f"socks5://127.0.0.1:{s.world.proxy}",
            "server": f"http://127.0.0.1:{s.world.plain}",
        }
    ),
    proxy_socks5h=lambda s: s.cluster.update({PROXY: f"socks5h://127.0.0.1:{s.world.proxy}"}),
    proxy_socks4=lambda s: s.cluster.update({PROXY: f"socks4://127.0.0.1:{s.world.proxy}"}),
    proxy_capitals=lambda s: s.cluster.update({PROXY: f"HTTP://127.0.0.1:{s.world.proxy}"}),
    proxy_ftp=lambda s: s.cluster.update({PROXY: f"ftp://127.0.0.1:{s.world.proxy}"}),
    proxy_no_scheme=lambda s: s.cluster.update({PROXY: f"127.0.0.1:{s.world.proxy}"}),
    proxy_no_scheme_name=lambda s: s.cluster.update({PROXY: f"localhost:{s.world.proxy}"}),
    proxy_no_host=lambda s: s.cluster.update({PROXY: "http://"}),
    proxy_bad_port=lambda s: s.cluster.update({PROXY: "http://127.0.0.1:x"}),
    proxy_null=lambda s: s.cluster.update({PROXY: None, "tls-server-name": None}),
    proxy_empty=lambda s: s.cluster.update({PROXY: ""}),
    proxy_http_server=lambda s: s.cluster.update(
        {PROXY: f"http://127.0.0.1:{s.world.proxy}", "server": f"http://127.0.0.1:{s.world.plain}"}
    ),
    proxy_http_login=lambda s: s.cluster.update(
        {
            PROXY: f"http://me:pw@127.0.0.1:{s.world.proxy}",
            "server": f"http://127.0.0.1:{s.world.plain}",
        }
    ),
    proxy_and_no_proxy=lambda s: (
        s.cluster.update({PROXY: f"http://127.0.0.1:{s.world.proxy}"}),
        s.env.update(NO_PROXY="*"),
    ),
    proxy_umlaut=lambda s: s.cluster.update({PROXY: "http://\u00e4.invalid:1"}),
)

NAMED = "api.lab.invalid"


def _env_proxy(server: str = f"https://{NAMED}:6443", **env: str) -> Callable[[Shape], object]:
    def change(s: Shape) -> None:
        ports = {
            "TLS_SERVER": s.world.port,
            "PROXY": s.world.proxy,
            "TLS": s.world.tls_proxy,
            "CLOSED": s.world.closed,
        }
        address = server.replace("PLAIN", str(s.world.plain)).replace(
            "TLS_SERVER", str(s.world.port)
        )
        s.cluster.update({"server": address, "tls-server-name": "localhost"})
        for name, value in env.items():
            s.env[name] = re.sub("|".join(ports), lambda match: str(ports[match[0]]), value)

    return change


HTTP_PROXY = "http://127.0.0.1:PROXY"
shapes(
    env_proxy_loopback=lambda s: s.env.update(
        HTTPS_PROXY="http://127.0.0.1:1", https_proxy="http://127.0.0.1:1"
    ),
    env_proxy_loopback_no_scheme=lambda s: s.env.update(HTTPS_PROXY="127.0.0.1:1"),
    env_proxy_loopback_name=lambda s: (
        _server(lambda url: url.replace("127.0.0.1", "localhost"))(s),
        s.env.update(HTTPS_PROXY="127.0.0.1:1"),
    ),
    env_proxy_loopback_other=lambda s: (
        _server(lambda url: url.replace("127.0.0.1", "127.9.9.9"))(s),
        s.env.update(HTTPS_PROXY="127.0.0.1:1"),
    ),
    env_proxy_bad=lambda s: s.env.update(HTTPS_PROXY="http://[::1"),
    env_proxy=_env_proxy(HTTPS_PROXY=HTTP_PROXY),
    env_proxy_lower=_env_proxy(https_proxy=HTTP_PROXY),
    env_proxy_both=_env_proxy(https_proxy=HTTP_PROXY, HTTPS_PROXY="http://127.0.0.1:CLOSED"),
    env_proxy_no_scheme=_env_proxy(HTTPS_PROXY="127.0.0.1:PROXY"),
    env_proxy_no_scheme_name=_env_proxy(HTTPS_PROXY="localhost:PROXY"),
    env_proxy_http_only=_env_proxy(HTTP_PROXY=HTTP_PROXY),
    env_proxy_all=_env_proxy(ALL_PROXY=HTTP_PROXY),
    env_proxy_socks=_env_proxy(HTTPS_PROXY="socks5://127.0.0.1:PROXY"),
    env_proxy_socks5h=_env_proxy(HTTPS_PROXY="socks5h://127.0.0.1:PROXY"),
    env_proxy_tls=_env_proxy(HTTPS_PROXY="https://127.0.0.1:TLS"),
    env_proxy_login=_env_proxy(HTTPS_PROXY=f"http://me:{TOKEN}@127.0.0.1:PROXY"),
    env_proxy_broken=_env_proxy(HTTPS_PROXY="http://[::1"),
    env_proxy_odd_scheme=_env_proxy(HTTPS_PROXY="ftp://127.0.0.1:PROXY"),
    env_proxy_http_server=_env_proxy(f"http://{NAMED}:PLAIN", HTTP_PROXY=HTTP_PROXY),
    env_proxy_http_server_cgi=_env_proxy(
        f"http://{NAMED}:PLAIN", HTTP_PROXY=HTTP_PROXY, REQUEST_METHOD="GET"
    ),
    no_proxy_host=_env_proxy(HTTPS_PROXY=HTTP_PROXY, NO_PROXY=NAMED),
    no_proxy_capitals=_env_proxy(HTTPS_PROXY=HTTP_PROXY, NO_PROXY=f" x , {NAMED.upper()} "),
    no_proxy_lower=_env_proxy(HTTPS_PROXY=HTTP_PROXY, no_proxy=NAMED),
    no_proxy_star=_env_proxy(HTTPS_PROXY=HTTP_PROXY, NO_PROXY="*"),
    no_proxy_star_domain=_env_proxy(HTTPS_PROXY=HTTP_PROXY, NO_PROXY="*.lab.invalid"),
    no_proxy_star_itself=_env_proxy(HTTPS_PROXY=HTTP_PROXY, NO_PROXY=f"*.{NAMED}"),
    no_proxy_dot_domain=_env_proxy(HTTPS_PROXY=HTTP_PROXY, NO_PROXY=".lab.invalid"),
    no_proxy_dot_itself=_env_proxy(HTTPS_PROXY=HTTP_PROXY, NO_PROXY=f".{NAMED}"),
    no_proxy_domain=_env_proxy(HTTPS_PROXY=HTTP_PROXY, NO_PROXY="lab.invalid"),
    no_proxy_part=_env_proxy(HTTPS_PROXY=HTTP_PROXY, NO_PROXY="ab.invalid"),
    no_proxy_port=_env_proxy(HTTPS_PROXY=HTTP_PROXY, NO_PROXY=f"{NAMED}:6443"),
    no_proxy_other_port=_env_proxy(HTTPS_PROXY=HTTP_PROXY, NO_PROXY=f"{NAMED}:1"),
    no_proxy_domain_port=_env_proxy(HTTPS_PROXY=HTTP_PROXY, NO_PROXY=".lab.invalid:6443"),
    no_proxy_cidr=_env_proxy(
        "https://0.0.0.0:TLS_SERVER", HTTPS_PROXY=HTTP_PROXY, NO_PROXY="0.0.0.0/8"
    ),
    no_proxy_other_cidr=_env_proxy(
        "https://0.0.0.0:TLS_SERVER", HTTPS_PROXY=HTTP_PROXY, NO_PROXY="11.0.0.0/8"
    ),
    no_proxy_odd_cidr=_env_proxy(
        "https://0.0.0.0:TLS_SERVER", HTTPS_PROXY=HTTP_PROXY, NO_PROXY="0.0.0.9/8"
    ),
    no_proxy_address=_env_proxy(
        "https://0.0.0.0:TLS_SERVER", HTTPS_PROXY=HTTP_PROXY, NO_PROXY="0.0.0.0"
    ),
    no_proxy_address_port=_env_proxy(
        "https://0.0.0.0:TLS_SERVER", HTTPS_PROXY=HTTP_PROXY, NO_PROXY="0.0.0.0:TLS_SERVER"
    ),
    no_proxy_no_port=_env_proxy(
        f"https://{NAMED}", HTTPS_PROXY=HTTP_PROXY, NO_PROXY=f"{NAMED}:443"
    ),
)

# --- every field with values of every kind
VALUES: dict[str, Any] = {
    "null": None,
    "text": "x",
    "none": "",
    "7": 7,
    "true": True,
    "list": [],
    "nulls": [None],
    "object": {},
    "objects": [{}],
    "inner": {"a": None},
}
FIELDS: dict[str, tuple[str, ...]] = {
    "cluster": (
        "server",
        "tls-server-name",
        "insecure-skip-tls-verify",
        "certificate-authority",
        CA,
        PROXY,
        "disable-compression",
        "extensions",
    ),
    "user": (
        "client-certificate",
        CERT,
        "client-key",
        KEY,
        "token",
        "tokenFile",
        "as",
        "as-uid",
        "as-groups",
        "as-user-extra",
        "username",
        "password",
        "auth-provider",
        "exec",
        "extensions",
    ),
    "context": ("cluster", "user", "namespace", "extensions"),
    "config": (
        "kind",
        "apiVersion",
        "preferences",
        "clusters",
        "users",
        "contexts",
        "current-context",
        "extensions",
    ),
}


def _field(part: str, name: str, value: Any) -> Callable[[Shape], object]:
    return lambda s: getattr(s, part).update({name: value})


SWEEP = {
    f"{part}.{name}={label}": _field(part, name, value)
    for part, names in FIELDS.items()
    for name in names
    for label, value in VALUES.items()
}
