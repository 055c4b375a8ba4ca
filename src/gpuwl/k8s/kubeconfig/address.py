"""Addresses of servers and proxies as Go's net/url and client-go take them.

Source: net/url; k8s.io/client-go, rest/url_utils.go and tools/clientcmd/helpers.go.
"""

import base64
import posixpath
import re
from dataclasses import dataclass, field, replace
from urllib.parse import quote, unquote, unquote_to_bytes

from gpuwl.k8s.kubeconfig.problem import Problem
from gpuwl.system import secrets

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_NOT_IN_HOST = re.compile(r"[\s\\^{}|`%\"<>#/?]")
_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_PORTS = {"https": 443, "http": 80, "socks5": 1080, "socks5h": 1080}
PROXY_SCHEMES = ("http", "https", "socks5")


@dataclass(frozen=True)
class Address:
    """Where something listens. `host` has no brackets; `login` is name and password."""

    scheme: str
    host: str
    port: int | None
    path: str = ""
    login: tuple[str, str] | None = field(default=None, repr=False)

    @property
    def secure(self) -> bool:
        """Tell whether TLS is spoken there."""
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """Host and port, as they stand in an address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port is None else f"{host}:{self.port}"

    @property
    def real_port(self) -> int:
        """The port, or what the scheme stands for."""
        return self.port or _PORTS.get(self.scheme, 80)

    def __str__(self) -> str:
        """Return the address without its login."""
        return f"{self.scheme}://{self.authority}{self.path}"

    @property
    def basic(self) -> str | None:
        """The value of a header that logs in with name and password, None without a login."""
        return basic(*self.login) if self.login else None


def basic(name: str, password: str) -> str:
    """Return the value of an Authorization header for a name and a password."""
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def server(text: str) -> Address:
    """Return where a cluster's `server` leads: without a scheme it is plain HTTP, as for kubectl.

    Raises Problem.
    """
    found = _parsed(text)
    if not found:
        found = _parsed(f"http://{text}")
        if not found or found.path.strip("/"):
            raise Problem("its cluster's server is neither an address nor HOST:PORT")
    if found.scheme not in {"https", "http"}:
        raise Problem("its cluster's server is neither https:// nor http://")
    return replace(found, path=_normal(found.path))


def proxy(text: str) -> Address:
    """Return where a cluster's `proxy-url` leads. Raises Problem."""
    found = _parsed(text, without_host=True)
    if not found or found.scheme not in PROXY_SCHEMES:
        raise Problem("its cluster's proxy-url is neither http:// nor https:// nor socks5://")
    if not found.host:
        raise Problem("its cluster's proxy-url names no host")
    return found


def variable_proxy(text: str) -> Address | None:
    """Return where HTTPS_PROXY or HTTP_PROXY leads, with or without a scheme; None for nowhere."""
    return _parsed(text) or _parsed(f"http://{text}")


def _parsed(text: str, *, without_host: bool = False) -> Address | None:
    """Return the parts of an address that has scheme and host, None for anything else."""
    match = _SCHEME.fullmatch(text)
    if not match or _CONTROL.search(text):
        return None
    scheme, rest = match[1].lower(), match[2].split("#", 1)[0].split("?", 1)[0]
    if not rest.startswith("//"):
        return None
    authority, slash, path = rest[2:].partition("/")
    login, _, where = authority.rpartition("@")
    parts = _host_and_port(where)
    if parts is None or _ESCAPE.search(path) or not (parts[0] or without_host):
        return None
    host, port = parts
    return Address(scheme, host, port, slash + path, _login(login) if login else None)


def _host_and_port(where: str) -> tuple[str, int | None] | None:
    match = re.fullmatch(r"\[([0-9A-Fa-f:.]+)\](?::(\d*))?|([^:\[\]]*)(?::(\d*))?", where)
    if not match:
        return None
    host = match[1] or match[3] or ""
    port = match[2] or match[4]
    if _NOT_IN_HOST.search(host) or (port and int(port) > 65535):
        return None
    return _ascii(host), int(port) if port else None


def _ascii(host: str) -> str:
    try:
        return host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        raise Problem("a host's name in it cannot be looked up") from None


def _login(text: str) -> tuple[str, str]:
    name, _, password = text.partition(":")
    secrets.know(password, unquote(password))
    return unquote(name), unquote(password)


def _normal(path: str) -> str:
    """Return a path without empty parts, dots and a slash at its end, escaped anew."""
    plain = posixpath.normpath("/" + unquote_to_bytes(path).decode(errors="surrogateescape"))
    plain = "/" + plain.strip("/")
    return "" if plain == "/" else quote(plain, safe="/$&+,:;=@~", errors="surrogateescape")
