"""Every change that the lab makes to a cluster: namespace, labels, resources, Pods, made and removed.

Each is journalled before it is made, with what was there before.
"""

from collections.abc import Callable, Iterable

from gpuwl.errors import ClusterError, SetupError, WaitTimeoutError
from gpuwl.k8s import discovery, kubelets, objects
from gpuwl.k8s.client import NOT_FOUND, Cluster
from gpuwl.k8s.objects import Object
from gpuwl.lab import manifests, paths
from gpuwl.lab.journal import THE_NAMESPACE, Change, Journal, pod_key
from gpuwl.lab.names import LABEL_KEY, NAMESPACE, PODS, LabNode, LabPod
from gpuwl.lab.survey import Survey
from gpuwl.system import waiting

CREATE_TRIES = 3
CONFLICT = 409
CONFLICT_TRIES = 5
OF_MISSING_CONTROLLERS = frozenset({"kubernetes.io/pvc-protection", "foregroundDeletion", "orphan"})
"""Finalizers that kube-controller-manager takes off, which our own control plane does not have.
https://kubernetes.io/docs/concepts/overview/working-with-objects/finalizers/"""
PASSING_POLL = 0.01
KUBELET_POLL = 0.5


class Changes:
    """Makes changes, each of which may be repeated: a second call finds the work done.

    `timeout` is the limit of one wait in seconds. `own` says that the cluster is our local control
    plane, which has no kube-controller-manager to finish the deletion of a namespace. `seen` is what
    the cluster held a moment ago: what it names is not read again before a change that the server
    refuses where that is no longer true.
    """

    def __init__(
        self,
        cluster: Cluster,
        journal: Journal,
        *,
        timeout: float,
        own: bool,
        seen: Survey | None = None,
    ) -> None:
        self._cluster = cluster
        self._journal = journal
        self._timeout = timeout
        self._own = own
        self._seen = seen or Survey()

    def namespace(self) -> None:
        """Make the lab's namespace; one that is Terminating is waited for first.

        Raises SetupError where it stays Terminating, with what the server says holds it.
        """
        found = self._seen.namespace
        if found and objects.is_terminating(found):
            self._outlast(found)
            found = None
        if found is None:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
            self._seen.namespace = self._create(paths.NAMESPACES, body, THE_NAMESPACE)

    def label(self, lab_node: LabNode) -> None:
        """Set the workload label of a node, whatever it was."""
        self._change(lab_node.name, lambda node: label_changes(node, lab_node))

    def advertise(self, lab_node: LabNode) -> None:
        """Set the node's resource in capacity and allocatable; its other nvidia.com/ names go."""
        self._change(lab_node.name, lambda node: resource_changes(node, lab_node))

    def _change(self, name: str, plan: Callable[[Object], list[Change]]) -> None:
        node = self._seen.nodes.get(name) or self._cluster.get(paths.node(name))
        for left in reversed(range(CONFLICT_TRIES)):
            changes = plan(node)
            self._journal.before(node, changes)
            if not changes:
                return
            try:
                self._seen.nodes[name] = self._cluster.merge_patch(*patch(node, changes))
            except ClusterError as error:  # the node has changed since we saw it
                if error.status != CONFLICT or not left:
                    raise
                node = self._cluster.get(paths.node(name))
            else:
                return

    def pod(self, lab_pod: LabPod, *, keep: Callable[[Object], bool]) -> Object:
        """Make a Pod of the lab and return it; the one that is there stays if `keep` says so.

        A Pod's resources are immutable, so one that asks otherwise is deleted and created anew. Pods
        of the lab that hold more of this one's resource than they should go too: it may find none left.
        """
        for other in self._usurpers(lab_pod):
            self.remove_pod(other)
        was_there = lab_pod.name in self._seen.pods
        found = self._cluster.find(paths.pod(lab_pod.name)) if was_there else None
        if found and self._is_fit(found, lab_pod) and keep(found):
            return found
        if found:
            self.remove_pod(found)
        made = self._create(paths.PODS, manifests.pod(lab_pod), pod_key(lab_pod.name))
        self._seen.pods[lab_pod.name] = made
        return made

    def _usurpers(self, besides: LabPod) -> list[Object]:
        others = [(self._seen.pods.get(p.name), p) for p in PODS if p.name != besides.name]
        return [
            pod
            for pod, lab_pod in others
            if pod and manifests.holds_otherwise(pod, lab_pod, besides.resource)
        ]

    @staticmethod
    def _is_fit(pod: Object, lab_pod: LabPod) -> bool:
        return not objects.is_over(pod) and manifests.asks_the_same(pod, lab_pod)

    def _create(self, collection: str, body: Object, key: str) -> Object:
        """Create a named object; one that exists is taken as the answer that got lost."""
        self._journal.will_make(key)
        for left in reversed(range(CREATE_TRIES)):
            try:
                made = self._cluster.create(collection, body)
            except ClusterError as error:
                if found := self._cluster.find(f"{collection}/{body['metadata']['name']}"):
                    return found
                self._explain_terminating(error)
                if not left or error.status in {400, 401, 403, 404, 422}:
                    raise
            else:
                self._journal.has_made(key, made)
                return made
        raise AssertionError("unreachable")

    @staticmethod
    def _explain_terminating(error: ClusterError) -> None:
        if "NamespaceTerminating" in error.causes:
            raise SetupError(
                f"namespace {NAMESPACE} is Terminating, and nothing can be created in it",
                details=[error.message],
                hint="gpuwl step 1 waits for it and makes it anew",
            )

    def remove_pod(self, pod: Object) -> None:
        """Delete this very Pod and wait until it is gone.

        Raises WaitTimeoutError, with the finalizers that hold it, where it stays.
        """
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        self._journal.will_remove(pod_key(name), pod)
        self._seen.pods.pop(name, None)
        patience = self._patience(pod)

        def gone() -> bool | None:
            self._cluster.delete(paths.pod(name), uid=uid, grace_period=None if patience else 0)
            found = self._cluster.find(paths.pod(name))
            return True if found is None or found["metadata"]["uid"] != uid else None

        every = KUBELET_POLL if patience else PASSING_POLL
        if waiting.until(gone, seconds=self._timeout + patience, every=every) is None:
            holders = ", ".join(pod["metadata"].get("finalizers") or ()) or "nothing it names"
            raise WaitTimeoutError(
                f"Pod {name} is still being deleted after {self._timeout + patience:g} s; held by "
                f"{holders}",
                hint=f"kubectl get pod -n {NAMESPACE} {name} -o yaml",
            )

    def _patience(self, pod: Object) -> float:
        """Return the grace period in seconds that a kubelet is to give a Pod, 0 without a kubelet.

        Where none runs nobody would end a bound Pod. One that may not be looked for counts as alive.
        """
        if self._own or not objects.node_of(pod):
            return 0
        try:
            alive = kubelets.last_seen(self._cluster, objects.node_of(pod)) is not None
        except ClusterError as error:
            if error.status != 403:
                raise
            alive = True
        return float(pod["spec"].get("terminationGracePeriodSeconds") or 30) if alive else 0

    def remove_namespace(self, found: Object) -> None:
        """Delete this very namespace and wait until it is gone.

        Raises WaitTimeoutError where the server does not begin to delete it, SetupError where it
        stays Terminating.
        """
        uid = found["metadata"]["uid"]

        def going() -> Object | None:
            self._cluster.delete(paths.THE_NAMESPACE, uid=uid)
            left = self._cluster.find(paths.THE_NAMESPACE)
            if left is None or left["metadata"]["uid"] != uid:
                return {}
            return left if objects.is_terminating(left) else None  # a conflict: not deleted yet

        left = waiting.until(going, seconds=self._timeout, every=PASSING_POLL)
        if left is None:
            raise WaitTimeoutError(
                f"namespace {NAMESPACE} cannot be deleted: a conflict each time, for "
                f"{self._timeout:g} s",
                hint=f"kubectl get namespace {NAMESPACE} -o yaml shows who changes it",
            )
        if left:
            self._outlast(left)

    def _outlast(self, found: Object) -> None:
        """Wait until a Terminating namespace is gone; on our own control plane finish it."""
        if self._own:
            self._finish(found)
        gone = waiting.until(self._namespace_is_gone, seconds=self._timeout)
        if gone is None:
            left = self._cluster.find(paths.THE_NAMESPACE) or found
            raise SetupError(
                f"namespace {NAMESPACE} is still Terminating after {self._timeout:g} s",
                details=_holders(left),
                hint=f"kubectl get namespace {NAMESPACE} -o yaml shows what holds it",
            )
        self._seen.pods.clear()

    def _namespace_is_gone(self) -> bool | None:
        found = self._cluster.find(paths.THE_NAMESPACE)
        return None if found and objects.is_terminating(found) else True

    def _finish(self, found: Object) -> None:
        """Do what kube-controller-manager does elsewhere: empty the namespace, then release it.

        Of every kind: what stays comes back with the next namespace of that name. Raises SetupError
        where something in it is held by a finalizer.
        """
        self._journal.will_remove(THE_NAMESPACE, found)
        held = discovery.contents(self._cluster, NAMESPACE)
        for one in held:
            if one.collection == paths.PODS:
                self.remove_pod({"metadata": one.metadata})
        stuck = [
            words
            for collection in sorted({one.collection for one in held} - {paths.PODS})
            for item in self._cluster.delete_all(collection)
            for words in self._released(collection, item)
        ]
        if stuck:
            raise SetupError(
                f"namespace {NAMESPACE} cannot be emptied",
                details=stuck,
                hint=f"kubectl edit -n {NAMESPACE} takes a finalizer off that nobody heeds",
            )
        released = {**found, "spec": {"finalizers": []}}
        released["metadata"] = {"name": NAMESPACE, "uid": found["metadata"]["uid"]}
        try:
            self._cluster.replace(f"{paths.THE_NAMESPACE}/finalize", released)
        except ClusterError as error:
            if error.status != NOT_FOUND:  # that is what was wanted: an answer got lost, say
                raise

    def _released(self, collection: str, item: Object) -> list[str]:
        """Take off the finalizers of the missing controllers; say which others hold an object."""
        name, finalizers = item["metadata"]["name"], item["metadata"]["finalizers"]
        others = [one for one in finalizers if one not in OF_MISSING_CONTROLLERS]
        if others != finalizers:
            body = {"metadata": {"finalizers": others or None}}
            self._cluster.merge_patch(f"{collection}/{name}", body)
        kind = collection.rsplit("/", 1)[1]
        return [f"{kind}/{name} is held by {', '.join(others)}"] if others else []


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


def patch(node: Object, changes: Iterable[Change]) -> tuple[str, Object]:
    """Return path and merge patch of changes to labels, or to amounts, of a node.

    The server refuses it, as a conflict, where the node has changed since it was read.
    """
    metadata: Object = {"resourceVersion": node["metadata"]["resourceVersion"]}
    body: Object = {"metadata": metadata}
    for change in changes:
        holder = metadata if change.field == "labels" else body.setdefault("status", {})
        holder.setdefault(change.field, {})[change.name] = change.to
    path = paths.node(node["metadata"]["name"])
    return (f"{path}/status" if "status" in body else path), body


def _holders(namespace: Object) -> list[str]:
    conditions = (namespace.get("status") or {}).get("conditions") or ()
    texts = [
        f"{c.get('type')}: {c.get('message')}" for c in conditions if c.get("status") == "True"
    ]
    finalizers = namespace["spec"].get("finalizers") or []
    return texts or [f"finalizers: {', '.join(finalizers) or 'none'}; no controller reports on it"]
