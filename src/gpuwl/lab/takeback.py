"""Taking back what the journal lists, and nothing else: Pods, namespace, resources, labels."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpuwl.errors import ClusterError, GpuwlError, SetupError, WaitTimeoutError
from gpuwl.k8s import discovery, objects
from gpuwl.k8s.client import Cluster
from gpuwl.k8s.discovery import Held
from gpuwl.k8s.objects import Object
from gpuwl.lab import paths
from gpuwl.lab.changes import CONFLICT, CONFLICT_TRIES, Changes, patch
from gpuwl.lab.journal import THE_NAMESPACE, Change, Journal, Value, pod_key, shown
from gpuwl.lab.names import NAMESPACE

OF_THIS_ENTRY = frozenset({400, 403, CONFLICT, 422})
"""Statuses by which the server refuses one change; any other may meet each of them."""
PARTS = (objects.AMOUNTS, ("labels",))
"""Fields of a node that are changed together: the status has a subresource of its own."""
OF_THE_SYSTEM = frozenset({"ConfigMap/kube-root-ca.crt", "ServiceAccount/default"})
"""What kube-controller-manager puts into every namespace."""
ACCOUNT_OF_A_TOKEN = "kubernetes.io/service-account.name"  # noqa: S105 - an annotation
LISTED = 10


@dataclass(frozen=True)
class Note:
    """What became of one thing (`Pod/job-container`, `Node/lab-node-0`), in words."""

    thing: str
    what: str


class TakeBack:
    """Undoes the changes of one journal.

    Every entry leaves the journal once it is dealt with, so a reset that fails half way goes on
    where it stopped. `undone` and `left` collect what was done and what was left as it is. `timeout`
    and `own` are those of `Changes`. With `pretend` it changes nothing, and tells what it would do.
    """

    def __init__(
        self,
        cluster: Cluster,
        journal: Journal,
        *,
        timeout: float,
        own: bool,
        pretend: bool = False,
    ) -> None:
        self._cluster = cluster
        self._journal = journal
        self._changes = Changes(cluster, journal, timeout=timeout, own=own)
        self._pretend = pretend
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

    def _object(self, key: str, path: str, delete: Callable[[str, Object], bool]) -> None:
        """Deal with a Pod or namespace; `delete` says whether there is nothing left to do."""
        found = self._cluster.find(path)
        dealt_with = True
        if found and self._journal.is_ours(key, found):
            dealt_with = delete(key, found)
        elif found:
            self.left.append(Note(key, "is another one by now, which gpuwl did not make"))
        if dealt_with and not self._pretend:
            del self._journal.made[key]
            self._journal.save()

    def _delete_pod(self, key: str, found: Object) -> bool:
        if not self._pretend:
            self._changes.remove_pod(found)
        self._done(key, "deleted")
        return True

    def _delete_namespace(self, key: str, found: Object) -> bool:
        """Delete the namespace, unless anything is in it that gpuwl did not make."""
        others = self._of_others()
        if others:
            self.left.append(Note(key, others))
            return False
        if not self._pretend:
            self._changes.remove_namespace(found)
        self._done(key, "deleted")
        return True

    def _of_others(self) -> str:
        """Say what in the namespace is not of our making, or that it cannot be told."""
        try:
            held = discovery.contents(self._cluster, NAMESPACE)
        except ClusterError as error:
            if error.status is None:
                raise
            return f"may hold what gpuwl did not make: {error.message}"
        others = sorted(str(one) for one in held if not self._is_ours(one))
        more = f" and {len(others) - LISTED} more" if len(others) > LISTED else ""
        names = ", ".join(others[:LISTED]) + more
        return f"holds what gpuwl did not make: {names}" if others else ""

    def _is_ours(self, one: Held) -> bool:
        """Tell whether an object is ours, or the system's, which goes with its namespace."""
        if one.collection == paths.PODS:
            return self._journal.is_ours(pod_key(one.metadata["name"]), {"metadata": one.metadata})
        account = (one.metadata.get("annotations") or {}).get(ACCOUNT_OF_A_TOKEN)
        token = one.kind == "Secret" and account == "default"
        return one.kind == "Event" or str(one) in OF_THE_SYSTEM or token

    def _done(self, thing: str, what: str) -> None:
        self.undone.append(Note(thing, f"would be {what}" if self._pretend else what))

    def _node(self, name: str, part: tuple[str, ...]) -> None:
        values = [v for v in self._journal.values if v.node == name and v.field in part]
        for left in reversed(range(CONFLICT_TRIES)):
            try:
                self._restore(name, [v for v in values if v.ours])
                break
            except ClusterError as error:  # the node changed between reading and writing
                if error.status != CONFLICT or not left:
                    raise
        if not self._pretend:
            self._journal.values = [v for v in self._journal.values if v not in values]
            self._journal.save()

    def _restore(self, name: str, values: list[Value]) -> None:
        if not values:
            return
        found = self._cluster.find(paths.node(name))
        if found is None or found["metadata"]["uid"] != values[0].uid:
            self.left.append(Note(f"Node/{name}", "the node that gpuwl changed is gone"))
            return
        changed = [v for v in values if _current(found, v) != v.was]
        ours = [v for v in changed if _current(found, v) in v.ours]
        moves = [Change(v.field, v.name, _current(found, v), v.was) for v in ours]
        if moves and not self._pretend:
            self._cluster.merge_patch(*patch(found, moves))
        for move in moves:
            self._done(f"Node/{name}", f"changed: {move}" if self._pretend else str(move))
        self.left += [Note(f"Node/{name}", _foreign(found, v)) for v in changed if v not in ours]

    def _say_what_is_lost(self) -> None:
        for entry in self._journal.removed:
            words = f"(uid {entry['uid']}) was not made by gpuwl, had to go and cannot come back"
            self.left.append(Note(entry["object"], words))
        if not self._pretend:
            self._journal.removed = []
            self._journal.save()


def _current(node: Object, value: Value) -> str | None:
    return objects.values(node, value.field).get(value.name)


def _foreign(node: Object, value: Value) -> str:
    ours = " or ".join(shown(one) for one in value.ours)
    current = shown(_current(node, value))
    return f"{value.field} {value.name} is {current} by now, not {ours} as gpuwl set it"
