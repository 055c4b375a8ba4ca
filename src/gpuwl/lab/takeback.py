"""Taking back what the journal lists, and nothing else: Pods, namespace, resources, labels."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpuwl.errors import ClusterError, GpuwlError, SetupError, WaitTimeoutError
from gpuwl.k8s import objects
from gpuwl.k8s.client import Cluster
from gpuwl.k8s.objects import Object
from gpuwl.lab import paths
from gpuwl.lab.journal import THE_NAMESPACE, Change, Journal, Value, shown
from gpuwl.lab.removal import Removal

CONFLICT = 409
CONFLICT_TRIES = 5
OF_THIS_ENTRY = frozenset({400, 403, CONFLICT, 422})
"""Statuses by which the server refuses one change; any other may meet each of them."""
PARTS = (objects.AMOUNTS, ("labels",))
"""Fields of a node that are changed together: the status has a subresource of its own."""


@dataclass(frozen=True)
class Note:
    """What became of one thing (`Pod/job-container`, `Node/lab-node-0`), in words."""

    thing: str
    what: str


class TakeBack:
    """Undoes the changes of one journal.

    Every entry leaves the journal once it is dealt with, so a reset that fails half way goes on
    where it stopped. `undone` and `left` collect what was done and what was left as it is. `timeout`
    and `own` are those of `Removal`.
    """

    def __init__(self, cluster: Cluster, journal: Journal, *, timeout: float, own: bool) -> None:
        self._cluster = cluster
        self._journal = journal
        self._removal = Removal(cluster, journal, timeout=timeout, own=own)
        self.undone: list[Note] = []
        self.left: list[Note] = []
        self._obstacles: list[GpuwlError] = []

    def everything(self) -> None:
        """Take back all entries, the last made first.

        What does not go away, or may not be taken back, keeps nothing else from it. Raises
        WaitTimeoutError, SetupError or ClusterError for it at the end, and ClusterError at once where
        the server does not answer.
        """
        for key in [key for key in self._journal.made if key != THE_NAMESPACE]:
            with self._going_on():
                self._object(key, paths.pod(key.split("/")[1]), self._delete_pod)
        if THE_NAMESPACE in self._journal.made and not self._obstacles:  # a Pod of ours is in it
            with self._going_on():
                self._object(THE_NAMESPACE, paths.THE_NAMESPACE, self._delete_namespace)
        for part in PARTS:
            for name in sorted({v.node for v in self._journal.values if v.field in part}):
                with self._going_on():
                    self._node(name, part)
        self._raise_obstacles()
        self._say_what_is_lost()

    @contextlib.contextmanager
    def _going_on(self) -> Iterator[None]:
        """Keep for the end what hinders one entry; it stays in the journal."""
        try:
            yield
        except (SetupError, WaitTimeoutError) as error:
            self._obstacles.append(error)
        except ClusterError as error:
            if error.status not in OF_THIS_ENTRY:
                raise
            self._obstacles.append(error)

    def _raise_obstacles(self) -> None:
        if self._obstacles:
            first, *others = self._obstacles
            first.details += tuple(other.message for other in others)
            raise first

    def _object(self, key: str, path: str, delete: Callable[[str, Object], None]) -> None:
        found = self._cluster.find(path)
        if found and self._journal.is_ours(key, found):
            delete(key, found)
        elif found:
            self.left.append(Note(key, "is another one by now, which gpuwl did not make"))
        del self._journal.made[key]
        self._journal.save()

    def _delete_pod(self, key: str, found: Object) -> None:
        self._removal.pod(found)
        self.undone.append(Note(key, "deleted"))

    def _delete_namespace(self, key: str, found: Object) -> None:
        others = sorted(pod["metadata"]["name"] for pod in self._removal.pods())
        if others:
            words = f"holds Pods that gpuwl did not make: {', '.join(others)}"
            self.left.append(Note(key, words))
            return
        self._removal.namespace(found)
        self.undone.append(Note(key, "deleted"))

    def _node(self, name: str, part: tuple[str, ...]) -> None:
        values = [v for v in self._journal.values if v.node == name and v.field in part]
        for left in reversed(range(CONFLICT_TRIES)):
            try:
                self._restore(name, values)
                break
            except ClusterError as error:  # the node changed between reading and writing
                if error.status != CONFLICT or not left:
                    raise
        self._journal.values = [v for v in self._journal.values if v not in values]
        self._journal.save()

    def _restore(self, name: str, values: list[Value]) -> None:
        found = self._cluster.find(paths.node(name))
        if found is None or found["metadata"]["uid"] != values[0].uid:
            self.left.append(Note(f"Node/{name}", "the node that gpuwl changed is gone"))
            return
        changed = [v for v in values if _current(found, v) != v.was]
        ours = [v for v in changed if _current(found, v) in v.ours]
        if ours:
            path = paths.node(name) + ("/status" if ours[0].field in objects.AMOUNTS else "")
            self._cluster.merge_patch(path, _patch(found, ours))
        moves = [Change(v.field, v.name, _current(found, v), v.was) for v in ours]
        self.undone += [Note(f"Node/{name}", str(move)) for move in moves]
        self.left += [Note(f"Node/{name}", _foreign(found, v)) for v in changed if v not in ours]

    def _say_what_is_lost(self) -> None:
        for entry in self._journal.removed:
            words = f"(uid {entry['uid']}) was not made by gpuwl, had to go and cannot come back"
            self.left.append(Note(entry["object"], words))
        self._journal.removed = []
        self._journal.save()


def _current(node: Object, value: Value) -> str | None:
    return objects.values(node, value.field).get(value.name)


def _patch(node: Object, values: list[Value]) -> Object:
    """Return the patch that restores values, refused where the node has changed since."""
    metadata: Object = {"resourceVersion": node["metadata"]["resourceVersion"]}
    patch: Object = {"metadata": metadata}
    for value in values:
        holder = metadata if value.field == "labels" else patch.setdefault("status", {})
        holder.setdefault(value.field, {})[value.name] = value.was
    return patch


def _foreign(node: Object, value: Value) -> str:
    ours = " or ".join(shown(one) for one in value.ours)
    current = shown(_current(node, value))
    return f"{value.field} {value.name} is {current} by now, not {ours} as gpuwl set it"
