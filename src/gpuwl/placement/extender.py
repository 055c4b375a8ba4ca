"""An extender of kube-scheduler that hears which nodes passed a Pod's filters, and lets none pass.

It hears it only for Pods that ask for `gpuwl.dev/probe`. The protocol is that of
https://pkg.go.dev/k8s.io/kube-scheduler/extender/v1; one that calls itself nodeCacheCapable is told names alone.
"""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import Any

RESOURCE = "gpuwl.dev/probe"
NOBODY = json.dumps({"nodenames": [], "failedNodes": {}}).encode()


class Heard:
    """Which nodes passed, by the name of the Pod that asked."""

    def __init__(self) -> None:
        self._nodes: dict[str, frozenset[str]] = {}
        self._news = Condition()

    def tell(self, pod: str, nodes: frozenset[str]) -> None:
        """Keep what was heard of a Pod."""
        with self._news:
            self._nodes[pod] = nodes
            self._news.notify_all()

    def of(self, pod: str) -> frozenset[str] | None:
        """Return the nodes that passed for a Pod, None where nothing was heard."""
        with self._news:
            return self._nodes.get(pod)


@contextmanager
def listening(heard: Heard) -> Iterator[str]:
    """Listen on loopback for a block; yields the address."""

    class Handler(_Handler):
        told = heard

    server = _Server(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 - its own
        """Say nothing of a connection that the scheduler's end broke."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    told: Heard

    def setup(self) -> None:
        """Answer at once: small writes would wait for each other's acknowledgement."""
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().setup()

    def do_POST(self) -> None:
        """Take note of the nodes that passed; let none pass."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = {key.lower(): value for key, value in body.items()}
        nodes = frozenset(asked.get("nodenames") or ())
        self.told.tell(asked["pod"]["metadata"]["name"], nodes)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(NOBODY)))
        self.end_headers()
        self.wfile.write(NOBODY)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its own
        """Say nothing."""
