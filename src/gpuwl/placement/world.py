"""Somebody's cluster as far as a scheduler reads it: out of dumps, or out of the cluster itself.

Kept is what decides where a Pod goes. Environments, commands, volumes without a claim and everything
that controllers keep in annotations stay where they are.
"""

import uuid
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from gpuwl.checker import Number
from gpuwl.controlplane import store
from gpuwl.errors import ClusterError, InputError
from gpuwl.k8s import documents, dump, objects
from gpuwl.k8s.objects import Object

CLUSTER_WIDE = frozenset(
    {"Namespace", "Node", "PersistentVolume", "PriorityClass", "RuntimeClass", "StorageClass"}
    | {"CSINode", "CSIDriver", "DeviceClass", "ResourceSlice"}
)
MIRROR = "kubernetes.io/config.mirror"
"""The annotation of a Pod that a kubelet runs from a file of its own."""
SPEC = [
    "schedulerName",
    "nodeName",
    "nodeSelector",
    "affinity",
    "tolerations",
    "priority",
    "priorityClassName",
    "preemptionPolicy",
    "topologySpreadConstraints",
    "schedulingGates",
    "overhead",
    "runtimeClassName",
    "hostNetwork",
    "resourceClaims",
    "resources",
    "os",
]
CONTAINER = ("name", "image", "resources", "ports", "restartPolicy")
STATUS = ("phase", "conditions", "resourceClaimStatuses", "extendedResourceClaimStatus")
METADATA = ("name", "namespace", "labels", "ownerReferences", "deletionTimestamp", "uid")


@dataclass(frozen=True)
class World:
    """Nodes by name, Pods that have a node, Pods that wait, and what else the scheduler reads.

    `left_out` says what was not brought along, and how many of it.
    """

    nodes: dict[str, Object]
    bound: tuple[Object, ...] = ()
    waiting: tuple[Object, ...] = ()
    others: tuple[Object, ...] = ()
    left_out: Counter[str] = field(default_factory=Counter)

    def by_key(self) -> dict[str, Object]:
        """Return what a control plane has to hold, by etcd's keys."""
        every = [*self.nodes.values(), *self.bound, *self.others]
        return {store.key_of(item): item for item in every if item["kind"] in store.FOLDERS}

    @cached_property
    def claims(self) -> dict[str, Object]:
        """Return the objects of `others` by kind, namespace and name."""
        return {identity(item): item for item in self.others}

    def has(self, kind: str, name: str, namespace: str = "") -> bool:
        """Tell whether such an object was brought along."""
        return f"{kind} {namespace}/{name}" in self.claims

    def with_nodes(self, nodes: dict[str, Object], bound: Iterable[Object]) -> "World":
        """Return the same world with other nodes and other Pods on them."""
        return replace(self, nodes=nodes, bound=tuple(bound))


def label_of(item: Object) -> str:
    """Return `namespace/name` of an object."""
    metadata = item["metadata"]
    return f"{metadata.get('namespace') or 'default'}/{metadata['name']}"


def identity(item: Object) -> str:
    """Return kind, namespace and name of an object as one text."""
    metadata = item["metadata"]
    return f"{item['kind']} {metadata.get('namespace') or ''}/{metadata['name']}"


class Collector:
    """Takes objects of any kind and sorts them into a world."""

    def __init__(self) -> None:
        self._nodes: dict[str, Object] = {}
        self._pods: dict[str, Object] = {}
        self._others: dict[str, Object] = {}
        self._left_out: Counter[str] = Counter()

    def take(self, item: Object, _place: str = "") -> None:
        """Take one object. Raises InputError for a node that was there before."""
        kind, name = item["kind"], item["metadata"]["name"]
        if kind == "Node":
            if name in self._nodes:
                raise InputError(f"the node {name} is there twice")
            self._nodes[name] = node(plain(item))
        elif kind == "Pod":
            found = pod(plain(item))
            self._pods[label_of(found)] = found
        elif kind in store.FOLDERS or kind == "ResourceClaimTemplate":
            found = other(plain(item))
            self._others[identity(found)] = found

    def world(self) -> World:
        """Return the world. Raises InputError where it has no node."""
        if not self._nodes:
            raise InputError("there is no node", hint=dump.MAKE_NODES)
        alive = [each for each in self._pods.values() if not _is_finished(each)]
        bound, waiting = [], []
        for each in alive:
            where = objects.node_of(each)
            if where in self._nodes:
                bound.append(each)
            elif where:
                self._left_out["Pods on nodes that the dump does not hold"] += 1
            elif each["spec"].get("schedulerName", "default-scheduler") != "default-scheduler":
                self._left_out["waiting Pods of other schedulers"] += 1
            elif not objects.is_terminating(each):
                waiting.append(each)
        others = self._others | self._namespaces([*alive])
        every = tuple(others.values())
        return World(self._nodes, tuple(bound), tuple(waiting), every, self._left_out)

    def _namespaces(self, pods: Iterable[Object]) -> dict[str, Object]:
        names = {each["metadata"]["namespace"] for each in pods}
        made = [namespace(name) for name in sorted(names)]
        return {identity(one): one for one in made if identity(one) not in self._others}


