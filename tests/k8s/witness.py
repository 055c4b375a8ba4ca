"""A TLS server and proxies on loopback that write down what a client shows them.

Both kubectl and gpuwl are sent there with the same kubeconfig: what the server saw of the two must
be the same. It plays no API server: it knows one answer.
"""

import contextlib
import http.client
import http.server
import json
import socket
import ssl
import threading
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuwl.controlplane.credentials import Authority, Pair

SHOWN = ("authorization", "impersonate-user", "impersonate-uid", "impersonate-group")
ANSWER = json.dumps({"gitVersion": "v1.37.2", "major": "1", "minor": "37"}).encode()
EXPIRED = json.dumps({"kind": "Status", "code": 401, "message": "Unauthorized"}).encode()


@dataclass
class Seen:
    """What clients showed; `names` are the TLS server names that they asked for."""

    requests: list[dict[str, Any]] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)
    tunnels: list[str] = field(default_factory=list)
    refuse: set[str] = field(default_factory=set)


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    seen: Seen

    def do_GET(self) -> None:
        shown = {
            name.lower(): sorted(self.headers.get_all(name, []))
            for name in self.headers
            if name.lower() in SHOWN or name.lower().startswith("impersonate-extra-")
        }
        shown["path"] = [urllib.parse.urlsplit(self.path).path]
        if isinstance(self.connection, ssl.SSLSocket):
            certificate: Any = self.connection.getpeercert() or {}
            shown["certificate"] = [repr(certificate.get("subject"))]
        self.seen.requests.append(shown)
        refused = self.headers.get("Authorization") in self.seen.refuse
        body = EXPIRED if refused else ANSWER
        self.send_response(401 if refused else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class _Quiet(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        pass


class _Tls(_Quiet):
    context: ssl.SSLContext

    def finish_request(self, request: Any, client_address: Any) -> None:
        request.settimeout(10)
        with self.context.wrap_socket(request, server_side=True) as wrapped:
            super().finish_request(wrapped, client_address)


@dataclass(frozen=True)
class Identities:
    """An authority, and what it issued to server and client."""

    authority: bytes
    server: Pair
    client: Pair

    @classmethod
    def made(cls) -> "Identities":
        """Issue all of them."""
        authority = Authority()
        client = authority.client("somebody", "some")
        return cls(authority.certificate, authority.server(), client)


def server_context(identities: Identities, folder: Path, seen: Seen) -> ssl.SSLContext:
    """Return the context of a server that asks for a client certificate and needs none."""
    for name, pem in (("s.crt", identities.server.certificate), ("s.key", identities.server.key)):
        (folder / name).write_bytes(pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "s.crt", folder / "s.key")
    context.load_verify_locations(cadata=identities.authority.decode())
    context.verify_mode = ssl.CERT_OPTIONAL
    context.sni_callback = lambda _socket, name, _context: seen.names.append(name)
    return context


@contextlib.contextmanager
def serving(seen: Seen, context: ssl.SSLContext | None) -> Iterator[int]:
    """Serve on a port of 127.0.0.1, with TLS where a context is given."""
    handler = type("Handler", (_Handler,), {"seen": seen})
    kind = _Tls if context else _Quiet
    server = kind(("127.0.0.1", 0), handler)
    if isinstance(server, _Tls) and context:
        server.context = context
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextlib.contextmanager
def proxying(seen: Seen, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serve HTTP CONNECT, absolute addresses and SOCKS5 on one port, behind TLS with a context."""
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=_proxied, args=(client, seen, context), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()


def _proxied(client: socket.socket, seen: Seen, context: ssl.SSLContext | None) -> None:
    with contextlib.suppress(OSError), client:
        client.settimeout(10)
        talk: Any = context.wrap_socket(client, server_side=True) if context else client
        with talk:
            first = talk.recv(1)
            upstream = _socks(talk, seen) if first == b"\5" else _http(talk, first, seen)
            with upstream:
                back = threading.Thread(target=_pour, args=(upstream, talk), daemon=True)
                back.start()
                _pour(talk, upstream)
                back.join(10)


def _pour(source: Any, target: Any) -> None:
    with contextlib.suppress(OSError, ValueError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


def _http(talk: Any, first: bytes, seen: Seen) -> socket.socket:
    head = first
    while b"\r\n\r\n" not in head:
        more = talk.recv(1)
        if not more:
            raise OSError
        head += more
    lines = head.decode().splitlines()
    method, target, _ = lines[0].split()
    login = next((line for line in lines if line.lower().startswith("proxy-authorization")), "")
    seen.tunnels.append(f"{method} {login}".strip())
    if method == "CONNECT":
        host, port = target.rsplit(":", 1)
        upstream = socket.create_connection((host, int(port)), 10)
        talk.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        return upstream
    url = urllib.parse.urlsplit(target)
    upstream = socket.create_connection((url.hostname or "", url.port or 80), 10)
    path = f"{url.path}?{url.query}" if url.query else url.path
    kept = [line for line in lines[1:] if not line.lower().startswith(("proxy-", "connection"))]
    upstream.sendall("\r\n".join([f"{method} {path} HTTP/1.1", *kept[:-1], "", ""]).encode())
    return upstream


def _socks(talk: Any, seen: Seen) -> socket.socket:
    methods = talk.recv(talk.recv(1)[0])
    login = b""
    if 2 in methods:
        talk.sendall(b"\5\2")
        talk.recv(1)
        name = talk.recv(talk.recv(1)[0])
        login = name + b":" + talk.recv(talk.recv(1)[0])
        talk.sendall(b"\1\0")
    else:
        talk.sendall(b"\5\0")
    kind = talk.recv(4)[3]
    if kind == 3:
        host = talk.recv(talk.recv(1)[0]).decode()
    else:
        host = socket.inet_ntop(
            *((socket.AF_INET, talk.recv(4)) if kind == 1 else (socket.AF_INET6, talk.recv(16)))
        )
    port = int.from_bytes(talk.recv(2), "big")
    seen.tunnels.append(f"SOCKS {'name' if kind == 3 else 'address'} {login.decode()}".strip())
    upstream = socket.create_connection((host, port), 10)
    talk.sendall(b"\5\0\0\1\0\0\0\0\0\0")
    return upstream


__all__ = ["Identities", "Seen", "http", "proxying", "server_context", "serving"]
