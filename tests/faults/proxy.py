"""A proxy on loopback in front of the real API server that spoils one chosen request.

It speaks plain HTTP to its client and TLS with the administrator's certificate to the server. The
n-th request meets the fault; every other one passes untouched.
"""

import base64
import contextlib
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from gpuwl.system import waiting

DELAY = 1.0
"""Seconds; longer than the request limit of the runs that meet it."""

HOP_HEADERS = {"connection", "transfer-encoding", "content-length", "host"}
NUMBER_HEADERS = "Content-Length"


@dataclass(frozen=True)
class Request:
    """One request as the client sent it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    """Status line, headers and body of an answer."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    def head(self) -> bytes:
        """Return everything before the body; the connection closes behind it."""
        lines = [f"HTTP/1.1 {self.status} {http.client.responses.get(self.status, 'Unknown')}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        lines += [f"Content-Length: {len(self.body)}", "Connection: close", "", ""]
        return "\r\n".join(lines).encode()


Forward = Callable[[Request], Answer]
Fault = Callable[[socket.socket, Request, Forward], None]


def pass_on(client: socket.socket, request: Request, forward: Forward) -> None:
    """Do no harm."""
    answer = forward(request)
    client.sendall(answer.head() + answer.body)


def drop_before(client: socket.socket, request: Request, forward: Forward) -> None:
    """Close the connection; the server never sees the request."""


def drop_after(client: socket.socket, request: Request, forward: Forward) -> None:
    """Let the server act, then close the connection without an answer."""
    forward(request)


def delay(client: socket.socket, request: Request, forward: Forward) -> None:
    """Let the server act, and answer when nobody waits any more; other requests do not wait."""
    answer = forward(request)
    late = client.dup()

    def send() -> None:
        with late, contextlib.suppress(OSError):
            late.sendall(answer.head() + answer.body)

    timer = threading.Timer(DELAY, send)
    timer.daemon = True
    timer.start()


def cut_off(client: socket.socket, request: Request, forward: Forward) -> None:
    """Let the server act, and send half of the answer's body."""
    answer = forward(request)
    client.sendall(answer.head() + answer.body[: len(answer.body) // 2])


def status(code: int, reason: str, **headers: str) -> Fault:
    """Return the fault that answers with this status in the server's place."""

    def answer(client: socket.socket, request: Request, forward: Forward) -> None:
        words = {"kind": "Status", "status": "Failure", "code": code, "reason": reason}
        body = json.dumps({**words, "apiVersion": "v1", "message": f"spoilt on purpose: {reason}"})
        spoilt = Answer(code, body.encode(), {"Content-Type": "application/json", **headers})
        client.sendall(spoilt.head() + spoilt.body)

    return answer


class Proxy:
    """Listens on a free port until `close`; `fault` meets the request number `at` (from 1)."""

    def __init__(self, kubeconfig: Path) -> None:
        self._upstream = _Upstream(kubeconfig)
        self._at = 0
        self._fault: Fault = pass_on
        self._before: Callable[[], None] = lambda: None
        self._closed = False
        self.port = 0
        self.count = 0
        self._listen()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def spoil(
        self, at: int, fault: Fault = pass_on, *, before: Callable[[], None] = lambda: None
    ) -> None:
        """Spoil request number `at`, counted from now on; `before` is called when it arrives."""
        self.count, self._at, self._fault, self._before = 0, at, fault, before

    def refuse(self, at: int) -> None:
        """Let the connection for request number `at` be refused: nobody listens for a moment."""
        self.spoil(0)
        self._at = -at

    def close(self) -> None:
        """Stop listening and wait for the thread."""
        self._closed = True
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            pass
        self._thread.join(5)
        self._listener.close()
        self._upstream.close()

    def write_kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig that leads here."""
        server = {"server": f"http://127.0.0.1:{self.port}"}
        path.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "proxy", "cluster": server}],
                    "users": [{"name": "proxy", "user": {}}],
                    "contexts": [
                        {"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}
                    ],
                    "current-context": "proxy",
                }
            )
        )
        return path

    def _listen(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
        self.port = self._listener.getsockname()[1]

    def _serve(self) -> None:
        while not self._closed:
            client, _ = self._listener.accept()
            with client:
                client.settimeout(10)
                with contextlib.suppress(OSError, ValueError):
                    self._handle(client)
            if self._at == -(self.count + 1):
                self._pause_listening()

    def _handle(self, client: socket.socket) -> None:
        request = _read(client)
        if request is None or self._closed:
            return
        self.count += 1
        if self.count != self._at:
            pass_on(client, request, self._upstream.forward)
            return
        self._before()
        self._fault(client, request, self._upstream.forward)

    def _pause_listening(self) -> None:
        self._at = 0
        self._listener.close()
        waiting.pause(0.1)
        self._listen()


class _Upstream:
    """A connection to the real API server, with the identity of a kubeconfig."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self._host = cluster["server"].removeprefix("https://")
        ca = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self._context = ssl.create_default_context(cadata=ca)
        pair = kubeconfig.with_name("proxy-pair.pem")
        data = (user["client-certificate-data"], user["client-key-data"])
        pair.touch(mode=0o600)
        pair.write_bytes(b"".join(base64.b64decode(part) for part in data))
        self._context.load_cert_chain(pair)
        pair.unlink()
        self._connection = self._connect()

    def forward(self, request: Request) -> Answer:
        """Send a request and return the server's answer."""
        headers = {k: v for k, v in request.headers.items() if k.lower() not in HOP_HEADERS}
        try:
            return self._send(request, headers)
        except (http.client.HTTPException, OSError):
            self._connection.close()  # the server closed a connection that was idle
            self._connection = self._connect()
            return self._send(request, headers)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, context=self._context, timeout=10)

    def _send(self, request: Request, headers: dict[str, str]) -> Answer:
        self._connection.request(request.method, request.path, request.body or None, headers)
        response = self._connection.getresponse()
        kept = {k: v for k, v in response.getheaders() if k.lower() not in HOP_HEADERS}
        return Answer(response.status, response.read(), kept)


def _read(client: socket.socket) -> Request | None:
    with client.makefile("rb") as stream:
        line = stream.readline().decode()
        if not line.strip():
            return None
        method, path, _ = line.split()
        headers = dict(_headers(stream))
        length = int(headers.get("Content-Length", 0))
        return Request(method, path, headers, stream.read(length))


def _headers(stream: Iterator[bytes]) -> Iterator[tuple[str, str]]:
    for line in stream:
        text = line.decode().strip()
        if not text:
            return
        name, _, value = text.partition(":")
        yield name.strip(), value.strip()
