"""Step 7: a container job asks for a passthrough node, and waits for good."""

from typing import Any

from gpuwl.errors import JudgedNegativeError
from gpuwl.k8s import objects
from gpuwl.lab import byhand, placing, report, requirements
from gpuwl.lab.context import Context
from gpuwl.lab.names import JOB_CROSS, LABEL_KEY
from gpuwl.lab.step import Nodes, Step

OUTPUT = "out/07-cross.txt"


def render(pod: dict[str, Any]) -> str:
    """Return phase, node (`none` when empty) and the scheduler's message in one line each."""
    return report.pairs(
        {
            "PHASE": objects.phase_of(pod),
            "NODE": objects.node_of(pod) or "none",
            "MESSAGE": report.one_line(objects.scheduled(pod).get("message") or ""),
        }
    )


def run(ctx: Context) -> None:
    """Let the scheduler refuse the Pod, and write its words.

    Raises JudgedNegativeError where the Pod gets a node: that cluster does not show what the lab
    is about.
    """
    pod = placing.place_in_vain(ctx, JOB_CROSS)
    if objects.node_of(pod):
        raise JudgedNegativeError(
            f"Pod {JOB_CROSS.name} was expected to stay without a node, but it is on "
            f"{objects.node_of(pod)}",
            details=[
                (
                    f"a node labelled {LABEL_KEY}={JOB_CROSS.selects} advertises "
                    f"{JOB_CROSS.resource} on this cluster"
                )
            ],
            hint="gpuwl check on a dump of the nodes names the ones that disagree",
        )
    ctx.artifacts.write(OUTPUT, render(pod))


def by_hand(nodes: Nodes) -> str:  # noqa: ARG001 - the Pod selects by label
    """Return the same with kubectl."""
    condition = '{{.status.conditions[?(@.type=="PodScheduled")].{}}}'
    reads = [
        byhand.read("phase", JOB_CROSS, "{.status.phase}"),
        byhand.read("node", JOB_CROSS, "{.spec.nodeName}"),
        byhand.read("message", JOB_CROSS, condition.format("message")),
    ]
    return (
        byhand.pod_lines(JOB_CROSS, wait=f"jsonpath='{condition.format('status')}'=False")
        + report.lines(reads)
        + byhand.write(OUTPUT, PHASE="$phase", NODE="${node:-none}", MESSAGE="$message")
    )


STEP = Step(
    number=7,
    slug="cross",
    requires=(requirements.namespace(), requirements.labels(), requirements.resource(1)),
    artifacts=(JOB_CROSS.manifest, OUTPUT),
    run=run,
    by_hand=by_hand,
    makes_pods=True,
)
