"""From a chosen target to a cluster that answered and has the lab's nodes."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from gpuwl import paths, target
from gpuwl.errors import SetupError
from gpuwl.names import NODE_NAMES, LabNode
from gpuwl.runfile import TargetRecord
from gpuwl.target import Choice

if TYPE_CHECKING:
    from gpuwl.cluster import Cluster, ReadOnlyCluster

Client = TypeVar("Client", bound="ReadOnlyCluster")

LONGEST_REQUEST = 10.0
"""Limit of one request in seconds, where the limit of a wait is not even shorter."""


@dataclass(frozen=True)
class ReadOnlyConnection:
    """A cluster that answered and can only be looked at, and what out/run.json says of it."""

    cluster: "ReadOnlyCluster"
    record: TargetRecord

    @property
    def own(self) -> bool:
        """Tell whether it is a local control plane of ours."""
        return self.record.kind == "local"

    @property
    def local_name(self) -> str | None:
        """The name of our local control plane, None for another cluster."""
        return self.record.name if self.own else None


@dataclass(frozen=True)
class Connection(ReadOnlyConnection):
    """A cluster that answered and may be changed."""

    cluster: "Cluster"


@contextlib.contextmanager
def connect(choice: Choice, *, timeout: float) -> Iterator[Connection]:
    """Connect to the chosen target, which must be up by now, until the body ends.

    Raises SetupError for a kubeconfig that cannot be used, ClusterError where the server does not
    answer.
    """
    from gpuwl.cluster import Cluster  # heavy: a local control plane boots while it is imported

    with contextlib.closing(_client(Cluster, choice, timeout)) as cluster:
        yield Connection(cluster, _record(cluster))


@contextlib.contextmanager
def connect_to_read(choice: Choice, *, timeout: float) -> Iterator[ReadOnlyConnection]:
    """Connect as `connect` does, with a client that cannot write."""
    from gpuwl.cluster import ReadOnlyCluster

    with contextlib.closing(_client(ReadOnlyCluster, choice, timeout)) as cluster:
        yield ReadOnlyConnection(cluster, _record(cluster))


def _client(kind: type[Client], choice: Choice, timeout: float) -> Client:
    limit = min(timeout, LONGEST_REQUEST)
    if choice.in_cluster:
        return kind.in_cluster(request_timeout=limit)
    return kind.from_kubeconfig(choice.kubeconfig, choice.context, request_timeout=limit)


def _record(cluster: "ReadOnlyCluster") -> TargetRecord:
    version = str(cluster.get(paths.VERSION).get("gitVersion", "unknown"))
    ours = target.local_name(cluster.server)
    if ours:
        return TargetRecord("local", ours, cluster.server, version)
    return TargetRecord("cluster", cluster.context, cluster.server, version)


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
    which = f"--name {connection.local_name}"  # the default one may be another, in use
    return f"gpuwl local down {which} && gpuwl local up {which} makes the lab's nodes anew"