def from_dumps(nodes: Path | int, pods: Path | int | None, more: Iterable[Path]) -> World:
    """Read a world from dumps of nodes and Pods, and from files with whatever else is to be brought.

    Raises InputError where one cannot be read.
    """
    collector = Collector()
    dump.stream(nodes, collector.take)
    if pods is not None and pods != nodes:
        dump.stream(
            pods, collector.take, ["Pod"], make_it="kubectl get pods -A -o json > pods.json"
        )
    for found in documents.read(more):
        if isinstance(found, documents.Document):
            collector.take(found.object)
    return collector.world()


def plain(value: object) -> Object:
    """Return a copy with the numbers that a dump's reader left as text."""
    return _plain(value)  # type: ignore[return-value]


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, Number):
        return int(value) if value.lstrip("-").isdecimal() else float(value)
    return value


def _kept(part: object, fields: Iterable[str]) -> Object:
    if not isinstance(part, dict):
        return {}
    return {name: part[name] for name in fields if part.get(name) is not None}


def node(item: Object) -> Object:
    """Return what is kept of a node."""
    kept = dump.essence(item)
    declared = _kept(item.get("status"), ["declaredFeatures"])
    metadata = {**kept["metadata"], "uid": str(uuid.uuid4())}
    return {**kept, "metadata": metadata, "status": {**kept["status"], **declared}}


def pod(item: Object) -> Object:
    """Return what is kept of a Pod."""
    spec = item.get("spec") or {}
    found = _kept(item["metadata"], METADATA)
    annotations = _kept(item["metadata"].get("annotations"), [MIRROR])
    metadata = {"namespace": "default", "uid": str(uuid.uuid4()), **found}
    volumes = [
        _kept(each, ["name", "persistentVolumeClaim"])
        for each in spec.get("volumes") or ()
        if each.get("persistentVolumeClaim")
    ]
    containers = {
        name: [_container(each) for each in spec[name]]
        for name in ("containers", "initContainers")
        if spec.get(name)
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata | ({"annotations": annotations} if annotations else {}),
        "spec": {**_kept(spec, SPEC), **({"volumes": volumes} if volumes else {}), **containers},
        "status": _kept(item.get("status"), STATUS),
    }


def _container(item: Object) -> Object:
    return {"image": "unnamed", **_kept(item, CONTAINER)}


def other(item: Object) -> Object:
    """Return what is kept of an object of another kind."""
    kept = ("name", "namespace", "labels", "annotations", "ownerReferences", "uid")
    metadata = {"uid": str(uuid.uuid4()), **_kept(item["metadata"], kept)}
    if item["kind"] not in CLUSTER_WIDE:
        metadata.setdefault("namespace", "default")
    if item["kind"] == "Namespace":
        return {**namespace(metadata["name"]), "metadata": metadata}
    return {**item, "metadata": metadata}


def namespace(name: str) -> Object:
    """Return a namespace as the API server leaves it."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": name,
            "uid": str(uuid.uuid4()),
            "labels": {"kubernetes.io/metadata.name": name},
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def _is_finished(item: Object) -> bool:
    return objects.phase_of(item) in {"Succeeded", "Failed"}


Reader = Callable[[str], Object]


def from_cluster(get: Reader) -> World:
    """Read a world from a cluster with a function that gets a path; kinds that it refuses are left out."""
    collector = Collector()
    refused: list[str] = []
    for kind, path in store.LISTS.items():
        if kind == "Service":
            continue
        try:
            items = get(path)["items"]
        except ClusterError as error:
            if kind in {"Node", "Pod"} or error.status not in {403, 404}:
                raise
            refused.append(f"{kind} objects, which the cluster does not show us")
            continue
        for item in items:
            collector.take({"apiVersion": _version(path), **item, "kind": kind})
    world = collector.world()
    world.left_out.update(refused)
    return world


def _version(path: str) -> str:
    return path.removeprefix("/apis/").removeprefix("/api/").rpartition("/")[0]
