"""What gpuwl changed on a cluster and what was there before, written down before each change.

The document, version 1, for one cluster:

    {"version": 1, "gpuwl": "0.1.0", "server": "https://…",
     "made": {"Namespace/gpu-vm": uid or null, "Pod/job-container": uid or null},
     "values": [{"node": …, "uid": …, "field": "labels", "capacity" or "allocatable", "name": …,
                 "was": "8" or null where there was none, "ours": ["4"]}],
     "removed": [{"object": "Pod/job-container", "uid": …}]}

A `uid` of null means that the object was about to be made: the answer may have got lost. `was` is the
value before the first change, however many runs followed; `ours` are the values that gpuwl set, none
where it left the value alone. Of a node that it changed the label and all GPU resources are listed. A
node that somebody else changed since begins anew, as a whole: the state that he made is what a reset
gives back, and never a mixture of two.
`removed` are objects of others that had to go, which cannot be brought back.
"""

import contextlib
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gpuwl import __version__
from gpuwl.controlplane import state
from gpuwl.errors import ClusterError, SetupError
from gpuwl.k8s import objects
from gpuwl.k8s.objects import Object
from gpuwl.lab import paths
from gpuwl.lab.names import LABEL_KEY, NAMESPACE
from gpuwl.system import folders, locking, oserrors
from gpuwl.system.files import open_regular, replace_file
from gpuwl.target import address

if TYPE_CHECKING:
    from gpuwl.k8s.client import ReadOnlyCluster

VERSION = 1
MODE = 0o600
FOLDER = ".journal"
LOCAL_FILE = "journal.json"
CLUSTER_IDENTITY = f"{paths.NAMESPACES}/kube-system"
THE_NAMESPACE = f"Namespace/{NAMESPACE}"
_FIELDS = ("labels", *objects.AMOUNTS)
_THING = re.compile(rf"{re.escape(THE_NAMESPACE)}|Pod/[a-z0-9.-]+")
MANAGER = "gpuwl"
"""The field manager of what we make: the server takes it from the user agent, up to the `/`."""


def pod_key(name: str) -> str:
    """Return the key of a Pod in the lab's namespace."""
    return f"Pod/{name}"


def shown(value: str | None) -> str:
    """Return a value of a node in words."""
    return "none" if value is None else value or '""'


@dataclass(frozen=True)
class Change:
    """A value of a node that is to change; None stands for none.

    `field` is `labels`, `capacity` or `allocatable`, `name` the label's or resource's.
    """

    field: str
    name: str
    was: str | None
    to: str | None

    def __str__(self) -> str:
        """Say it as `capacity nvidia.com/gpu: 8 -> none`."""
        return f"{self.field} {self.name}: {shown(self.was)} -> {shown(self.to)}"


@dataclass
class Value:
    """A value of a node that was changed; see the module's text."""

    node: str
    uid: str
    field: str
    name: str
    was: str | None
    ours: list[str | None]


@dataclass
class Journal:
    """The journal of one cluster. Raises SetupError where it cannot be written.

    `durable` says whether it has to outlive a power cut, as a real cluster does and our own control
    plane does not.
    """

    path: Path
    server: str
    durable: bool = True
    made: dict[str, str | None] = field(default_factory=dict)
    values: list[Value] = field(default_factory=list)
    removed: list[dict[str, str]] = field(default_factory=list)
    _saved: str = ""

    def before(self, node: Object, changes: Iterable[Change]) -> None:
        """Take down what a node's values were.

        A node starts without a past if it was made anew since, or if somebody else changed it.
        """
        name, uid = node["metadata"]["name"], node["metadata"]["uid"]
        changes = list(changes)
        if self._has_other_values(node, changes):
            self.values = [v for v in self.values if v.node != name]
        if changes and not any(v.node == name for v in self.values):
            self.values += _state(node)
        for change in changes:
            value = self._value(name, change) or self._begin(name, uid, change)
            if change.to not in value.ours:
                value.ours.append(change.to)
        self.save()

    def _has_other_values(self, node: Object, changes: list[Change]) -> bool:
        """Tell whether a node known here shows a value that neither we set nor was there before.

        A resource of zero is as good as none: a kubelet that starts again sets ours to zero.
        """
        known = [v for v in self.values if v.node == node["metadata"]["name"]]
        parts = {v.field == "labels" for v in known}
        return any(
            v.uid != node["metadata"]["uid"]
            or not any(
                _alike(objects.values(node, v.field).get(v.name), x) for x in (v.was, *v.ours)
            )
            for v in known
        ) or any(
            not self._value(node["metadata"]["name"], change)
            and (change.field == "labels") in parts
            and not _alike(change.was, None)
            for change in changes
        )

    def will_make(self, key: str) -> None:
        """Take down that an object is about to be made, `Namespace/…` or `Pod/…`."""
        self.made[key] = None
        self.save()

    def has_made(self, key: str, made: Object) -> None:
        """Take down which object it became; written with the next change or at the end."""
        self.made[key] = made["metadata"]["uid"]

    def will_remove(self, key: str, found: Object) -> None:
        """Take down that an object is about to go, unless we made it."""
        entry = {"object": key, "uid": found["metadata"]["uid"]}
        if not self.is_ours(key, found) and entry not in self.removed:
            self.removed.append(entry)
            self.save()

    def is_ours(self, key: str, found: Object) -> bool:
        """Tell whether we made this very object."""
        if key not in self.made:
            return False
        uid = self.made[key]
        return found["metadata"]["uid"] == uid if uid else objects.is_managed_by(found, MANAGER)

    def set_by_us(self, node: Object, field_name: str, name: str) -> bool:
        """Tell whether a node shows a value only because we set it where there was none."""
        current = (objects.values(node, field_name)).get(name)
        return any(
            value.was in {None, "0"} and current in value.ours
            for value in self.values
            if (value.uid, value.field, value.name) == (node["metadata"]["uid"], field_name, name)
        )

    @property
    def holds_anything(self) -> bool:
        """Tell whether there is anything to take back, or to say."""
        return bool(self.made or self.values or self.removed)

    def save(self) -> None:
        """Write what is not written yet; a journal without entries is no file."""
        if not self.holds_anything:
            with _explained(self.path):
                self.path.unlink(missing_ok=True)
            self._saved = ""
            return
        text = self._text()
        if text != self._saved:
            with _explained(self.path):
                replace_file(self.path, text.encode(), MODE, durable=self.durable)
            self._saved = text

    def take(self, document: Object) -> None:
        """Take over the document of the file. Raises one of the errors of a wrong shape."""
        if document["version"] != VERSION:
            raise ValueError(f"its version is {document['version']}, not {VERSION}")
        self.made = dict(document["made"])
        self.values = [Value(**value) for value in document["values"]]
        self.removed = list(document["removed"])
        if not self._is_sound():
            raise ValueError("it holds entries that gpuwl does not write")
        self._saved = self._text()

    def _is_sound(self) -> bool:
        texts = [text for v in self.values for text in (v.node, v.uid, v.name)]
        texts += [entry[key] for entry in self.removed for key in ("object", "uid")]
        optional = [*self.made.values(), *(text for v in self.values for text in (v.was, *v.ours))]
        return (
            all(isinstance(text, str) for text in texts)
            and all(text is None or isinstance(text, str) for text in optional)
            and all(value.field in _FIELDS for value in self.values)
            and all(_THING.fullmatch(key) for key in self.made)
        )

    def _text(self) -> str:
        document = {
            "version": VERSION,
            "gpuwl": __version__,
            "server": self.server,
            "made": self.made,
            "values": [asdict(value) for value in self.values],
            "removed": self.removed,
        }
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"

    def _value(self, node: str, change: Change) -> Value | None:
        wanted = (node, change.field, change.name)
        return next((v for v in self.values if (v.node, v.field, v.name) == wanted), None)

    def _begin(self, node: str, uid: str, change: Change) -> Value:
        value = Value(node, uid, change.field, change.name, change.was, [])
        self.values.append(value)
        return value


