"""Placements and refusals (steps 4 to 7): manifest, Pod and file of each."""

from gpuwl.k8s import objects
from gpuwl.lab import report
from gpuwl.lab.names import JOB_CONTAINER, JOB_CROSS, VMI_PASSTHROUGH, VMI_VGPU, LabPod
from gpuwl.steps import s4_container, s5_passthrough, s6_vgpu, s7_cross
from gpuwl.verification import files, manifest, placement
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.findings import Difference, Findings


def container(attempt: Attempt) -> Findings:
    """Check that the container job has its node, and that the file names it."""
    yield from manifest.matches(attempt, JOB_CONTAINER)
    yield from placement.placed(attempt, JOB_CONTAINER)
    yield from _told(attempt, s4_container.OUTPUT, JOB_CONTAINER, {})


def passthrough(attempt: Attempt) -> Findings:
    """Check that the stand-in for a VM has its node; the file names it and the resource."""
    yield from manifest.matches(attempt, VMI_PASSTHROUGH)
    yield from placement.placed(attempt, VMI_PASSTHROUGH)
    more = {"RESOURCE": VMI_PASSTHROUGH.resource}
    yield from _told(attempt, s5_passthrough.OUTPUT, VMI_PASSTHROUGH, more)


def vgpu(attempt: Attempt) -> Findings:
    """Check that the stand-in for a VM with a vGPU has its node; the file names all three."""
    yield from manifest.matches(attempt, VMI_VGPU)
    yield from placement.placed(attempt, VMI_VGPU)
    nodes = {pod.name: placement.node_of_placed(attempt, pod) for pod in s6_vgpu.SO_FAR}
    known = [(pod, node) for pod, node in nodes.items() if node]
    if len(known) == len(nodes):
        yield from files.compare(attempt.artifacts, s6_vgpu.OUTPUT, report.rows(known))
        return
    yield from files.follows_rules(attempt.artifacts, s6_vgpu.OUTPUT)
    if nodes[VMI_VGPU.name]:
        without = ", ".join(pod for pod, node in nodes.items() if not node)
        yield Difference("the three placements", "a node for each Pod", f"none for {without}")


def cross(attempt: Attempt) -> Findings:
    """Check that the Pod for the other side waits, and that the file has the scheduler's words."""
    yield from manifest.matches(attempt, JOB_CROSS)
    pod = attempt.pod(JOB_CROSS)
    yield from placement.asks(pod, JOB_CROSS)
    refused = pod is not None and _is_refused(pod)
    if pod is not None and not refused:
        expected = "Pending without a node, PodScheduled=False with a message"
        found = f"{objects.phase_of(pod) or 'no phase'}, {placement.state(pod)}"
        yield Difference(f"Pod {JOB_CROSS.name}, placement", expected, found)
    if pod is not None and refused:
        yield from files.compare(attempt.artifacts, s7_cross.OUTPUT, s7_cross.render(pod))
    else:
        yield from files.follows_rules(attempt.artifacts, s7_cross.OUTPUT)


def _is_refused(pod: dict[str, object]) -> bool:
    condition = objects.scheduled(pod)
    decided = condition.get("status") == "False" and bool(condition.get("message"))
    return decided and not objects.node_of(pod) and objects.phase_of(pod) == "Pending"


def _told(attempt: Attempt, relative: str, lab_pod: LabPod, more: dict[str, str]) -> Findings:
    """Compare a file that begins with `NODE=`; without a placement there is nothing to compare."""
    node = placement.node_of_placed(attempt, lab_pod)
    if node:
        expected = report.pairs({"NODE": node, **more})
        yield from files.compare(attempt.artifacts, relative, expected)
    else:
        yield from files.follows_rules(attempt.artifacts, relative)
