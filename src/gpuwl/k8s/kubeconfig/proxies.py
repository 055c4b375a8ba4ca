"""Which proxy leads to a server: the kubeconfig's, or that of the environment's variables.

Source: golang.org/x/net/http/httpproxy (HTTPS_PROXY, HTTP_PROXY, NO_PROXY, also in small letters).
"""

import ipaddress
import os
import re

from gpuwl.k8s.kubeconfig import address
from gpuwl.k8s.kubeconfig.address import Address
from gpuwl.k8s.kubeconfig.problem import Problem


def leading_to(server: Address, proxy_url: str) -> Address | None:
    """Return the proxy to a server, None for a direct connection. Raises Problem.

    A proxy that the kubeconfig names counts on loopback too, and NO_PROXY says nothing about it.
    """
    if proxy_url:
        return address.proxy(proxy_url)
    name = "HTTPS_PROXY" if server.secure else "HTTP_PROXY"
    value = _variable(name)
    if not value or _is_direct(server, _variable("NO_PROXY")):
        return None
    if name == "HTTP_PROXY" and os.environ.get("REQUEST_METHOD"):
        raise Problem("HTTP_PROXY does not count in a CGI program, where anybody could set it")
    found = address.variable_proxy(value)
    if not found:
        raise Problem(f"{name} is no address of a proxy")
    return found


_BRACKETED = re.compile(r"\[(.*)\](?::(\d+))?")
_WITH_PORT = re.compile(r"([^:]*):(\d+)")


def _variable(name: str) -> str:
    return os.environ.get(name) or os.environ.get(name.lower()) or ""


def _is_direct(server: Address, exceptions: str) -> bool:
    host, number = server.host.lower(), _number(server.host)
    if host == "localhost" or (number and number.is_loopback):
        return True
    entries = [entry.strip().lower() for entry in exceptions.split(",")]
    return any(entry and _fits(entry, host, number, server.real_port) for entry in entries)


Number = ipaddress.IPv4Address | ipaddress.IPv6Address


def _number(host: str) -> Number | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _fits(entry: str, host: str, number: Number | None, port: int) -> bool:
    if entry == "*":
        return True
    if "/" in entry:
        return number is not None and _within(number, entry)
    match = _BRACKETED.fullmatch(entry) or _WITH_PORT.fullmatch(entry)
    named, named_port = match.groups() if match else (entry, None)
    if named_port and int(named_port) != port:
        return False
    if _number(named):
        return number == _number(named)
    return number is None and _is_below(named, host)


def _is_below(named: str, host: str) -> bool:
    """Tell whether a name fits: `a` and `.a` and `*.a` mean what is below, the first also itself."""
    name = named.removeprefix("*")
    if not name:
        return False
    return host.endswith(name if name.startswith(".") else f".{name}") or host == name


def _within(number: Number, network: str) -> bool:
    try:
        return number in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
