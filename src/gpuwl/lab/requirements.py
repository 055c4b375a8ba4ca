"""The requirements that several steps share. Each only reads the cluster."""

from gpuwl.k8s import objects
from gpuwl.lab import manifests, paths
from gpuwl.lab.context import Context
from gpuwl.lab.names import NAMESPACE, LabPod, lab_nodes
from gpuwl.lab.step import Requirement


def namespace() -> Requirement:
    """Require the lab's namespace, and that it is not being deleted."""

    def holds(ctx: Context) -> bool:
        found = ctx.cluster.find(paths.THE_NAMESPACE)
        return found is not None and not objects.is_terminating(found)

    return Requirement("namespace", 1, holds, (("namespace", NAMESPACE),))


def labels() -> Requirement:
    """Require the workload label of all three nodes."""

    def holds(ctx: Context) -> bool:
        return all(objects.label_of(ctx.node(node)) == node.value for node in ctx.nodes)

    return Requirement("labels", 1, holds)


def resource(index: int) -> Requirement:
    """Require that of the lab's nodes the one of that index alone advertises its resource.

    Where another one does too, as after a change of use, the scheduler may choose that one.
    """
    lab_node = lab_nodes()[index]

    def holds(ctx: Context) -> bool:
        holders = [n for n in ctx.nodes if lab_node.resource in objects.advertised(ctx.node(n))]
        return holders == [ctx.nodes[index]]

    names = (("resource", lab_node.resource), ("value", lab_node.value))
    return Requirement("resource", 3, holds, names)


def placed(lab_pod: LabPod, step: int) -> Requirement:
    """Require that an earlier step's Pod is where the scheduler put it for its resource."""

    def holds(ctx: Context) -> bool:
        found = ctx.pod(lab_pod.name)
        return (
            found is not None
            and not objects.is_over(found)
            and manifests.asks_the_same(found, lab_pod)
            and ctx.is_placed(found, lab_pod)
        )

    return Requirement("placed", step, holds, (("pod", lab_pod.name),))
