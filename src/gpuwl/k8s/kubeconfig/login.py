"""What a client shows of itself: headers with each request, a certificate with each connection.

Header values are as they go over the line: one character for one byte.
Source: k8s.io/client-go, transport/round_trippers.go and rest/transport.go.
"""

import re
import threading
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from gpuwl.k8s.kubeconfig import address, plugin, provider
from gpuwl.k8s.kubeconfig.address import Address
from gpuwl.k8s.kubeconfig.choice import content
from gpuwl.k8s.kubeconfig.plugin import Credential
from gpuwl.k8s.kubeconfig.problem import Problem
from gpuwl.k8s.kubeconfig.records import Plugin, User
from gpuwl.k8s.kubeconfig.trust import Pair
from gpuwl.system import secrets

Header = tuple[str, str]
_NOT_IN_HEADERS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_IN_NAMES = "!#$&'*+-.^_`|~"


class Login:
    """The identity of one user; safe in threads. A plain connection gets no secret at all."""

    def __init__(self, user: User, server: Address, run: Callable[[Plugin], Credential]) -> None:
        self._lock = threading.Lock()
        self._run = run
        self._plugin: Plugin | None = None
        self._credential = Credential()
        self._token: Callable[[], str] | None = None
        self.pair: Pair | None = None
        self._fixed = _impersonation(user)
        self._basic = server.basic
        if server.secure:
            self._take(user)
        self.headers()  # says now what could not be sent

    def headers(self) -> list[Header]:
        """Return the headers of the next request. A plugin runs anew where its time is over."""
        with self._lock:
            if self._plugin and self._credential.expired:
                self._refresh()
            value = self._basic or (self._token() if self._token else "")
        return [*self._fixed, *([("Authorization", _valid(value, "token"))] if value else [])]

    def _take(self, user: User) -> None:
        """Take what identifies a user, in kubectl's order. Raises Problem where nothing does."""
        self.pair = _pair(user)
        if user.provider:
            provider.check(user.provider)
        if user.plugin:
            plugin.check(user.plugin)
        self._token = _token(user)
        if self._token or self.pair:
            return
        if not user.plugin:
            raise Problem("its user has no credentials", hint="log in, or name another context")
        self._plugin, self._token = user.plugin, self._of_plugin
        self._refresh()

    def _refresh(self) -> None:
        if self._plugin:
            self._credential = self._run(self._plugin)
            secrets.know(self._credential.token)
            self.pair = self._credential.pair

    def _of_plugin(self) -> str:
        return f"Bearer {_wire(self._credential.token)}" if self._credential.token else ""


def _pair(user: User) -> Pair | None:
    if not (user.certificate or user.certificate_file):
        return None
    return Pair(
        user.certificate or content(user.certificate_file, "client certificate"),
        user.key or content(user.key_file, "client key"),
    )


def _token(user: User) -> Callable[[], str] | None:
    """Return what yields the header that a user's own entries mean, None where there are none."""
    if (user.token or user.token_file) and user.username:
        raise Problem("its user has both a token and a password")
    if user.token_file:
        return _of_file(Path(user.token_file), _wire(user.token))
    if user.token:
        return lambda: f"Bearer {_wire(user.token)}"
    if user.username:
        return lambda: address.basic(user.username, user.password)
    if user.provider:
        kept = user.provider
        return lambda: f"Bearer {_wire(provider.token(kept))}"
    return None


def _of_file(path: Path, otherwise: str) -> Callable[[], str]:
    """Return what reads a token at each request: whoever renews it writes the file anew."""
    kept = otherwise or content(str(path), "token file").strip().decode("latin-1")
    secrets.know(kept)
    if not kept:
        raise Problem(f"its token file {path} is empty")

    def read() -> str:
        try:
            found = path.read_bytes().strip().decode("latin-1")
        except OSError:
            found = ""
        secrets.know(found)
        return f"Bearer {found or kept}"

    return read


def _impersonation(user: User) -> list[Header]:
    """Return the headers that act as the identity which the user names, none for its own."""
    if not user.acts_as:
        return []
    named = [("Impersonate-User", user.acts_as)]
    named += [("Impersonate-Uid", user.acts_as_uid)] if user.acts_as_uid else []
    named += [("Impersonate-Group", group) for group in user.acts_as_groups]
    for key, values in user.acts_as_extra.items():
        name = f"Impersonate-Extra-{quote(key, safe=_IN_NAMES)}"
        named += [(name, value) for value in values]
    return [(name, _valid(_wire(value), "identity to act as")) for name, value in named]


def _wire(text: str) -> str:
    return text.encode(errors="replace").decode("latin-1")


def _valid(value: str, what: str) -> str:
    if _NOT_IN_HEADERS.search(value):
        raise Problem(f"its user's {what} holds a line break or another control character")
    return value.strip(" \t")  # as Go sends it
