"""What is verified: a cluster as it is now, and the files below a root."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from gpuwl.k8s import dump
from gpuwl.k8s.client import ReadOnlyCluster
from gpuwl.k8s.objects import Object
from gpuwl.lab import paths
from gpuwl.lab.artifacts import Artifacts
from gpuwl.lab.names import LabNode, LabPod
from gpuwl.target.connection import TargetRecord


@dataclass(frozen=True)
class Attempt:
    """One attempt at the lab, made by gpuwl or by hand; each list of the cluster is read once.

    `target` is the cluster that is verified and `timeout` the limit of one wait in seconds. `gpuwl`
    is how to call gpuwl on the same target and root, for the commands that are named. `seed` makes
    the dumps that the checker is asked about; those that it gets wrong are kept in `keep`. Reading
    raises ClusterError.
    """

    cluster: ReadOnlyCluster
    artifacts: Artifacts
    nodes: tuple[LabNode, LabNode, LabNode]
    target: TargetRecord
    timeout: float
    keep: Path
    seed: int
    gpuwl: str = "gpuwl"

    def node(self, name: str) -> Object | None:
        """Return a node of the cluster, None where there is none of that name."""
        return self._nodes_by_name.get(name)

    def pod(self, lab_pod: LabPod) -> Object | None:
        """Return a Pod of the lab's namespace, None where there is none."""
        return self._pods_by_name.get(lab_pod.name)

    @cached_property
    def node_list(self) -> Object:
        """The nodes of the cluster as `kubectl get nodes -o json` shows them."""
        return dump.kubectl_list(self.cluster.raw(paths.NODES))

    @cached_property
    def taints(self) -> list[Object]:
        """The taints of all nodes, to judge tolerations by."""
        return [
            t for n in self.node_list["items"] for t in (n.get("spec") or {}).get("taints") or ()
        ]

    @cached_property
    def namespace(self) -> Object | None:
        """The lab's namespace, None where there is none."""
        return self.cluster.find(paths.THE_NAMESPACE)

    @cached_property
    def scheduled_events(self) -> list[Object]:
        """The events of the lab's namespace that tell of a placement; they expire (1 h)."""
        found = self.cluster.get(f"{paths.EVENTS}?fieldSelector=reason%3DScheduled")
        return list(found.get("items") or ())

    @cached_property
    def _nodes_by_name(self) -> dict[str, Object]:
        return {node["metadata"]["name"]: node for node in self.node_list["items"]}

    @cached_property
    def _pods_by_name(self) -> dict[str, Object]:
        found = self.cluster.get(paths.PODS).get("items") or ()
        return {pod["metadata"]["name"]: pod for pod in found}
