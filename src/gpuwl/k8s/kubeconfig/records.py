"""What a kubeconfig holds, typed and frozen; secrets stay out of each representation.

Source of the fields: k8s.io/client-go, tools/clientcmd/api/v1/types.go.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from gpuwl.k8s.kubeconfig.fields import Fields
from gpuwl.k8s.kubeconfig.problem import Problem
from gpuwl.system import secrets

Item = TypeVar("Item")
VERSIONS = "client.authentication.k8s.io/"
_SECRET_SETTINGS = ("id-token", "refresh-token", "client-secret", "access-token")
PLUGIN_CONFIG = "client.authentication.k8s.io/exec"
"""The extension of a cluster that a plugin is told."""


@dataclass(frozen=True)
class Cluster:
    """Where the server is, and how it is known. Paths are absolute."""

    server: str = ""
    server_name: str = ""
    insecure: bool = False
    authority_file: str = ""
    authority: bytes = b""
    proxy: str = field(default="", repr=False)
    uncompressed: bool = False
    plugin_config: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class Plugin:
    """A program that prints credentials. `arguments` and `environment` may hold secrets."""

    command: str
    arguments: tuple[str, ...] = field(repr=False)
    environment: tuple[tuple[str, str], ...] = field(repr=False)
    version: str
    hint: str
    cluster_info: bool
    mode: str


@dataclass(frozen=True)
class Provider:
    """A way to log in that is built into kubectl."""

    name: str
    settings: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class User:
    """An identity. Paths are absolute."""

    certificate_file: str = ""
    certificate: bytes = b""
    key_file: str = ""
    key: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    token_file: str = ""
    acts_as: str = ""
    acts_as_uid: str = ""
    acts_as_groups: tuple[str, ...] = ()
    acts_as_extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    username: str = ""
    password: str = field(default="", repr=False)
    provider: Provider | None = None
    plugin: Plugin | None = None


@dataclass(frozen=True)
class Context:
    """The names of a cluster and a user."""

    cluster: str = ""
    user: str = ""


@dataclass(frozen=True)
class Kubeconfig:
    """One file, or several that were merged."""

    clusters: Mapping[str, Cluster] = field(default_factory=dict)
    users: Mapping[str, User] = field(default_factory=dict)
    contexts: Mapping[str, Context] = field(default_factory=dict)
    current: str = ""


def decoded(document: object, folder: Path) -> Kubeconfig:
    """Return what a document says, with paths relative to `folder`. Raises Problem."""
    fields = Fields(document)
    kind, version = fields.text("kind"), fields.text("apiVersion")
    if kind not in {"", "Config"} or version not in {"", "v1"}:
        raise Problem("it is no kubeconfig: kind is not Config, or apiVersion not v1")
    fields.within("preferences").flag("colors")
    _extensions(fields.within("preferences"))
    _extensions(fields)
    return Kubeconfig(
        clusters=_named(
            fields.entries("clusters"), lambda f: _cluster(f.within("cluster"), folder)
        ),
        users=_named(fields.entries("users"), lambda f: _user(f.within("user"), folder)),
        contexts=_named(fields.entries("contexts"), lambda f: _context(f.within("context"))),
        current=fields.text("current-context"),
    )


def _named(entries: Iterable[Fields], make: Callable[[Fields], Item]) -> dict[str, Item]:
    found: dict[str, Item] = {}
    for entry in entries:
        name = entry.text("name")
        if name in found:
            raise Problem(f"{entry.at('name')} is the name of an earlier entry too")
        found[name] = make(entry)
    return found


def _extensions(fields: Fields) -> dict[str, Any]:
    return _named(fields.entries("extensions"), lambda entry: entry.anything("extension"))


def _absolute(path: str, folder: Path) -> str:
    return str(folder / path) if path else ""


def _cluster(fields: Fields, folder: Path) -> Cluster:
    return Cluster(
        server=fields.text("server"),
        server_name=fields.text("tls-server-name"),
        insecure=fields.flag("insecure-skip-tls-verify"),
        authority_file=_absolute(fields.text("certificate-authority"), folder),
        authority=fields.data("certificate-authority-data"),
        proxy=fields.text("proxy-url"),
        uncompressed=fields.flag("disable-compression"),
        plugin_config=_extensions(fields).get(PLUGIN_CONFIG),
    )


def _user(fields: Fields, folder: Path) -> User:
    _extensions(fields)
    extra = fields.within("as-user-extra")
    secrets.know(fields.text("token"), fields.text("password"), fields.data("client-key-data"))
    return User(
        certificate_file=_absolute(fields.text("client-certificate"), folder),
        certificate=fields.data("client-certificate-data"),
        key_file=_absolute(fields.text("client-key"), folder),
        key=fields.data("client-key-data"),
        token=fields.text("token"),
        token_file=_absolute(fields.text("tokenFile"), folder),
        acts_as=fields.text("as"),
        acts_as_uid=fields.text("as-uid"),
        acts_as_groups=fields.texts("as-groups"),
        acts_as_extra={name: extra.texts(name) for name in extra.names()},
        username=fields.text("username"),
        password=fields.text("password"),
        provider=_provider(fields.within("auth-provider"))
        if fields.given("auth-provider")
        else None,
        plugin=_plugin(fields.within("exec"), folder) if fields.given("exec") else None,
    )


def _provider(fields: Fields) -> Provider:
    config = fields.within("config")
    settings = {name: config.text(name) for name in config.names()}
    secrets.know(*(settings.get(name, "") for name in _SECRET_SETTINGS))
    return Provider(fields.text("name"), settings)


def _plugin(fields: Fields, folder: Path) -> Plugin:
    command, version = fields.text("command"), fields.text("apiVersion")
    environment = tuple((e.text("name"), e.text("value")) for e in fields.entries("env"))
    secrets.know(*(value for _, value in environment))
    optional = version in {f"{VERSIONS}v1alpha1", f"{VERSIONS}v1beta1"}
    return Plugin(
        # a bare name is looked for on the PATH
        command=_absolute(command, folder) if "/" in command else command,
        arguments=fields.texts("args"),
        environment=environment,
        version=version,
        hint=fields.text("installHint"),
        cluster_info=fields.flag("provideClusterInfo"),
        mode=fields.text("interactiveMode") or ("IfAvailable" if optional else ""),
    )


def _context(fields: Fields) -> Context:
    _extensions(fields)
    fields.text("namespace")
    return Context(fields.text("cluster"), fields.text("user"))
