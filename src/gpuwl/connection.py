"""From a chosen target to a cluster that answered and has the lab's nodes."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuwl import paths, target
from gpuwl.errors import SetupError
from gpuwl.names import LabNode
from gpuwl.runfile import TargetRecord
from gpuwl.target import Choice

if TYPE_CHECKING:
    from gpuwl.cluster import Cluster

Say = Callable[[str], None]

LONGEST_REQUEST = 10.0
"""Limit of one request in seconds, where the limit of a wait is not even shorter."""


@dataclass(frozen=True)
class Connection:
    """A cluster that answered, and what out/run.json says of it."""

    cluster: "Cluster"
    record: TargetRecord

    @property
    def own(self) -> bool:
        """Tell whether it is a local control plane of ours."""
        return self.record.kind == "local"


@contextlib.contextmanager
def connect(choice: Choice, *, timeout: float) -> Iterator[Connection]:
    """Connect to the chosen target, which must be up by now, until the body ends.

    Raises SetupError for a kubeconfig that cannot be used, ClusterError where the server does not
    answer.
    """
    with contextlib.closing(_client(choice, min(timeout, LONGEST_REQUEST))) as cluster:
        yield Connection(cluster, _record(cluster, _name(choice)))


def _client(choice: Choice, limit: float) -> "Cluster":
    from gpuwl.cluster import Cluster  # heavy: a local control plane boots while it is imported

    if choice.in_cluster:
        return Cluster.in_cluster(request_timeout=limit)
    return Cluster.from_kubeconfig(choice.kubeconfig, choice.context, request_timeout=limit)


def _name(choice: Choice) -> str:
    return "in-cluster" if choice.in_cluster else choice.context or "current context"


def _record(cluster: "Cluster", name: str) -> TargetRecord:
    version = str(cluster.get(paths.VERSION).get("gitVersion", "unknown"))
    ours = target.local_name(cluster.server)
    if ours:
        return TargetRecord("local", ours, cluster.server, version)
    return TargetRecord("cluster", name, cluster.server, version)


def check_nodes(connection: Connection, nodes: tuple[LabNode, ...]) -> None:
    """Raise SetupError, naming the nodes there are, where a node of the lab is missing."""
    missing = [n.name for n in nodes if connection.cluster.find(paths.node(n.name)) is None]
    if not missing:
        return
    listing = connection.cluster.get(f"{paths.NODES}?limit=20").get("items") or ()
    found = ", ".join(item["metadata"]["name"] for item in listing) or "none"
    hint = "gpuwl local down && gpuwl local up makes the lab's nodes anew"
    raise SetupError(
        f"the cluster at {connection.cluster.server} lacks nodes of the lab: {', '.join(missing)}",
        details=[f"its nodes: {found}"],
        hint=hint
        if connection.own
        else "add --local to use a local control plane with these nodes",
    )
