"""The requirements that several steps share. Each only reads the cluster."""

from gpuwl import manifests, objects, paths
from gpuwl.context import Context
from gpuwl.names import NAMESPACE, LabPod
from gpuwl.step import Requirement


def namespace() -> Requirement:
    """Require the lab's namespace, and that it is not being deleted."""

    def holds(ctx: Context) -> bool:
        found = ctx.cluster.find(paths.THE_NAMESPACE)
        return found is not None and not objects.is_terminating(found)

    return Requirement(f"namespace {NAMESPACE}", 1, holds)


def labels() -> Requirement:
    """Require the workload label of all three nodes."""

    def holds(ctx: Context) -> bool:
        return all(objects.label_of(ctx.node(node)) == node.value for node in ctx.nodes)

    return Requirement("the workload labels of the three nodes", 1, holds)


def resource(index: int) -> Requirement:
    """Require that the lab's node of that index advertises its resource."""
    from_table = ("nvidia.com/gpu", "the device model", "the vGPU profile")[index]

    def holds(ctx: Context) -> bool:
        node = ctx.nodes[index]
        return node.resource in objects.advertised(ctx.node(node))

    return Requirement(f"a node that advertises {from_table}", 3, holds)


def placed(lab_pod: LabPod, step: int) -> Requirement:
    """Require that an earlier step's Pod has its node."""

    def holds(ctx: Context) -> bool:
        found = ctx.pod(lab_pod.name)
        return (
            found is not None
            and objects.is_scheduled(found)
            and manifests.asks_the_same(found, lab_pod)
        )

    return Requirement(f"Pod {lab_pod.name} on a node", step, holds)
