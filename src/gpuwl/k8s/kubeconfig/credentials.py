"""From a kubeconfig, or a Pod's service account, to what a client needs to connect."""

import contextlib
import os
import re
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpuwl.errors import SetupError
from gpuwl.k8s.kubeconfig import address, choice, files, plugin, proxies, trust
from gpuwl.k8s.kubeconfig.address import Address
from gpuwl.k8s.kubeconfig.choice import Choice
from gpuwl.k8s.kubeconfig.login import Header, Login
from gpuwl.k8s.kubeconfig.plugin import Credential
from gpuwl.k8s.kubeconfig.problem import Problem
from gpuwl.k8s.kubeconfig.records import Cluster, Plugin, User

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_HINT = "name a kubeconfig with --kubeconfig, or add --local to use a local control plane"


@dataclass
class Credentials:
    """Server, authority and identity of one context; secrets are in memory only.

    `authority` is PEM, empty where the system's authorities count. `tls` is None for plain HTTP.
    `insecure` tells that nobody checks the server's certificate.
    """

    context: str
    server: Address
    authority: bytes
    tls: ssl.SSLContext | None
    server_name: str
    insecure: bool
    proxy: Address | None = field(repr=False)
    _login: Login = field(repr=False)
    _shown: object = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def headers(self) -> list[Header]:
        """Return the headers that identify the next request. Raises SetupError."""
        with explained("that is in use"):
            headers = self._login.headers()
            self._show()
            return headers

    def _show(self) -> None:
        """Let new connections show the certificate of now, which a plugin may have renewed."""
        with self._lock:
            pair = self._login.pair
            if self.tls and pair and pair is not self._shown:
                trust.show(self.tls, pair)
                self._shown = pair


def load(path: str, context: str | None) -> Credentials:
    """Load a kubeconfig (or several, joined by `:` as in KUBECONFIG) by kubectl's rules.

    Raises SetupError where kubectl would not use it.
    """
    with explained(path):
        return of(choice.chosen(files.merged(path), context))


def current_context(path: str) -> str:
    """Return the current context of a kubeconfig, empty for none. Raises SetupError."""
    with explained(path):
        return files.merged(path).current


def in_cluster() -> Credentials:
    """Load what a Pod has of its own cluster. Raises SetupError where it is not complete."""
    with explained("the service account of this Pod"):
        host, port = (os.environ.get(f"KUBERNETES_SERVICE_{name}", "") for name in ("HOST", "PORT"))
        if not host or not port:
            raise Problem("KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set")
        authority = SERVICE_ACCOUNT / "ca.crt"
        where = f"[{host}]" if ":" in host else host
        cluster = Cluster(
            server=f"https://{where}:{port}",
            authority_file=str(authority) if authority.exists() else "",
        )
        user = User(token_file=str(SERVICE_ACCOUNT / "token"))
        return of(Choice("in-cluster", cluster, user))


def of(chosen: Choice) -> Credentials:
    """Return what a cluster and a user come to. Raises Problem; a plugin runs here first."""
    cluster = chosen.cluster
    server = address.server(cluster.server)
    proxy = proxies.leading_to(server, cluster.proxy)
    authority = _authority(cluster) if server.secure else None
    tls = trust.context(authority, insecure=cluster.insecure) if server.secure else None
    told = replace(cluster, server=_told_server(cluster.server, server))

    def run(entry: Plugin) -> Credential:
        return plugin.run(entry, plugin.cluster_info(told, told.server, authority or b""))

    found = Credentials(
        context=chosen.context,
        server=replace(server, login=None),
        authority=authority or b"",
        tls=tls,
        server_name=cluster.server_name,
        insecure=server.secure and cluster.insecure,
        proxy=proxy,
        _login=Login(chosen.user, server, run),
    )
    found._show()  # noqa: SLF001 - a certificate that cannot be used is said before a request
    return found


def _authority(cluster: Cluster) -> bytes | None:
    named = bool(cluster.authority or cluster.authority_file)
    if named and cluster.insecure:
        raise Problem("its cluster has both a certificate authority and insecure-skip-tls-verify")
    if cluster.authority_file:
        # an empty file stands for the system's authorities
        return choice.content(cluster.authority_file, "certificate authority") or None
    return cluster.authority or None


def _told_server(text: str, server: Address) -> str:
    """Return the address as kubectl tells it to a plugin: without a query where it has a path."""
    return re.split("[?#]", text)[0] if len(server.path) > 1 else text


@contextlib.contextmanager
def explained(source: str) -> Iterator[None]:
    """Turn a Problem into the error that a person sees."""
    try:
        yield
    except Problem as problem:
        words = f"cannot use the kubeconfig {source}: {problem.words}"
        raise SetupError(words, hint=problem.hint or _HINT) from None
