"""Filling etcd with nodes, or whatever else a control plane has when it comes up."""

import contextlib
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from threading import Lock

from gpuwl.controlplane import store
from gpuwl.errors import InputError
from gpuwl.k8s.objects import Object
from gpuwl.k8s.soundness import complaint
from gpuwl.system.progress import Listener, Progress

Say = Listener

CONNECTIONS = 2
OBJECTS_WORTH_A_CONNECTION = 500
SAY_EVERY = 0.25
"""Seconds between two lines of progress."""


def load(folder: Path, objects: list[Object], say: Say) -> None:
    """Write the objects into the etcd of the control plane in `folder`, while its API server boots.

    Says how far it is, a few times a second. Raises InputError for an object that no cluster can
    hold, SetupError where etcd does not take them.
    """
    for item in objects:
        if found := complaint(item):
            raise unusable(item["kind"], item["metadata"].get("name"), found)
    crew = _Crew(folder, objects)
    wanted = min(CONNECTIONS, 1 + len(objects) // OBJECTS_WORTH_A_CONNECTION)
    what = "nodes" if all(one["kind"] == "Node" for one in objects) else "objects"
    with futures.ThreadPoolExecutor(wanted) as threads:
        try:
            running = {threads.submit(crew.work) for _ in range(wanted)}
            while running:
                done, running = futures.wait(running, SAY_EVERY, futures.FIRST_EXCEPTION)
                for one in done:
                    one.result()
                if running:
                    say.progress(Progress(f"loading {what}", crew.written, len(objects), what))
        finally:
            crew.stopped = True


def unusable(kind: str, name: object, why: str) -> InputError:
    """Return the error that names an object of the dump that no cluster can hold."""
    return InputError(f"the {kind.lower()} {name} of the dump cannot be used: {why}")


class _Crew:
    """Threads that share the objects, each with a connection of its own."""

    def __init__(self, folder: Path, objects: list[Object]) -> None:
        self._folder = folder
        self._batches: Iterator[list[tuple[str, bytes]]] = store.batches(objects)
        self._turn = Lock()
        self.written = 0
        self.stopped = False

    def work(self) -> None:
        with contextlib.closing(store.Store(self._folder)) as connection:
            while not self.stopped and (batch := self._next()):
                connection.put(batch)
                self.written += len(batch)

    def _next(self) -> list[tuple[str, bytes]] | None:
        with self._turn:  # a generator runs in one thread at a time
            return next(self._batches, None)