def _state(node: Object) -> list[Value]:
    """Return a node's workload label and all its GPU resources, as values that nobody changed yet."""
    name, uid = node["metadata"]["name"], node["metadata"]["uid"]
    labels = objects.values(node, "labels").items()
    found = {"labels": {key: value for key, value in labels if key == LABEL_KEY}}
    found |= {where: objects.gpu_resources(node, where) for where in objects.AMOUNTS}
    return [
        Value(name, uid, where, key, value, [])
        for where, values in found.items()
        for key, value in values.items()
    ]


def _alike(one: str | None, other: str | None) -> bool:
    return one == other or {one, other} <= {None, "0"}


@contextlib.contextmanager
def opened(cluster: "ReadOnlyCluster", local_name: str | None) -> Iterator[Journal]:
    """Hold a cluster's journal and yield it, and write at the end what is not written yet.

    That of our own control plane (`local_name`) is in its folder and goes with it. Any other is
    found by the identity of the cluster, whatever its address is. Raises SetupError where it cannot
    be read, or where another process works on that cluster.
    """
    with contextlib.ExitStack() as stack:
        if local_name:
            path = state.folder(local_name) / LOCAL_FILE
        else:
            stack.enter_context(address.held(cluster.server))
            path = _path(cluster)
            with _explained(path):
                folders.make(path.parent)
        stack.enter_context(_held(path, cluster.server))
        journal = Journal(path, cluster.server, durable=not local_name)
        _load(journal)
        try:
            yield journal
        except BaseException:
            with contextlib.suppress(SetupError):  # what went wrong first is what counts
                journal.save()
            raise
        journal.save()


@contextlib.contextmanager
def _held(path: Path, server: str) -> Iterator[None]:
    """Hold the lock beside a journal: a cluster with two addresses would have two writers else."""
    with contextlib.ExitStack() as stack:
        with _explained(path):
            stack.enter_context(locking.held(path.with_suffix(".lock"), f"the cluster at {server}"))
        yield


def _path(cluster: "ReadOnlyCluster") -> Path:
    """Return where a cluster's journal is, or is to be.

    The uid of kube-system is what tells clusters apart. Where that may not be read, address and
    certificate authority stand in for it; a journal of that name is used ever after.
    """
    folder = folders.state() / FOLDER
    fallback = folder / f"{_digest(cluster.server.encode(), cluster.authority)}.json"
    if fallback.exists():
        return fallback
    try:
        uid = (cluster.get(CLUSTER_IDENTITY).get("metadata") or {}).get("uid")
    except ClusterError as error:
        if error.status not in {403, 404}:
            raise
        return fallback
    if not uid:
        raise ClusterError(
            f"the namespace kube-system at {cluster.server} has no uid",
            hint="check that the address is that of a Kubernetes API server",
        )
    return folder / f"{uid}.json"


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]


def _load(journal: Journal) -> None:
    try:
        with open_regular(journal.path) as file:
            journal.take(json.load(file))
    except FileNotFoundError:
        return
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        words = error.strerror if isinstance(error, OSError) else error
        raise SetupError(
            f"cannot read the journal of earlier changes, {journal.path}: {words}",
            hint="move it away; what it lists can then not be taken back by gpuwl reset",
        ) from None


def _explained(path: Path) -> contextlib.AbstractContextManager[None]:
    hint = "nothing is changed that cannot be taken back: free that path"
    return oserrors.explained("cannot write the journal", path, hint)
