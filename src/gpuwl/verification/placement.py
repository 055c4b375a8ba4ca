"""The lab's Pods in the cluster: what they ask for, and what speaks for their placement."""

from gpuwl.errors import ClusterError
from gpuwl.findings import Finding, Severity, shown
from gpuwl.k8s import objects
from gpuwl.k8s.objects import Object
from gpuwl.lab import report
from gpuwl.lab.names import NAMESPACE, LabPod
from gpuwl.texts import text
from gpuwl.verification import asking
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.outcome import Evidence, Findings, amounts


def right_node(attempt: Attempt, lab_pod: LabPod) -> str:
    """Return the node of a Pod that the scheduler placed well, or else the lab's node for it."""
    pod = attempt.pod(lab_pod)
    if pod is not None and objects.is_scheduled(pod) and not _misplaced(attempt, lab_pod, pod):
        return objects.node_of(pod)
    return next(node.name for node in attempt.nodes if node.resource == lab_pod.resource)


def placed(attempt: Attempt, slug: str, lab_pod: LabPod) -> Findings:
    """Check that a Pod asks for what it should and was placed; yield the evidence for that."""
    pod = attempt.pod(lab_pod)
    yield from asks(attempt, slug, lab_pod)
    if pod is None:
        return
    where, requirement = f"Pod {lab_pod.name}", f"{slug}.placement"
    if not objects.is_scheduled(pod):
        what, expected = text("verify.not_placed"), text("verify.placed_by_scheduler")
        yield Finding(requirement, where, what, expected=expected, found=state(pod))
    elif found := _misplaced(attempt, lab_pod, pod):
        what = text("verify.node_lacks", node=objects.node_of(pod), name=lab_pod.resource)
        yield Finding(requirement, where, what, found=found)
    else:
        yield from _evidence(attempt, requirement, pod)


def asks(attempt: Attempt, slug: str, lab_pod: LabPod) -> Findings:
    """Check that a Pod is there to stay and asks the scheduler for what the lab's Pod does."""
    pod, where, requirement = attempt.pod(lab_pod), f"Pod {lab_pod.name}", f"{slug}.pod"
    if pod is None:
        yield Finding(requirement, where, text("verify.no_pod", namespace=NAMESPACE))
        return
    if objects.is_over(pod):
        found = "deletionTimestamp" if objects.is_terminating(pod) else objects.phase_of(pod)
        yield Finding(requirement, where, text("verify.pod_over"), found=found)
    for one in deviations(attempt, lab_pod):
        what = text("verify.field_differs", field=shown(one.path))
        expected, found = asking.sides(one)
        yield Finding(requirement, where, what, expected=expected, found=found)


def deviations(attempt: Attempt, lab_pod: LabPod) -> list[asking.Deviation]:
    """Return what a Pod of the cluster asks otherwise; the node is the scheduler's to set."""
    pod = attempt.pod(lab_pod)
    if pod is None:
        return []
    asked = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
    whole = {**pod, "apiVersion": "v1", "kind": "Pod", "spec": asked}  # a list's items lack the two
    return list(asking.deviations(whole, lab_pod, attempt.taints))


def state(pod: Object) -> str:
    """Say how far the scheduler got with a Pod, in the cluster's own words."""
    condition = objects.scheduled(pod)
    status = f"PodScheduled={condition['status']}" if condition else text("verify.no_condition")
    node = f"spec.nodeName={objects.node_of(pod) or text('verify.nothing')}"
    message = report.one_line(condition.get("message") or "")
    return shown(f"{node}, {status}" + (f": {message}" if message else ""))


def _misplaced(attempt: Attempt, lab_pod: LabPod, pod: Object) -> str:
    """Say what the Pod's node advertises instead of its resource; empty where it is right."""
    node = attempt.node(objects.node_of(pod))
    advertised = objects.advertised(node) if node else {}
    return "" if lab_pod.resource in advertised else amounts(advertised)


def _evidence(attempt: Attempt, requirement: str, pod: Object) -> Findings:
    """Yield the scheduler's own event, or else what is left; a Pod pinned by hand proves nothing."""
    name, node = pod["metadata"]["name"], objects.node_of(pod)
    event, says = _event(attempt, pod)
    if event:
        yield Evidence(name, node, "event", says)
    elif _is_pinned(pod):
        what = text("verify.pinned", node=node)
        yield Finding(requirement, f"Pod {name}", what, Severity.WARNING, found=says)
    else:
        yield Evidence(name, node, "condition", says)


def _event(attempt: Attempt, pod: Object) -> tuple[bool, str]:
    try:
        events = attempt.scheduled_events
    except ClusterError as error:
        if error.status != 403:
            raise
        return False, text("verify.events_forbidden", words=shown(error.message))
    for event in events:
        if (event.get("involvedObject") or {}).get("uid") == pod["metadata"]["uid"]:
            return True, _words(event)
    return False, text("verify.events_gone")


def _is_pinned(pod: Object) -> bool:
    """Tell whether somebody wrote spec.nodeName: a binding, as the scheduler makes it, owns no field."""
    managers = pod["metadata"].get("managedFields") or ()
    fields = [(one.get("fieldsV1") or {}).get("f:spec") or {} for one in managers]
    return any("f:nodeName" in one for one in fields)


def _words(event: Object) -> str:
    source = (event.get("source") or {}).get("component")
    reporter = event.get("reportingComponent") or source or "?"
    message = report.one_line(event.get("message") or "")
    return shown(text("verify.event", reporter=reporter, message=message))
