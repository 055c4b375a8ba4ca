"""Removing Pods and namespaces for good, with a limit, whoever else has a hand in it."""

from gpuwl.errors import ClusterError, SetupError, WaitTimeoutError
from gpuwl.k8s import objects
from gpuwl.k8s.client import NOT_FOUND, Cluster
from gpuwl.k8s.objects import Object
from gpuwl.lab import paths
from gpuwl.lab.journal import THE_NAMESPACE, Journal, pod_key
from gpuwl.lab.names import NAMESPACE
from gpuwl.system import waiting

PASSING_POLL = 0.02


class Removal:
    """Removes what is in the lab's namespace, and the namespace.

    `timeout` is the limit of one wait in seconds. `own` says that the cluster is our local control
    plane, which has no kube-controller-manager to finish the deletion of a namespace.
    """

    def __init__(self, cluster: Cluster, journal: Journal, *, timeout: float, own: bool) -> None:
        self._cluster = cluster
        self._journal = journal
        self._timeout = timeout
        self._own = own

    def pods(self) -> list[Object]:
        """Return the Pods of the lab's namespace."""
        return list(self._cluster.get(paths.PODS).get("items") or ())

    def pod(self, pod: Object) -> None:
        """Delete this very Pod and wait until it is gone.

        Raises WaitTimeoutError, with the finalizers that hold it, where it stays.
        """
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        self._journal.will_remove(pod_key(name), pod)

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
                f"Pod {name} is still being deleted after {self._timeout:g} s; held by {holders}",
                hint=f"kubectl get pod -n {NAMESPACE} {name} -o yaml",
            )

    def namespace(self, found: Object) -> None:
        """Delete this very namespace and wait until it is gone.

        Raises WaitTimeoutError where the server does not begin to delete it, SetupError as `outlast`
        does.
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
            self.outlast(left)

    def outlast(self, found: Object) -> None:
        """Wait until a Terminating namespace is gone; on our own control plane finish it.

        Raises SetupError where it stays Terminating, with what the server says holds it.
        """
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

    def _namespace_is_gone(self) -> bool | None:
        found = self._cluster.find(paths.THE_NAMESPACE)
        return None if found and objects.is_terminating(found) else True

    def _finish(self, found: Object) -> None:
        """Do what kube-controller-manager does elsewhere: empty the namespace, then release it.

        Raises SetupError where something in it is held by a finalizer.
        """
        self._journal.will_remove(THE_NAMESPACE, found)
        for pod in self.pods():
            self.pod(pod)
        held = [  # what stays comes back with the next namespace
            f"{kind}/{item['metadata']['name']} is held by {', '.join(item['metadata']['finalizers'])}"
            for kind in self._other_kinds()
            for item in self._cluster.delete_all(f"{paths.THE_NAMESPACE}/{kind}")
        ]
        if held:
            raise SetupError(
                f"namespace {NAMESPACE} cannot be emptied",
                details=held,
                hint=f"kubectl edit -n {NAMESPACE} takes a finalizer off that nobody heeds",
            )
        released = {**found, "spec": {"finalizers": []}}
        released["metadata"] = {"name": NAMESPACE, "uid": found["metadata"]["uid"]}
        try:
            self._cluster.replace(f"{paths.THE_NAMESPACE}/finalize", released)
        except ClusterError as error:
            if error.status != NOT_FOUND:  # that is what was wanted: an answer got lost, say
                raise

    def _other_kinds(self) -> list[str]:
        """Return what else of the core API a namespace may hold (API discovery)."""
        kinds = self._cluster.get(paths.CORE)["resources"]
        return [
            kind["name"]
            for kind in kinds
            if kind["namespaced"] and "deletecollection" in kind["verbs"] and kind["name"] != "pods"
        ]


def _holders(namespace: Object) -> list[str]:
    conditions = (namespace.get("status") or {}).get("conditions") or ()
    texts = [
        f"{c.get('type')}: {c.get('message')}" for c in conditions if c.get("status") == "True"
    ]
    finalizers = namespace["spec"].get("finalizers") or []
    return texts or [f"finalizers: {', '.join(finalizers) or 'none'}; no controller reports on it"]
