"""Asking the scheduler which nodes pass a filter for a Pod, without placing anything."""

import contextlib
import copy
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from gpuwl.errors import WaitTimeoutError
from gpuwl.k8s import objects
from gpuwl.k8s.objects import Object
from gpuwl.placement.arena import POLL, Arena
from gpuwl.placement.extender import RESOURCE, Heard
from gpuwl.system import waiting

_REASON = re.compile(r"(\d+) (.+?)(?=, \d+ |$)")


@dataclass(frozen=True)
class Answer:
    """The nodes that passed, and the scheduler's reasons for the others, by how many nodes."""

    passed: frozenset[str]
    reasons: Counter[str]


class Prober:
    """Asks by Pods that want what no node is let pass for (`extender`), and which go at once."""

    def __init__(self, arena: Arena, heard: Heard) -> None:
        self._arena = arena
        self._heard = heard

    def ask(self, pods: Sequence[tuple[str, Object]]) -> list[Answer]:
        """Ask for each profile and Pod. Raises WaitTimeoutError where the scheduler does not answer."""
        with contextlib.ExitStack() as stack:
            probes = [_probe(profile, pod) for profile, pod in pods]
            paths = [stack.enter_context(self._arena.passing_pod(probe)) for probe in probes]
            return [self._answer(path) for path in paths]

    def _answer(self, path: str) -> Answer:
        def decided() -> str | None:
            pod = self._arena.cluster.get(path)
            return str(objects.scheduled(pod).get("message") or "") or None

        message = waiting.until(decided, seconds=self._arena.timeout, every=POLL)
        if message is None:
            raise WaitTimeoutError("the scheduler has not answered in time")
        passed = self._heard.of(path.rpartition("/")[2]) or frozenset()
        return Answer(passed, reasons(message))


def _probe(profile: str, pod: Object) -> Object:
    spec = copy.deepcopy(pod["spec"])
    spec["schedulerName"] = profile
    for key in ("nodeName", "schedulingGates", "priorityClassName", "priority", "preemptionPolicy"):
        spec.pop(key, None)
    resources = spec["containers"][0].setdefault("resources", {})
    resources["limits"] = {**(resources.get("limits") or {}), RESOURCE: "1"}
    if resources.get("requests"):
        resources["requests"] = {**resources["requests"], RESOURCE: "1"}
    metadata = pod["metadata"]
    kept = {"namespace": metadata["namespace"], "labels": metadata.get("labels") or {}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "gpuwl-probe", **kept},
        "spec": spec,
    }


def reasons(message: str) -> Counter[str]:
    """Return the reasons of a message such as `0/3 nodes are available: 1 Insufficient cpu, …`."""
    body = message.partition(" nodes are available: ")[2].partition(". preemption: ")[0]
    found: Counter[str] = Counter()
    for count, words in _REASON.findall(body.removesuffix(".")):
        found[words] += int(count)
    return found
