"""Every change that the lab makes to a cluster: namespace, labels, resources, Pods.

Each is journalled before it is made, with what was there before.
"""

from collections.abc import Callable

from gpuwl.errors import ClusterError, SetupError
from gpuwl.k8s import objects
from gpuwl.k8s.client import Cluster
from gpuwl.k8s.objects import Object
from gpuwl.lab import manifests, paths
from gpuwl.lab.journal import THE_NAMESPACE, Change, Journal, pod_key
from gpuwl.lab.names import LABEL_KEY, NAMESPACE, PODS, LabNode, LabPod
from gpuwl.lab.removal import Removal

CREATE_TRIES = 3


class Changes:
    """Makes changes, each of which may be repeated: a second call finds the work done.

    `timeout` is the limit of one wait in seconds. `own` says that the cluster is our local control
    plane, which has no kube-controller-manager to finish the deletion of a namespace.
    """

    def __init__(self, cluster: Cluster, journal: Journal, *, timeout: float, own: bool) -> None:
        self._cluster = cluster
        self._journal = journal
        self._removal = Removal(cluster, journal, timeout=timeout, own=own)

    def namespace(self) -> None:
        """Make the lab's namespace; one that is Terminating is waited for first.

        Raises SetupError where it stays Terminating, with what the server says holds it.
        """
        found = self._cluster.find(paths.THE_NAMESPACE)
        if found and objects.is_terminating(found):
            self._removal.outlast(found)
            found = None
        if found is None:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
            self._create(paths.NAMESPACES, body, THE_NAMESPACE)

    def label(self, lab_node: LabNode) -> None:
        """Set the workload label of a node, whatever it was."""
        found = self._cluster.get(paths.node(lab_node.name))
        changes = label_changes(found, lab_node)
        self._journal.before(found, changes)
        if changes:
            self._cluster.merge_patch(paths.node(lab_node.name), _labels(changes))

    def advertise(self, lab_node: LabNode) -> None:
        """Set the node's resource in capacity and allocatable; its other nvidia.com/ names go."""
        found = self._cluster.get(paths.node(lab_node.name))
        changes = resource_changes(found, lab_node)
        self._journal.before(found, changes)
        if changes:
            self._cluster.merge_patch(f"{paths.node(lab_node.name)}/status", _status(changes))

    def pod(self, lab_pod: LabPod, *, keep: Callable[[Object], bool]) -> None:
        """Make a Pod of the lab; the one that is there stays if it asks the same and `keep` says so.

        A Pod's resources are immutable, so a different one is deleted and created anew. Pods of the
        lab that hold more of this one's resource than they should go too: it may find none left.
        """
        existing = {pod["metadata"]["name"]: pod for pod in self._removal.pods()}
        for other in self._usurpers(existing, lab_pod):
            self._removal.pod(other)
        found = existing.get(lab_pod.name)
        if found and self._is_fit(found, lab_pod) and keep(found):
            return
        if found:
            self._removal.pod(found)
        self._create(paths.PODS, manifests.pod(lab_pod), pod_key(lab_pod.name))

    @staticmethod
    def _usurpers(existing: dict[str, Object], besides: LabPod) -> list[Object]:
        others = [(existing.get(p.name), p) for p in PODS if p.name != besides.name]
        return [
            pod
            for pod, lab_pod in others
            if pod and manifests.holds_otherwise(pod, lab_pod, besides.resource)
        ]

    @staticmethod
    def _is_fit(pod: Object, lab_pod: LabPod) -> bool:
        return not objects.is_over(pod) and manifests.asks_the_same(pod, lab_pod)

    def _create(self, collection: str, body: Object, key: str) -> None:
        """Create a named object; one that exists is taken as the answer that got lost."""
        self._journal.will_make(key)
        for left in reversed(range(CREATE_TRIES)):
            try:
                self._journal.has_made(key, self._cluster.create(collection, body))
            except ClusterError as error:
                if self._cluster.find(f"{collection}/{body['metadata']['name']}"):
                    return
                self._explain_terminating(error)
                if not left or error.status in {400, 401, 403, 404, 422}:
                    raise
            else:
                return

    @staticmethod
    def _explain_terminating(error: ClusterError) -> None:
        if "NamespaceTerminating" in error.causes:
            raise SetupError(
                f"namespace {NAMESPACE} is Terminating, and nothing can be created in it",
                details=[error.message],
                hint="gpuwl step 1 waits for it and makes it anew",
            )


def label_changes(node: Object, lab_node: LabNode) -> list[Change]:
    """Return what setting the workload label would change on a node."""
    was = objects.label_of(node)
    return [Change("labels", LABEL_KEY, was, lab_node.value)] if was != lab_node.value else []


def resource_changes(node: Object, lab_node: LabNode) -> list[Change]:
    """Return what advertising the lab's resource, and it alone, would change on a node."""
    return [
        Change(field, name, found.get(name), wanted.get(name))
        for field in objects.AMOUNTS
        for found in [objects.gpu_resources(node, field)]
        for wanted in [{lab_node.resource: lab_node.amount}]
        for name in sorted(found | wanted)
        if found.get(name) != wanted.get(name)
    ]


def _labels(changes: list[Change]) -> Object:
    return {"metadata": {"labels": {change.name: change.to for change in changes}}}


def _status(changes: list[Change]) -> Object:
    status: Object = {}
    for change in changes:
        status.setdefault(change.field, {})[change.name] = change.to
    return {"status": status}
