"""One question to the scheduler: where Pods would go on a cluster, before and after changes of it."""

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpuwl.checker import PREFIX
from gpuwl.controlplane import passing
from gpuwl.controlplane.binaries.lookup import Binaries
from gpuwl.k8s.objects import Object
from gpuwl.placement import extender, profiles, reasons, whatif, workloads
from gpuwl.placement.arena import Arena, Outcome
from gpuwl.placement.probes import Prober
from gpuwl.placement.reasons import Why
from gpuwl.placement.schedulerdump import Room
from gpuwl.placement.whatif import Change
from gpuwl.placement.workloads import Workloads
from gpuwl.placement.world import World, label_of
from gpuwl.system.progress import Listener, Progress


@dataclass(frozen=True)
class Side:
    """What became of the Pods in one world, the room that is left, and why each waits.

    `free` maps a resource to what all nodes offer and what of it is taken, in units; `why` maps a Pod's
    label to its reasons; Pods of the same wishes share them. `evicted` are the labels of Pods that
    lost their place and look for another, which come first in `outcomes`.
    """

    outcomes: tuple[Outcome, ...]
    free: dict[str, tuple[int, int]]
    why: dict[str, Why]
    evicted: frozenset[str] = frozenset()

    @property
    def all_placed(self) -> bool:
        """Tell whether every Pod has a node."""
        return all(outcome.node for outcome in self.outcomes)


@dataclass(frozen=True)
class Question:
    """What is asked: `shapes` is how many kinds of waiting Pods are explained, `timeout` in seconds."""

    world: World
    workloads: Workloads
    timeout: float
    shapes: int = 5


class Session:
    """A control plane with the cluster in it, to ask one or more things."""

    def __init__(self, question: Question, arena: Arena, prober: Prober) -> None:
        self._question = question
        self._arena = arena
        self._prober = prober

    def now(self) -> Side:
        """Place the Pods on the cluster as it is."""
        return self._side(workloads.prepare(self._question.world, self._question.workloads), [])

    def after(self, changes: Sequence[Change], *, explain: bool = True) -> Side:
        """Place the Pods, and those that the changes evict, on the changed cluster."""
        changed = whatif.apply(self._question.world, changes)
        prepared = workloads.prepare(changed.world, self._question.workloads, changed.evicted)
        self._arena.become(prepared.world)
        return self._side(prepared, changed.evicted, explain=explain)

    def fill(self, most: int) -> int:
        """Return how many copies of the workloads fit, `most` at most; they stay."""
        done = 0
        step = 1
        while done < most:
            step = min(step, most - done)
            wanted = Workloads(self._question.workloads.workloads)
            named = wanted.times(most).workloads
            size = len(wanted.workloads)
            part = Workloads(named[done * size : (done + step) * size])
            prepared = workloads.prepare(self._question.world, part)
            outcomes = self._arena.place(prepared.pods, prepared.claims)
            each = len(prepared.pods) // step
            whole = _leading(outcomes, each)
            done += whole
            if whole < step:
                break
            step *= 2
        return done

    def _side(
        self, prepared: workloads.Prepared, evicted: Sequence[Object], *, explain: bool = True
    ) -> Side:
        outcomes = self._arena.place(prepared.pods, prepared.claims)
        rooms = self._arena.settle().nodes
        why = self._explain(outcomes, rooms) if explain else {}
        names = frozenset(label_of(pod) for pod in evicted)
        return Side(tuple(outcomes), _free(rooms), why, names)

    def _explain(self, outcomes: Sequence[Outcome], rooms: dict[str, Room]) -> dict[str, Why]:
        found: dict[str, Why] = {}
        by_shape: dict[str, Why] = {}
        for outcome in outcomes:
            if outcome.node or outcome.pod["spec"].get("schedulingGates"):
                continue
            shape = _shape(outcome)
            if shape not in by_shape and len(by_shape) < self._question.shapes:
                by_shape[shape] = reasons.explain(self._arena, self._prober, outcome, rooms)
            if shape in by_shape:
                found[label_of(outcome.pod)] = by_shape[shape]
        return found


@contextlib.contextmanager
def opened(question: Question, binaries: Binaries, listener: Listener) -> Iterator[Session]:
    """Start a control plane with the cluster of the question, for a block.

    Raises InputError for an object that no cluster can hold, SetupError where it does not start.
    """
    prepared = workloads.prepare(question.world, question.workloads)
    objects = list(prepared.world.by_key().values())
    heard = extender.Heard()
    listener.progress(Progress("starting a local control plane"))
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(extender.listening(heard))
        configuration = profiles.configuration(address)
        plane = stack.enter_context(passing.up(binaries, objects, configuration, listener))
        listener.progress(Progress("waiting for the scheduler"))
        arena = Arena(plane, prepared.world, timeout=question.timeout)
        stack.callback(arena.close)
        yield Session(question, arena, Prober(arena, heard))


def left_out(question: Question) -> Counter[str]:
    """Return what could not be brought along, by how many."""
    return workloads.prepare(question.world, question.workloads).world.left_out


def _leading(outcomes: Sequence[Outcome], size: int) -> int:
    """Return how many whole copies are placed."""
    copies = [outcomes[first : first + size] for first in range(0, len(outcomes), size)]
    return sum(all(one.node for one in copy) for copy in copies)


def _shape(outcome: Outcome) -> str:
    metadata = outcome.pod["metadata"]
    spec = {key: value for key, value in outcome.pod["spec"].items() if key != "nodeName"}
    containers = [{**each, "name": "", "image": ""} for each in spec["containers"]]
    return repr((metadata["namespace"], metadata.get("labels"), {**spec, "containers": containers}))


def _free(rooms: dict[str, Room]) -> dict[str, tuple[int, int]]:
    most: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    for room in rooms.values():
        most.update({k: v for k, v in room.allocatable.items() if k.startswith(PREFIX)})
        taken.update({k: v for k, v in room.requested.items() if k.startswith(PREFIX)})
    return {name: (most[name], taken[name]) for name in sorted(most | taken)}
