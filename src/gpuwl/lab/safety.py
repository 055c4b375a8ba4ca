"""What speaks against changing a cluster, found out before anything is changed."""

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpuwl.errors import ClusterError, SetupError
from gpuwl.k8s import objects
from gpuwl.k8s.objects import Object
from gpuwl.lab import paths
from gpuwl.lab.changes import label_changes, resource_changes
from gpuwl.lab.names import NODE_NAMES, LabNode
from gpuwl.target.connection import ReadOnlyConnection

if TYPE_CHECKING:
    from gpuwl.k8s.client import ReadOnlyCluster
    from gpuwl.lab.journal import Journal

Nodes = Sequence[LabNode]

PAGE = 500
"""Nodes of one answer: a large cluster is looked through without holding it."""
SLACK = dt.timedelta(seconds=30)
"""How much older than its duration a lease may be: clocks differ, a busy kubelet is late."""
LISTED = 10
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


@dataclass(frozen=True)
class Survey:
    """The lab's nodes by name, and what other nodes advertise of the lab's three names."""

    ours: dict[str, Object] = field(default_factory=dict)
    outside: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """What is about to happen: to nodes (label, resources), with Pods."""

    nodes: Nodes
    changes_nodes: bool
    makes_pods: bool


def survey(cluster: "ReadOnlyCluster", nodes: Nodes) -> Survey:
    """Look through the nodes of a cluster."""
    found = Survey()
    names = {node.name for node in nodes}
    resources = {node.resource for node in nodes}
    for node in _listed(cluster):
        name = node["metadata"]["name"]
        shared = {k: v for k, v in objects.advertised(node).items() if k in resources}
        if name in names:
            found.ours[name] = node
        elif shared:
            found.outside[name] = shared
    return found


def _listed(cluster: "ReadOnlyCluster") -> Iterator[Object]:
    token = ""
    while True:
        page = cluster.get(f"{paths.NODES}?limit={PAGE}" + (f"&continue={token}" if token else ""))
        yield from page.get("items") or ()
        token = (page.get("metadata") or {}).get("continue") or ""
        if not token:
            return


def concerns(
    cluster: "ReadOnlyCluster", journal: "Journal", found: Survey, plan: Plan
) -> list[str]:
    """Return what a person should know before this cluster is changed; mostly nothing.

    The lab's own nodes (lab-node-0 to 2) never give cause.
    """
    lines: list[str] = []
    if plan.changes_nodes or plan.makes_pods:
        for node in plan.nodes:
            known = found.ours.get(node.name)
            if known and node.name not in NODE_NAMES:
                lines += _of_node(cluster, journal, known, node, plan)
    if plan.makes_pods:
        lines += _of_others(found.outside)
    return lines


def _of_node(
    cluster: "ReadOnlyCluster", journal: "Journal", found: Object, node: LabNode, plan: Plan
) -> list[str]:
    signs = [*_kubelet(cluster, node.name), *_gpus(journal, found)]
    if not signs:
        return []
    changes = [*label_changes(found, node), *resource_changes(found, node)]
    moves = [f"would change {change}" for change in changes if plan.changes_nodes]
    pods = ["Pods of the lab would go there"] if plan.makes_pods else []
    return [f"node {node.name}: {line}" for line in (*signs, *moves, *pods)]


def _kubelet(cluster: "ReadOnlyCluster", name: str) -> list[str]:
    """Return a line where a kubelet keeps the node's lease, or where that cannot be seen.

    Leases: https://kubernetes.io/docs/concepts/architecture/leases/#node-heart-beats
    """
    try:
        lease = cluster.find(f"{LEASES}/{name}")
    except ClusterError as error:
        if error.status != 403:
            raise
        return [f"cannot tell whether a kubelet runs there: {error.message}"]
    age = _age(lease or {})
    spec = (lease or {}).get("spec") or {}
    limit = dt.timedelta(seconds=spec.get("leaseDurationSeconds") or 0) + SLACK
    if age is None or age > limit:
        return []
    return [f"its kubelet is alive: it renewed its lease {max(age.total_seconds(), 0):.0f} s ago"]


def _age(lease: Object) -> dt.timedelta | None:
    renewed = (lease.get("spec") or {}).get("renewTime")
    if not renewed:
        return None
    return dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(renewed)


def _gpus(journal: "Journal", node: Object) -> list[str]:
    """Return a line where the node advertises GPUs that are not of our making."""
    amounts = {
        name: amount
        for where in objects.AMOUNTS
        for name, amount in objects.gpu_resources(node, where).items()
        if amount != "0" and not journal.set_by_us(node, where, name)
    }
    words = ", ".join(f"{name}={amount}" for name, amount in sorted(amounts.items()))
    return [f"it advertises GPUs already: {words}"] if words else []


def _of_others(outside: dict[str, dict[str, str]]) -> list[str]:
    lines = [
        f"node {name} is not of the lab and advertises "
        f"{', '.join(f'{k}={v}' for k, v in sorted(amounts.items()))}: Pods of the lab could land there"
        for name, amounts in sorted(outside.items())[:LISTED]
    ]
    more = len(outside) - LISTED
    return [*lines, f"and {more} more such nodes"] if more > 0 else lines


def stop(lines: Sequence[str]) -> SetupError:
    """Return the error for a cluster that somebody uses."""
    return SetupError(
        "this cluster is in real use; nothing was changed",
        details=lines,
        hint="--yes goes on all the same; --lab-nodes A,B,C takes other nodes; --local takes a "
        "local control plane",
    )


def check_nodes(connection: ReadOnlyConnection, nodes: tuple[LabNode, ...]) -> None:
    """Raise SetupError, naming the nodes there are, where a node of the lab is missing."""
    missing = [n.name for n in nodes if connection.cluster.find(paths.node(n.name)) is None]
    if not missing:
        return
    listing = connection.cluster.get(f"{paths.NODES}?limit=20").get("items") or ()
    found = ", ".join(item["metadata"]["name"] for item in listing) or "none"
    raise SetupError(
        f"the cluster at {connection.cluster.server} lacks nodes of the lab: {', '.join(missing)}",
        details=[f"its nodes: {found}"],
        hint=_where_from(connection, missing),
    )


def _where_from(connection: ReadOnlyConnection, missing: list[str]) -> str:
    if not set(missing) <= set(NODE_NAMES):
        return "name three of its nodes: --lab-nodes A,B,C"
    if not connection.own:
        return "add --local to use a local control plane with these nodes"
    return "name three of its nodes: --lab-nodes A,B,C; or take another control plane: --local --name lab"
