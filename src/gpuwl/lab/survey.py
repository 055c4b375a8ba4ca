"""What a cluster holds of the lab, looked at once before anything is changed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from gpuwl.k8s import objects
from gpuwl.k8s.client import ReadOnlyCluster
from gpuwl.k8s.objects import Object
from gpuwl.lab import paths
from gpuwl.lab.journal import MANAGER
from gpuwl.lab.names import LABEL_KEY, NAMESPACE, PODS, LabNode

PAGE = 500
"""Nodes of one answer: a large cluster is looked through without holding it."""


@dataclass
class Survey:
    """The lab's nodes and Pods by name, its namespace, and what other nodes advertise of its names."""

    nodes: dict[str, Object] = field(default_factory=dict)
    outside: dict[str, dict[str, str]] = field(default_factory=dict)
    namespace: Object | None = None
    pods: dict[str, Object] = field(default_factory=dict)


def survey(cluster: ReadOnlyCluster, nodes: Sequence[LabNode]) -> Survey:
    """Look through a cluster."""
    found = Survey(namespace=cluster.find(paths.THE_NAMESPACE))
    names = {node.name for node in nodes}
    resources = {node.resource for node in nodes}
    for node in _listed(cluster):
        name = node["metadata"]["name"]
        shared = {k: v for k, v in objects.advertised(node).items() if k in resources}
        if name in names:
            found.nodes[name] = node
        elif shared:
            found.outside[name] = shared
    if found.namespace:
        found.pods = lab_pods(cluster)
    return found


def lab_pods(cluster: ReadOnlyCluster) -> dict[str, Object]:
    """Return the Pods of the lab that are there.

    By name: a list right after a write costs up to 0.1 s on Kubernetes 1.37, since it is served
    from the watch cache, which waits until etcd says that nothing is missing.
    """
    found = {pod.name: cluster.find(paths.pod(pod.name)) for pod in PODS}
    return {name: pod for name, pod in found.items() if pod}


def traces(found: Survey, nodes: Sequence[LabNode]) -> list[tuple[str, str]]:
    """Return what looks like the lab: each thing (`Pod/job-container`) and what it shows."""
    pods = [(f"Pod/{name}", f"is there, in namespace {NAMESPACE}") for name in found.pods]
    ours = found.namespace and objects.is_managed_by(found.namespace, MANAGER)
    namespace = [(f"Namespace/{NAMESPACE}", "is there")] if ours or pods else []
    shown = [
        (f"Node/{node.name}", f"has {LABEL_KEY}={node.value} and {node.resource}={node.amount}")
        for node in nodes
        if node.name in found.nodes and _is_set(found.nodes[node.name], node)
    ]
    return [*pods, *namespace, *shown]


def _is_set(node: Object, lab_node: LabNode) -> bool:
    amounts = objects.gpu_resources(node)
    return objects.label_of(node) == lab_node.value and amounts == {
        lab_node.resource: lab_node.amount
    }


def _listed(cluster: ReadOnlyCluster) -> Iterator[Object]:
    token = ""
    while True:
        page = cluster.get(f"{paths.NODES}?limit={PAGE}" + (f"&continue={token}" if token else ""))
        yield from page.get("items") or ()
        token = (page.get("metadata") or {}).get("continue") or ""
        if not token:
            return
