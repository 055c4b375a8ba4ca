"""Step 4: a container job, placed by the name of its resource."""

from gpuwl.k8s import objects
from gpuwl.lab import byhand, placing, report, requirements
from gpuwl.lab.context import Context
from gpuwl.lab.names import JOB_CONTAINER
from gpuwl.lab.step import Nodes, Step

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
    requires=(requirements.namespace(), requirements.resource(0)),
    artifacts=(JOB_CONTAINER.manifest, OUTPUT),
    run=run,
    by_hand=by_hand,
    makes_pods=True,
)
