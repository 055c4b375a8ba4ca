"""Step 5: a stand-in for a VM with a whole card."""

from typing import Any

from gpuwl.k8s import objects
from gpuwl.lab import byhand, placing, report, requirements
from gpuwl.lab.context import Context
from gpuwl.lab.names import PREFIX, VMI_PASSTHROUGH
from gpuwl.lab.step import Nodes, Step

OUTPUT = "out/05-passthrough.txt"


def render(pod: dict[str, Any]) -> str:
    """Return the node of the Pod, and the GPU resource that its container is limited to."""
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    names = [name for name in limits if name.startswith(PREFIX)]  # a LimitRange adds others
    return report.pairs({"NODE": objects.node_of(pod), "RESOURCE": ",".join(names)})


def run(ctx: Context) -> None:
    """Place the Pod and write where it went and what it holds there."""
    ctx.artifacts.write(OUTPUT, render(placing.place(ctx, VMI_PASSTHROUGH)))


def by_hand(nodes: Nodes) -> str:  # noqa: ARG001 - the Pod names no node
    """Return the same with kubectl."""
    return (
        byhand.pod_lines(VMI_PASSTHROUGH)
        + byhand.read("node", VMI_PASSTHROUGH, "{.spec.nodeName}")
        + "\n"
        + byhand.read_resource("resource", VMI_PASSTHROUGH)
        + "\n"
        + byhand.write(OUTPUT, NODE="$node", RESOURCE="$resource")
    )


STEP = Step(
    number=5,
    slug="passthrough",
    requires=(requirements.namespace(), requirements.resource(1)),
    artifacts=(VMI_PASSTHROUGH.manifest, OUTPUT),
    run=run,
    by_hand=by_hand,
    makes_pods=True,
)
