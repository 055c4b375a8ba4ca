"""Pods on a local control plane that holds somebody's cluster, until the scheduler has decided all."""

import contextlib
import signal
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from gpuwl.controlplane import passing, store
from gpuwl.errors import ClusterError, InputError, WaitTimeoutError
from gpuwl.k8s import objects
from gpuwl.k8s.client import Cluster
from gpuwl.k8s.objects import Object
from gpuwl.placement import schedulerdump
from gpuwl.placement.schedulerdump import Dump
from gpuwl.placement.world import World, label_of
from gpuwl.system import waiting

POLL = 0.01
WITHOUT_NODE = "/api/v1/pods?fieldSelector=spec.nodeName%3D"
OWN_NAMESPACE = "gpuwl-place"
NOWHERE = "gpuwl.invalid"
"""No node has this name."""
REFUSED = frozenset({400, 403, 409, 413, 422})
"""Statuses that say that the object is at fault."""


@dataclass(frozen=True)
class Outcome:
    """What became of a Pod: its node, or None and the scheduler's words.

    `preempts` names the node that the scheduler would clear for it, and `victims` the Pods that it
    would evict there.
    """

    pod: Object
    node: str | None
    message: str = ""
    preempts: str | None = None
    victims: tuple[str, ...] = ()


class Arena:
    """A control plane that is up with a world in it."""

    def __init__(self, plane: passing.Passing, world: World, *, timeout: float) -> None:
        self.cluster = Cluster.from_kubeconfig(plane.kubeconfig, request_timeout=max(timeout, 30))
        self.timeout = timeout
        self.world = world
        self._plane = plane
        self._store = store.Store(plane.folder)
        self._stored = world.by_key()
        self._created: dict[str, Object] = {}
        self._touched: set[str] = set()
        self._turn = 0

    def close(self) -> None:
        """Close the connections."""
        self.cluster.close()
        self._store.close()

    def place(self, pods: Sequence[Object], claims: dict[str, list[Object]]) -> list[Outcome]:
        """Create the Pods in this order, with their claims by Pod; return what became of each.

        Raises InputError where the API server refuses one, WaitTimeoutError where the scheduler has
        not decided in time.
        """
        for pod in pods:
            self.create(pod, claims.get(label_of(pod), ()))
        self.settle()
        return [self._outcome(pod) for pod in pods]

    def create(self, pod: Object, claims: Iterable[Object] = ()) -> Object:
        """Create a Pod, and claims that its templates would have made."""
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
        made = self._create(path, pod)
        self._created[store.key_of({**made, "kind": "Pod"})] = made
        statuses = []
        for claim in claims:
            owner = {"apiVersion": "v1", "kind": "Pod", "controller": True}
            metadata = {k: made["metadata"][k] for k in ("name", "uid")}
            owned = {**claim["metadata"], "ownerReferences": [owner | metadata]}
            where = store.LISTS["ResourceClaim"].replace(
                "/v1/", f"/v1/namespaces/{owned['namespace']}/"
            )
            done = self._create(where, {**claim, "metadata": owned})
            self._created[store.key_of({**done, "kind": "ResourceClaim"})] = done
            key = owned["annotations"]["resource.kubernetes.io/pod-claim-name"]
            statuses.append({"name": key, "resourceClaimName": owned["name"]})
        if statuses:
            status = {"status": {"resourceClaimStatuses": statuses}}
            self.cluster.merge_patch(f"{path}/{made['metadata']['name']}/status", status)
        return made

    def _create(self, path: str, item: Object) -> Object:
        try:
            return self.cluster.create(path, item)
        except ClusterError as error:
            if error.status not in REFUSED:
                raise
            raise InputError(
                f"the API server refuses {item['kind']} {label_of(item)}", details=[error.message]
            ) from None

    def settle(self) -> Dump:
        """Wait until the scheduler has decided every Pod and nothing moves; return its own view.

        A Pod with PodScheduled=False may still get a node because of one that came later. So: note who
        waits, let the scheduler decide a Pod that no node takes, look into its queue, and look again
        who waits. Raises WaitTimeoutError.
        """
        found = waiting.until(self._settled, seconds=self.timeout, every=POLL)
        if found is None:
            left = len(self._waiting())
            raise WaitTimeoutError(
                f"the scheduler has not decided every Pod within {self.timeout:g} s",
                details=[f"{left} Pods have no node yet"],
                hint="give it more time with --timeout",
            )
        return found

    def _settled(self) -> Dump | None:
        before = self._waiting()
        with self.passing_pod(sentinel()) as path:
            decided = waiting.until(lambda: self._decided(path), seconds=self.timeout, every=POLL)
            found = self.look() if decided else None
        if found is None or found.active or found.backoff:
            return None
        quiet = found.waiting == len(before) + 1 and before == self._waiting()
        return found if quiet and len(found.nodes) == len(self.world.nodes) else None

    def _decided(self, path: str) -> bool | None:
        return True if objects.scheduled(self.cluster.get(path)) else None

    def _waiting(self) -> set[str]:
        items = self.cluster.get(WITHOUT_NODE)["items"]
        return {item["metadata"]["uid"] for item in items if is_default(item)}

    @contextlib.contextmanager
    def passing_pod(self, pod: Object) -> Iterator[str]:
        """Have a Pod of our own for a block; yields its path."""
        self._turn += 1
        name = f"{pod['metadata']['name']}-{self._turn}"
        named = {**pod, "metadata": {**pod["metadata"], "name": name}}
        path = f"/api/v1/namespaces/{named['metadata']['namespace']}/pods"
        made = self.cluster.create(path, named)
        try:
            yield f"{path}/{name}"
        finally:
            self.cluster.delete(f"{path}/{name}", uid=made["metadata"]["uid"], grace_period=0)

    def look(self) -> Dump | None:
        """Have the scheduler write down what it knows. None where it does not within two seconds."""
        log = self._plane.scheduler_log
        offset = log.stat().st_size
        self._plane.signal_scheduler(signal.SIGUSR2)
        return waiting.until(lambda: schedulerdump.find(log, offset), seconds=2, every=POLL)

    def _outcome(self, pod: Object) -> Outcome:
        metadata = pod["metadata"]
        found = self.cluster.get(
            f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        )
        node = objects.node_of(found)
        if node:
            return Outcome(found, node)
        gates = (found["spec"].get("schedulingGates") or []) and "it has scheduling gates"
        message = " ".join(str(objects.scheduled(found).get("message") or gates).split())
        nominated = (found.get("status") or {}).get("nominatedNodeName")
        victims = self._victims(nominated) if nominated else ()
        return Outcome(found, None, message, nominated, victims)

    def _victims(self, node: str) -> tuple[str, ...]:
        on_it = self.cluster.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node}")["items"]
        going = [{**pod, "kind": "Pod"} for pod in on_it if objects.is_terminating(pod)]
        self._touched |= {store.key_of(pod) for pod in going}
        return tuple(label_of(pod) for pod in going)

    def become(self, world: World) -> None:
        """Turn the control plane into another world: without the Pods that were placed so far.

        The changes go past the API server, as the first world did. Returns once the scheduler knows.
        """
        wanted = world.by_key()
        puts = [
            item
            for key, item in wanted.items()
            if key in self._touched or self._stored.get(key) is not item
        ]
        gone = [key for key in self._stored if key not in wanted]
        self._store.delete([*self._created, *gone])
        for batch in store.batches(sorted(puts, key=lambda item: item["kind"] != "Node")):
            self._store.put(batch)
        self.world, self._stored = world, wanted
        self._created, self._touched = {}, set()
        self._wait_until_known()

    @contextlib.contextmanager
    def with_node(self, node: Object) -> Iterator[None]:
        """Have another node in the place of the one of its name for a block; Pods stay as they are."""
        self._swap(node)
        try:
            yield
        finally:
            self._swap(self.world.nodes[node["metadata"]["name"]])

    def _swap(self, node: Object) -> None:
        for batch in store.batches([node]):
            self._store.put(batch)
        self._wait_until_known()

    def _wait_until_known(self) -> None:
        """Wait until the scheduler has seen every change of a node: it hears of them in their order."""
        self._turn += 1
        name = f"gpuwl-marker-{self._turn}"
        taints = [{"key": "gpuwl.dev/marker", "effect": "NoSchedule"}]
        marker = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        room = {"pods": "10"}
        marker |= {"spec": {"taints": taints}, "status": {"allocatable": room, "capacity": room}}
        for batch in store.batches([marker]):
            self._store.put(batch)
        with self.passing_pod(pinned(name)) as path:
            seen = waiting.until(
                lambda: objects.node_of(self.cluster.get(path)) or None,
                seconds=self.timeout,
                every=POLL,
            )
        self._store.delete([store.key_of(marker)])
        if not seen:
            raise WaitTimeoutError("the scheduler has not taken note of the change in time")


def is_default(pod: Object) -> bool:
    """Tell whether our scheduler decides about a Pod."""
    return bool(pod["spec"].get("schedulerName", "default-scheduler") == "default-scheduler")


def sentinel() -> Object:
    """Return a Pod that no node takes."""
    return pinned(NOWHERE)


def pinned(node: str) -> Object:
    """Return a Pod that only this node takes, whatever its taints."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "gpuwl", "namespace": OWN_NAMESPACE},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "affinity": {"nodeAffinity": required},
            "tolerations": [{"operator": "Exists"}],
        },
    }
