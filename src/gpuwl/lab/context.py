"""What a step may touch."""

from collections.abc import Callable
from dataclasses import dataclass

from gpuwl.errors import SetupError
from gpuwl.k8s import objects
from gpuwl.k8s.client import ReadOnlyCluster
from gpuwl.k8s.objects import Object
from gpuwl.lab import paths
from gpuwl.lab.artifacts import Artifacts
from gpuwl.lab.changes import Changes
from gpuwl.lab.names import LabNode, LabPod


@dataclass(frozen=True)
class Context:
    """Cluster, files, the three nodes, and the limit of one wait in seconds.

    `warn` tells people, in one line, what does not stop a step and still is not to be missed.
    """

    cluster: ReadOnlyCluster
    changes: Changes
    artifacts: Artifacts
    nodes: tuple[LabNode, LabNode, LabNode]
    timeout: float
    warn: Callable[[str], None]

    def node(self, lab_node: LabNode) -> Object:
        """Read a node of the lab; SetupError where it went away."""
        found = self.cluster.find(paths.node(lab_node.name))
        if found is None:
            raise SetupError(
                f"node {lab_node.name} is gone from the cluster",
                hint="kubectl get nodes shows which are left; the next run says how to get it back",
            )
        return found

    def pod(self, name: str) -> Object | None:
        """Read a Pod of the lab's namespace, None where there is none."""
        return self.cluster.find(paths.pod(name))

    def is_placed(self, pod: Object, lab_pod: LabPod) -> bool:
        """Tell whether the scheduler put a Pod on a node that advertises what the Pod asks for."""
        if not objects.is_scheduled(pod):
            return False
        node = self.cluster.find(paths.node(objects.node_of(pod)))
        return node is not None and lab_pod.resource in objects.advertised(node)
