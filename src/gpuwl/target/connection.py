"""From a chosen target to a cluster that answered."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from gpuwl.controlplane import blame, presence, state
from gpuwl.k8s import paths
from gpuwl.target import target
from gpuwl.target.target import Choice

if TYPE_CHECKING:
    from gpuwl.k8s.client import Cluster, ReadOnlyCluster

Client = TypeVar("Client", bound="ReadOnlyCluster")

LONGEST_REQUEST = 10.0
"""Limit of one request in seconds, where the limit of a wait is not even shorter."""


@dataclass(frozen=True)
class TargetRecord:
    """What the steps ran on: `local` control plane or `cluster`, by name, server and version."""

    kind: Literal["local", "cluster"]
    name: str
    server: str
    kubernetes: str


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
    from gpuwl.k8s.client import Cluster  # heavy: a local control plane boots while it is imported

    with (
        contextlib.closing(_client(Cluster, choice, timeout)) as cluster,
        _used(cluster) as record,
    ):
        yield Connection(cluster, record)


@contextlib.contextmanager
def connect_to_read(choice: Choice, *, timeout: float) -> Iterator[ReadOnlyConnection]:
    """Connect as `connect` does, with a client that cannot write."""
    from gpuwl.k8s.client import ReadOnlyCluster

    with (
        contextlib.closing(_client(ReadOnlyCluster, choice, timeout)) as cluster,
        _used(cluster) as record,
    ):
        yield ReadOnlyConnection(cluster, record)


def _client(kind: type[Client], choice: Choice, timeout: float) -> Client:
    limit = min(timeout, LONGEST_REQUEST)
    if choice.in_cluster:
        return kind.in_cluster(request_timeout=limit, patience=timeout)
    return kind.from_kubeconfig(
        choice.kubeconfig, choice.context, request_timeout=limit, patience=timeout
    )


@contextlib.contextmanager
def _used(cluster: "ReadOnlyCluster") -> Iterator[TargetRecord]:
    """Yield what a cluster is; one of our own is not taken away meanwhile, and named where it fails.

    Raises SetupError for one of our own that is suspended: it would answer nobody.
    """
    ours = target.local_name(cluster.server)
    with contextlib.ExitStack() as stack:
        if ours:
            presence.check_awake(ours)
            stack.enter_context(state.used(ours))
            stack.enter_context(blame.blamed(ours))
        yield _record(cluster, ours)


def _record(cluster: "ReadOnlyCluster", ours: str | None) -> TargetRecord:
    version = str(cluster.get(paths.VERSION).get("gitVersion", "unknown"))
    if ours:
        return TargetRecord("local", ours, cluster.server, version)
    return TargetRecord("cluster", cluster.context, cluster.server, version)
