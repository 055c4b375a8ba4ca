"""Creating many nodes quickly."""

import contextlib
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from threading import Event

from gpuwl.controlplane import components
from gpuwl.controlplane.admin import Connection
from gpuwl.errors import ClusterError, InputError
from gpuwl.k8s import paths
from gpuwl.k8s.objects import Object
from gpuwl.system.progress import Listener, Progress

Say = Listener

CONNECTIONS = 8
NODES_WORTH_A_CONNECTION = 50
SAY_EVERY = 0.25
"""Seconds between two lines of progress."""
INVALID = frozenset({400, 413, 422})
"""Statuses that say that the node is at fault: malformed, too large, invalid."""


def load(folder: Path, port: int, nodes: list[Object], say: Say) -> None:
    """Create the nodes, each with one request that carries its status too.

    Says how far it is, a few times a second. Raises InputError where the server finds a node
    invalid, ClusterError for any other refusal.
    """
    crew = _Crew(folder, port, nodes)
    wanted = min(CONNECTIONS, 1 + len(nodes) // NODES_WORTH_A_CONNECTION)
    with futures.ThreadPoolExecutor(wanted) as threads:
        try:
            running = {threads.submit(crew.work) for _ in range(wanted)}
            while running:
                done, running = futures.wait(running, SAY_EVERY, futures.FIRST_EXCEPTION)
                for one in done:
                    one.result()
                if running:
                    say.progress(Progress("creating nodes", crew.created, len(nodes), "nodes"))
        finally:
            crew.stopped.set()


class _Crew:
    """Threads that share one list of nodes, each with a connection of its own."""

    def __init__(self, folder: Path, port: int, nodes: list[Object]) -> None:
        self._folder = folder
        self._port = port
        self._nodes: Iterator[Object] = iter(nodes)  # a list's iterator may be shared by threads
        self.created = 0
        self.stopped = Event()

    def work(self) -> None:
        with contextlib.closing(Connection(self._folder, self._port, seconds=30)) as connection:
            for node in self._nodes:
                if self.stopped.is_set():
                    return
                if not connection.create(paths.NODES, node):
                    self._create_again(node)
                self.created += 1

    def _create_again(self, node: Object) -> None:
        """Ask with the full client, which repeats what may be repeated and has the server's words.

        No name occurs twice, so one that exists was created by a request whose answer got lost.
        """
        from gpuwl.k8s.client import Cluster

        client = Cluster.from_kubeconfig(self._folder / components.KUBECONFIG)
        try:
            client.create(paths.NODES, node)
        except ClusterError as error:
            if error.status in INVALID:
                name = node["metadata"]["name"]
                raise InputError(
                    f"the node {name} of the dump cannot be used: {error.message}"
                ) from None
            if error.status != 409:
                raise
        finally:
            client.close()
