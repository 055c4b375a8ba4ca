"""Step 6: a stand-in for a VM with a share of a card, and the placement so far."""

from gpuwl.errors import SetupError
from gpuwl.k8s import objects
from gpuwl.k8s.objects import Object
from gpuwl.lab import byhand, placing, report, requirements
from gpuwl.lab.context import Context
from gpuwl.lab.names import JOB_CONTAINER, NAMESPACE, VMI_PASSTHROUGH, VMI_VGPU, LabPod
from gpuwl.lab.step import Nodes, Step

OUTPUT = "out/06-placement.txt"
SO_FAR = (JOB_CONTAINER, VMI_PASSTHROUGH, VMI_VGPU)


def run(ctx: Context) -> None:
    """Place the Pod and write where all three Pods are."""
    placed = {VMI_VGPU: placing.place(ctx, VMI_VGPU)}
    table = ((pod.name, _node(pod, placed.get(pod) or ctx.pod(pod.name))) for pod in SO_FAR)
    ctx.artifacts.write(OUTPUT, report.rows(table))


def _node(lab_pod: LabPod, pod: Object | None) -> str:
    if pod is None or not objects.is_scheduled(pod):
        raise SetupError(
            f"Pod {lab_pod.name} lost its place while the step ran",
            hint="gpuwl run --from 4 --to 6",
        )
    return objects.node_of(pod)


def by_hand(nodes: Nodes) -> str:  # noqa: ARG001 - the Pod names no node
    """Return the same with kubectl."""
    names = " ".join(pod.name for pod in SO_FAR)
    return byhand.pod_lines(VMI_VGPU) + byhand.listing(
        f"kubectl get pods -n {NAMESPACE} {names}", "{.metadata.name} {.spec.nodeName}", OUTPUT
    )


STEP = Step(
    number=6,
    slug="vgpu",
    requires=(
        requirements.namespace(),
        requirements.resource(2),
        requirements.placed(JOB_CONTAINER, 4),
        requirements.placed(VMI_PASSTHROUGH, 5),
    ),
    artifacts=(VMI_VGPU.manifest, OUTPUT),
    run=run,
    by_hand=by_hand,
    makes_pods=True,
)
