"""Step 4: a container job, placed by the name of its resource."""

from gpuwl.k8s import objects
from gpuwl.lab import byhand, placing, report, requirements
from gpuwl.lab.context import Context
from gpuwl.lab.names import JOB_CONTAINER
from gpuwl.lab.step import Nodes, Step, Why

OUTPUT = "out/04-container.txt"


def run(ctx: Context) -> None:
    """Place the Pod and write the node that the scheduler chose."""
    pod = placing.place(ctx, JOB_CONTAINER)
    ctx.artifacts.write(OUTPUT, report.pairs({"NODE": objects.node_of(pod)}))


def by_hand(nodes: Nodes) -> str:  # noqa: ARG001 - the Pod names no node
    """Return the same with kubectl."""
    return (
        byhand.pod_lines(JOB_CONTAINER)
        + byhand.read("node", JOB_CONTAINER, "{.spec.nodeName}")
        + "\n"
        + byhand.write(OUTPUT, NODE="$node")
    )


STEP = Step(
    number=4,
    slug="container",
    title="A container job finds its node by the resource name",
    why=Why(
        matters=(
            "The Pod sets no condition at all: no node selector, no affinity, no toleration. Still "
            "only one node is possible, because only one advertises the name it asks for."
        ),
        look="spec.nodeName of the Pod, and the PodScheduled condition that the scheduler set.",
        pitfalls=(
            "Extended resources go into limits alone: requests would have to be equal, and the API "
            "server fills them in. Do not wait for Running to learn where a Pod came up; "
            "PodScheduled=True is the event, and fake nodes never run anything."
        ),
    ),
    requires=(requirements.namespace(), requirements.resource(0)),
    artifacts=(JOB_CONTAINER.manifest, OUTPUT),
    run=run,
    by_hand=by_hand,
    makes_pods=True,
)
