"""What speaks against changing a cluster, found out before anything is changed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuwl.errors import ClusterError, SetupError
from gpuwl.k8s import kubelets, objects, quantity
from gpuwl.k8s.objects import Object
from gpuwl.lab import paths
from gpuwl.lab.changes import label_changes, resource_changes
from gpuwl.lab.journal import Journal, pod_key
from gpuwl.lab.names import LABEL_KEY, NAMESPACE, NODE_NAMES, LabNode
from gpuwl.lab.survey import Survey
from gpuwl.target.connection import ReadOnlyConnection

if TYPE_CHECKING:
    from gpuwl.k8s.client import ReadOnlyCluster

Nodes = Sequence[LabNode]

LISTED = 10


@dataclass(frozen=True)
class Plan:
    """What is about to happen: to nodes (label, resources), with Pods."""

    nodes: Nodes
    changes_nodes: bool
    makes_pods: bool


def concerns(cluster: "ReadOnlyCluster", journal: Journal, found: Survey, plan: Plan) -> list[str]:
    """Return what a person should know before this cluster is changed; mostly nothing.

    The lab's own nodes (lab-node-0 to 2) never give cause. Where one of other nodes does, every
    change to each of them is listed.
    """
    lines: list[str] = []
    if plan.changes_nodes or plan.makes_pods:
        lines += _of_nodes(cluster, journal, found, plan)
    if plan.makes_pods:
        lines += _of_others(found.outside)
        lines += _of_pods(journal, found)
    return lines


def _of_nodes(cluster: "ReadOnlyCluster", journal: Journal, found: Survey, plan: Plan) -> list[str]:
    foreign = [n for n in plan.nodes if n.name in found.nodes and n.name not in NODE_NAMES]
    signs = {node.name: _signs(cluster, journal, found.nodes[node.name], node) for node in foreign}
    if not any(signs.values()):
        return []
    return [
        f"node {node.name}: {line}"
        for node in foreign
        for line in (*signs[node.name], *_moves(found.nodes[node.name], node, plan))
    ]


def _signs(cluster: "ReadOnlyCluster", journal: Journal, found: Object, node: LabNode) -> list[str]:
    return [*_kubelet(cluster, node.name), *_gpus(journal, found), *_label(journal, found, node)]


def _moves(found: Object, node: LabNode, plan: Plan) -> Iterator[str]:
    if plan.changes_nodes:
        for change in (*label_changes(found, node), *resource_changes(found, node)):
            yield f"would change {change}"
    if plan.makes_pods:
        yield "Pods of the lab would go there"


def _kubelet(cluster: "ReadOnlyCluster", name: str) -> list[str]:
    """Return a line where a kubelet keeps the node's lease, or where that cannot be seen."""
    try:
        age = kubelets.last_seen(cluster, name)
    except ClusterError as error:
        if error.status != 403:
            raise
        return [f"cannot tell whether a kubelet runs there: {error.message}"]
    return [] if age is None else [f"its kubelet is alive: it renewed its lease {age:.0f} s ago"]


def _gpus(journal: Journal, node: Object) -> list[str]:
    """Return a line where the node advertises GPUs that are not of our making."""
    amounts = {
        name: amount
        for where in objects.AMOUNTS
        for name, amount in objects.gpu_resources(node, where).items()
        if not quantity.is_zero(amount) and not journal.set_by_us(node, where, name)
    }
    words = ", ".join(f"{name}={amount}" for name, amount in sorted(amounts.items()))
    return [f"it advertises GPUs already: {words}"] if words else []


def _label(journal: Journal, node: Object, lab_node: LabNode) -> list[str]:
    """Return a line where somebody else gave the node another use."""
    value = objects.label_of(node)
    if value in {None, lab_node.value} or journal.set_by_us(node, "labels", LABEL_KEY):
        return []
    return [f"it has a use already: {LABEL_KEY}={value}"]


def _of_others(outside: dict[str, dict[str, str]]) -> list[str]:
    lines = [
        f"node {name} is not of the lab and advertises "
        f"{', '.join(f'{k}={v}' for k, v in sorted(amounts.items()))}: Pods of the lab could land there"
        for name, amounts in sorted(outside.items())[:LISTED]
    ]
    more = len(outside) - LISTED
    return [*lines, f"and {more} more such nodes"] if more > 0 else lines


def _of_pods(journal: Journal, found: Survey) -> list[str]:
    return [
        f"Pod {name} in namespace {NAMESPACE} was not made by gpuwl, and would be deleted to make "
        f"room for the lab's own"
        for name, pod in found.pods.items()
        if not journal.is_ours(pod_key(name), pod)
    ]


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
