"""Placing a Pod of the lab and waiting for the scheduler's word on it. Shared by steps 4 to 7."""

from collections.abc import Callable
from typing import Any

from gpuwl import manifests, objects, report, waiting
from gpuwl.context import Context
from gpuwl.errors import SetupError, WaitTimeoutError
from gpuwl.names import NAMESPACE, LabPod

Object = dict[str, Any]

POLL = 0.02


def place(ctx: Context, lab_pod: LabPod) -> Object:
    """Apply a Pod's manifest and return the Pod once the scheduler has placed it.

    Raises WaitTimeoutError with the scheduler's own message where no node takes it in time.
    """
    apply(ctx, lab_pod, keep=lambda pod: ctx.is_placed(pod, lab_pod))
    return wait_for(ctx, lab_pod, "True")


def place_in_vain(ctx: Context, lab_pod: LabPod) -> Object:
    """Apply a Pod that no node should take, and return it once the scheduler has decided.

    A Pod that is there already goes first: its message may tell of the cluster as it was.
    """
    apply(ctx, lab_pod, keep=lambda _: False)
    return wait_for(ctx, lab_pod, "False")


def apply(ctx: Context, lab_pod: LabPod, *, keep: Callable[[Object], bool]) -> None:
    """Write the manifest and make the cluster hold what it says."""
    manifest = manifests.pod(lab_pod)
    ctx.artifacts.write(lab_pod.manifest, manifests.to_yaml(manifest))
    ctx.changes.pod(lab_pod, keep=keep)


def wait_for(ctx: Context, lab_pod: LabPod, status: str) -> Object:
    """Return the Pod once the scheduler has decided: placed, or PodScheduled of that status."""
    seen: list[Object] = []

    def decided() -> Object | None:
        pod = ctx.pod(lab_pod.name)
        if pod is None:
            raise SetupError(
                f"Pod {lab_pod.name} was deleted while it waited for the scheduler",
                hint="find out who deletes Pods there, then run the step again",
            )
        seen[:] = [pod]
        found = objects.scheduled(pod)
        refused = found.get("status") == status == "False" and found.get("message")
        return pod if objects.is_scheduled(pod) or refused else None

    pod = waiting.until(decided, seconds=ctx.timeout, every=POLL)
    if pod is None:
        raise _undecided(lab_pod, seen[0], ctx.timeout)
    return pod


def _undecided(lab_pod: LabPod, pod: Object, timeout: float) -> WaitTimeoutError:
    message = report.one_line(objects.scheduled(pod).get("message") or "")
    return WaitTimeoutError(
        f"Pod {lab_pod.name} has no node after {timeout:g} s",
        details=[f"kube-scheduler says: {message}"]
        if message
        else ["kube-scheduler has not said anything about it: does one run?"],
        hint=f"look at the nodes (gpuwl steps; kubectl describe pod -n {NAMESPACE} {lab_pod.name}): "
        f"full, cordoned, tainted or not advertising {lab_pod.resource}?",
    )
