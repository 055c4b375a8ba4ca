"""Placing a Pod of the lab and waiting for the scheduler's word on it. Shared by steps 4 to 7."""

from collections.abc import Callable

from gpuwl.errors import JudgedNegativeError, SetupError, WaitTimeoutError
from gpuwl.k8s import objects
from gpuwl.k8s.objects import Object
from gpuwl.lab import manifests, paths, report
from gpuwl.lab.context import Context
from gpuwl.lab.names import NAMESPACE, LabPod
from gpuwl.system import waiting

SOON = 0.2
"""Seconds in which the scheduler of an idle cluster has long decided: it takes about ten milliseconds."""
POLL, LATER_POLL = 0.005, 0.05


def place(ctx: Context, lab_pod: LabPod) -> Object:
    """Apply a Pod's manifest and return the Pod once the scheduler has placed it.

    Raises what `wait_for` raises.
    """
    pod = apply(ctx, lab_pod, keep=lambda found: ctx.is_placed(found, lab_pod))
    return wait_for(ctx, lab_pod, pod, "True")


def place_in_vain(ctx: Context, lab_pod: LabPod) -> Object:
    """Apply a Pod that no node should take, and return it once the scheduler has decided.

    A Pod that is there already goes first: its message may tell of the cluster as it was. Raises
    what `wait_for` raises.
    """
    pod = apply(ctx, lab_pod, keep=lambda _: False)
    return wait_for(ctx, lab_pod, pod, "False")


def apply(ctx: Context, lab_pod: LabPod, *, keep: Callable[[Object], bool]) -> Object:
    """Write the manifest, make the cluster hold what it says, and return the Pod."""
    manifest = manifests.pod(lab_pod)
    ctx.artifacts.write(lab_pod.manifest, manifests.to_yaml(manifest))
    return ctx.changes.pod(lab_pod, keep=keep)


def wait_for(ctx: Context, lab_pod: LabPod, pod: Object, status: str) -> Object:
    """Return the Pod once the scheduler has decided: placed, or PodScheduled of that status.

    `pod` is the Pod as it was last seen. Raises WaitTimeoutError with the scheduler's own message
    where that does not come in time, SetupError where the Pod goes meanwhile, and JudgedNegativeError
    where it asks for something else than it was made with.
    """
    seen = [pod]

    def decided() -> Object | None:
        pod = ctx.pod(lab_pod.name)
        if pod is None:
            raise SetupError(
                f"Pod {lab_pod.name} was deleted while it waited for the scheduler",
                hint="find out who deletes Pods there, then run the step again",
            )
        seen[:] = [pod]
        return pod if _is_decided(pod, lab_pod, status) else None

    if _is_decided(pod, lab_pod, status):
        return pod
    soon = min(SOON, ctx.timeout)
    found = waiting.until(decided, seconds=soon, every=POLL)
    found = found or waiting.until(decided, seconds=ctx.timeout - soon, every=LATER_POLL)
    if found is None:
        raise _undecided(ctx, lab_pod, seen[0])
    return found


def _is_decided(pod: Object, lab_pod: LabPod, status: str) -> bool:
    _check_asks(pod, lab_pod)
    found = objects.scheduled(pod)
    refused = found.get("status") == status == "False" and found.get("message")
    return objects.is_scheduled(pod) or bool(refused)


def _check_asks(pod: Object, lab_pod: LabPod) -> None:
    """Refuse to tell of another Pod: one that the cluster rewrote, or that somebody else made."""
    deviations = manifests.deviations(pod, lab_pod)
    if deviations:
        raise JudgedNegativeError(
            f"Pod {lab_pod.name} does not ask for what {lab_pod.manifest} says",
            details=[
                f"{part}: expected {repr(expected) if expected else 'none'}, "
                f"found {repr(found) if found else 'none'}"
                for part, (expected, found) in deviations.items()
            ],
            hint="an admission policy or webhook of that cluster rewrites Pods, or somebody else "
            f"makes Pods in namespace {NAMESPACE}",
        )


def _undecided(ctx: Context, lab_pod: LabPod, pod: Object) -> WaitTimeoutError:
    message = report.one_line(objects.scheduled(pod).get("message") or "")
    words = f"says: {message}" if message else "has not said anything about it: does one run?"
    # the scheduler does not look at a waiting Pod again because a node went away
    gone = [node.name for node in ctx.nodes if ctx.cluster.find(paths.node(node.name)) is None]
    return WaitTimeoutError(
        f"Pod {lab_pod.name} has no node after {ctx.timeout:g} s",
        details=[
            f"kube-scheduler {words}",
            *(f"node {name} is gone from the cluster since the start" for name in gone),
        ],
        hint=f"look at the nodes (kubectl describe nodes; kubectl describe pod -n {NAMESPACE} {lab_pod.name}): "
        f"full, cordoned, tainted or not advertising {lab_pod.resource}?",
    )
