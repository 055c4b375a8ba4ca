"""The lab's Pods in the cluster: what they ask for, and what speaks for their placement."""

from typing import Any

from gpuwl.errors import ClusterError
from gpuwl.k8s import objects
from gpuwl.k8s.objects import Object
from gpuwl.lab import manifests, report
from gpuwl.lab.names import NAMESPACE, LabPod
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.findings import Difference, Evidence, Findings, amounts, shown


def node_of_placed(attempt: Attempt, lab_pod: LabPod) -> str | None:
    """Return the node of a Pod that the scheduler placed, None where it did not."""
    pod = attempt.pod(lab_pod)
    return objects.node_of(pod) if pod and objects.is_scheduled(pod) else None


def placed(attempt: Attempt, lab_pod: LabPod) -> Findings:
    """Check that a Pod asks for what it should and was placed; yield the evidence for that."""
    pod = attempt.pod(lab_pod)
    yield from asks(pod, lab_pod)
    if pod is None:
        return
    if objects.is_scheduled(pod):
        yield from _fits(attempt, lab_pod, objects.node_of(pod))
        yield _evidence(attempt, pod)
    else:
        what = f"Pod {lab_pod.name}, placement"
        yield Difference(what, "a node, and PodScheduled=True", state(pod))


def asks(pod: Object | None, lab_pod: LabPod) -> Findings:
    """Check that a Pod is there to stay and asks the scheduler for what the lab's Pod does."""
    what = f"Pod {lab_pod.name}"
    if pod is None:
        yield Difference(what, f"in namespace {NAMESPACE}", "no such Pod")
        return
    if objects.is_over(pod):
        found = "being deleted" if objects.is_terminating(pod) else objects.phase_of(pod)
        yield Difference(what, "neither deleted nor at its end", found)
    for part, (expected, there) in manifests.deviations(pod, lab_pod).items():
        yield Difference(f"{what}, {part}", _in_words(part, expected), _in_words(part, there))


def state(pod: Object) -> str:
    """Say how far the scheduler got with a Pod."""
    condition = objects.scheduled(pod)
    node = objects.node_of(pod)
    status = f"PodScheduled={condition['status']}" if condition else "no PodScheduled condition"
    where = f"spec.nodeName {node}" if node else "no node"
    message = report.one_line(condition.get("message") or "")
    return shown(f"{where}, {status}" + (f": {message}" if message else ""))


def _in_words(part: str, value: Any) -> str:  # noqa: ANN401 - any part of a Pod's spec
    if part != "containers":
        return shown(value or "none")
    words = [
        f"{name} ({image}) limits {amounts(limits)} requests {amounts(requests)}"
        for name, image, limits, requests in value
    ]
    return shown("; ".join(words) or "none")


def _fits(attempt: Attempt, lab_pod: LabPod, name: str) -> Findings:
    node = attempt.node(name)
    advertised = objects.advertised(node) if node else {}
    if lab_pod.resource not in advertised:
        found = f"it advertises {amounts(advertised)}" if node else "no such node"
        expected = f"a node that advertises {lab_pod.resource}"
        yield Difference(f"Pod {lab_pod.name}, its node {name}", expected, found)


def _evidence(attempt: Attempt, pod: Object) -> Evidence:
    name, node = pod["metadata"]["name"], objects.node_of(pod)
    try:
        events = attempt.scheduled_events
    except ClusterError as error:
        if error.status != 403:
            raise
        says = f"PodScheduled=True alone; events may not be read: {shown(error.message)}"
        return Evidence(name, node, "condition", says)
    for event in events:
        if (event.get("involvedObject") or {}).get("uid") == pod["metadata"]["uid"]:
            return Evidence(name, node, "event", _words(event))
    says = "PodScheduled=True alone; no Scheduled event is left (events expire after an hour)"
    return Evidence(name, node, "condition", says)


def _words(event: Object) -> str:
    source = (event.get("source") or {}).get("component")
    reporter = event.get("reportingComponent") or source or "an unnamed component"
    message = report.one_line(event.get("message") or "")
    return shown(f"Scheduled event of {reporter}: {message}")
