"""Every change that the lab makes to a cluster: namespace, labels, resources, Pods."""

from collections.abc import Callable
from typing import Any

from gpuwl import manifests, objects, paths, waiting
from gpuwl.cluster import Cluster
from gpuwl.errors import ClusterError, SetupError, WaitTimeoutError
from gpuwl.names import LABEL_KEY, NAMESPACE, PODS, LabNode, LabPod

Object = dict[str, Any]

CREATE_TRIES = 3
PASSING_POLL = 0.02


class Changes:
    """Makes changes, each of which may be repeated: a second call finds the work done.

    `timeout` is the limit of one wait in seconds. `own` says that the cluster is our local control
    plane, which has no kube-controller-manager to finish the deletion of a namespace.
    """

    def __init__(self, cluster: Cluster, *, timeout: float, own: bool) -> None:
        self._cluster = cluster
        self._timeout = timeout
        self._own = own

    def namespace(self) -> None:
        """Make the lab's namespace; one that is Terminating is waited for first.

        Raises SetupError where it stays Terminating, with what the server says holds it.
        """
        found = self._cluster.find(paths.THE_NAMESPACE)
        if found and objects.is_terminating(found):
            self._outlast_namespace(found)
            found = None
        if found is None:
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
            self._create(paths.NAMESPACES, body)

    def label(self, lab_node: LabNode) -> None:
        """Set the workload label of a node, whatever it was."""
        body = {"metadata": {"labels": {LABEL_KEY: lab_node.value}}}
        self._cluster.merge_patch(paths.node(lab_node.name), body)

    def advertise(self, lab_node: LabNode) -> None:
        """Set the node's resource in capacity and allocatable; its other nvidia.com/ names go."""
        found = self._cluster.get(paths.node(lab_node.name))
        status = {
            field: dict.fromkeys(objects.gpu_resources(found, field))
            | {lab_node.resource: lab_node.amount}
            for field in ("capacity", "allocatable")
        }
        self._cluster.merge_patch(f"{paths.node(lab_node.name)}/status", {"status": status})

    def pod(self, lab_pod: LabPod, *, keep: Callable[[Object], bool]) -> None:
        """Make a Pod of the lab; the one that is there stays if it asks the same and `keep` says so.

        A Pod's resources are immutable, so a different one is deleted and created anew. Pods of the
        lab that ask for something else than they should go too: they may hold what this one needs.
        """
        existing = {pod["metadata"]["name"]: pod for pod in self._pods()}
        for other in self._deviating(existing, lab_pod):
            self._remove(other)
        found = existing.get(lab_pod.name)
        if found and self._is_fit(found, lab_pod) and keep(found):
            return
        if found:
            self._remove(found)
        self._create(paths.PODS, manifests.pod(lab_pod))

    def _pods(self) -> list[Object]:
        return list(self._cluster.get(paths.PODS).get("items") or ())

    def _deviating(self, existing: dict[str, Object], besides: LabPod) -> list[Object]:
        others = [(existing.get(p.name), p) for p in PODS if p.name != besides.name]
        return [pod for pod, lab_pod in others if pod and not self._is_fit(pod, lab_pod)]

    @staticmethod
    def _is_fit(pod: Object, lab_pod: LabPod) -> bool:
        over = objects.is_terminating(pod) or objects.phase_of(pod) in {"Succeeded", "Failed"}
        return not over and manifests.asks_the_same(pod, lab_pod)

    def _remove(self, pod: Object) -> None:
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]

        def gone() -> bool | None:
            found = self._cluster.find(paths.pod(name))
            if found is None or found["metadata"]["uid"] != uid:
                return True
            # grace period 0: without a kubelet nobody else ends a bound Pod
            self._cluster.delete(paths.pod(name), uid=uid, grace_period=0)
            return None

        if waiting.until(gone, seconds=self._timeout, every=PASSING_POLL) is None:
            holders = ", ".join(pod["metadata"].get("finalizers") or ()) or "nothing it names"
            raise WaitTimeoutError(
                f"Pod {name} of an earlier attempt is still being deleted after "
                f"{self._timeout:g} s; held by {holders}",
                hint=f"kubectl get pod -n {NAMESPACE} {name} -o yaml",
            )

    def _create(self, collection: str, body: Object) -> None:
        """Create a named object; one that exists is taken as the answer that got lost."""
        for left in reversed(range(CREATE_TRIES)):
            try:
                self._cluster.create(collection, body)
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

    def _outlast_namespace(self, found: Object) -> None:
        if self._own:
            self._finish_namespace(found)
        gone = waiting.until(self._namespace_is_gone, seconds=self._timeout)
        if gone is None:
            left = self._cluster.find(paths.THE_NAMESPACE) or found
            raise SetupError(
                f"namespace {NAMESPACE} is still Terminating after {self._timeout:g} s",
                details=_holders(left),
                hint=f"kubectl get namespace {NAMESPACE} -o yaml shows what holds it",
            )

    def _namespace_is_gone(self) -> bool | None:
        found = self._cluster.find(paths.THE_NAMESPACE)
        return None if found and objects.is_terminating(found) else True

    def _finish_namespace(self, found: Object) -> None:
        """Do what kube-controller-manager does elsewhere: empty the namespace, then release it."""
        for pod in self._pods():
            self._remove(pod)
        released = {**found, "spec": {"finalizers": []}}
        released["metadata"] = {"name": NAMESPACE, "uid": found["metadata"]["uid"]}
        self._cluster.replace(f"{paths.THE_NAMESPACE}/finalize", released)


def _holders(namespace: Object) -> list[str]:
    conditions = (namespace.get("status") or {}).get("conditions") or ()
    texts = [
        f"{c.get('type')}: {c.get('message')}" for c in conditions if c.get("status") == "True"
    ]
    finalizers = namespace["spec"].get("finalizers") or []
    return texts or [f"finalizers: {', '.join(finalizers) or 'none'}; no controller reports on it"]
