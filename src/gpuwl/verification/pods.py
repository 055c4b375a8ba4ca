"""Placements and refusals (steps 4 to 7): manifest, Pod and file of each."""

from gpuwl.findings import Finding
from gpuwl.k8s import objects
from gpuwl.k8s.objects import Object
from gpuwl.lab.names import JOB_CONTAINER, JOB_CROSS, VMI_PASSTHROUGH, VMI_VGPU
from gpuwl.steps import s4_container, s5_passthrough, s6_vgpu, s7_cross
from gpuwl.texts import text
from gpuwl.verification import files, manifest, placement
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.outcome import Findings


def container(attempt: Attempt) -> Findings:
    """Check that the container job has its node, and that the file names it."""
    yield from manifest.matches(attempt, "container.manifest", JOB_CONTAINER)
    yield from placement.placed(attempt, "container", JOB_CONTAINER)
    expected = [f"NODE={placement.right_node(attempt, JOB_CONTAINER)}"]
    yield from files.compare(attempt.artifacts, "container.file", s4_container.OUTPUT, expected)


def passthrough(attempt: Attempt) -> Findings:
    """Check that the stand-in for a VM has its node; the file names it and the resource."""
    yield from manifest.matches(attempt, "passthrough.manifest", VMI_PASSTHROUGH)
    yield from placement.placed(attempt, "passthrough", VMI_PASSTHROUGH)
    node = placement.right_node(attempt, VMI_PASSTHROUGH)
    expected = [f"NODE={node}", f"RESOURCE={VMI_PASSTHROUGH.resource}"]
    yield from files.compare(attempt.artifacts, "passthrough.file", s5_passthrough.OUTPUT, expected)


def vgpu(attempt: Attempt) -> Findings:
    """Check that the stand-in for a VM with a vGPU has its node; the file names all three."""
    yield from manifest.matches(attempt, "vgpu.manifest", VMI_VGPU)
    yield from placement.placed(attempt, "vgpu", VMI_VGPU)
    rows = [f"{pod.name} {placement.right_node(attempt, pod)}" for pod in s6_vgpu.SO_FAR]
    yield from files.compare(attempt.artifacts, "vgpu.file", s6_vgpu.OUTPUT, sorted(rows))


def cross(attempt: Attempt) -> Findings:
    """Check that the Pod for the other side waits, and that the file has the scheduler's words."""
    yield from manifest.matches(attempt, "cross.manifest", JOB_CROSS)
    yield from placement.asks(attempt, "cross", JOB_CROSS)
    pod = attempt.pod(JOB_CROSS)
    if pod is not None and _is_refused(pod):
        if not placement.deviations(attempt, JOB_CROSS):
            lines = [" ".join(line.split()) for line in s7_cross.render(pod).splitlines()]
            yield from files.compare(attempt.artifacts, "cross.file", s7_cross.OUTPUT, lines)
            return
    elif pod is not None:
        found = f"{objects.phase_of(pod) or '?'}, {placement.state(pod)}"
        expected = text("verify.refused_by_scheduler")
        where, what = f"Pod {JOB_CROSS.name}", text("verify.not_refused")
        yield Finding("cross.refusal", where, what, expected=expected, found=found)
    yield from _told_alone(attempt)


def _told_alone(attempt: Attempt) -> Findings:
    """Compare the file by itself, where the cluster has no message that it should hold."""
    found = files.told(attempt.artifacts, "cross.file", s7_cross.OUTPUT)
    if isinstance(found, Finding):
        yield found
        return
    message = next(
        (line for line in found if line.startswith("MESSAGE=") and line[8:]), "MESSAGE=…"
    )
    expected = ["PHASE=Pending", "NODE=none", message]
    yield from files.compare(attempt.artifacts, "cross.file", s7_cross.OUTPUT, expected)


def _is_refused(pod: Object) -> bool:
    condition = objects.scheduled(pod)
    decided = condition.get("status") == "False" and bool(condition.get("message"))
    return decided and not objects.node_of(pod) and objects.phase_of(pod) == "Pending"
