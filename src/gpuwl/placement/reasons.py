"""Why a Pod does not go to each node, and the one change of a node that would let it in.

The scheduler names the first filter that a node fails, and counts nodes. Asked filter by filter it
tells all of them for every node; the counts of its own message are the check.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from gpuwl.k8s import pods
from gpuwl.k8s.objects import Object
from gpuwl.placement import profiles, remedies
from gpuwl.placement.arena import Arena, Outcome
from gpuwl.placement.probes import Answer, Prober, reasons
from gpuwl.placement.remedies import Remedy
from gpuwl.placement.schedulerdump import Room

TRIED = 8
"""Groups of nodes whose change is tried; the others are shown without."""


@dataclass(frozen=True)
class Group:
    """Nodes that fail the same filters. `change` would let the Pod in, as the scheduler said."""

    reasons: tuple[str, ...]
    nodes: tuple[str, ...]
    change: str | None = None
    option: str | None = None
    tried: str | None = None
    hint: str | None = None


@dataclass(frozen=True)
class Why:
    """All nodes in groups, near misses first. Not exact: they do not add up to the message."""

    groups: tuple[Group, ...]
    exact: bool


@dataclass(frozen=True, eq=False)
class _Column:
    """One question: a filter, or one resource of NodeResourcesFit."""

    plugin: str
    resource: str
    profile: str
    pod: Object


def explain(arena: Arena, prober: Prober, outcome: Outcome, rooms: dict[str, Room]) -> Why:
    """Say for every node why it does not take the Pod. Raises what `Prober.ask` raises."""
    columns = list(_columns(outcome.pod))
    answers = prober.ask([(column.profile, column.pod) for column in columns])
    failing = {name: _failing(columns, answers, name) for name in arena.world.nodes}
    exact = _adds_up(failing, columns, answers, reasons(outcome.message))
    words = {
        column: " / ".join(sorted(answer.reasons))
        for column, answer in zip(columns, answers, strict=True)
    }
    groups = _grouped(arena, outcome, failing, words, rooms)
    return Why(tuple(_tried(arena, prober, outcome.pod, groups)), exact)


def _columns(pod: Object) -> Iterator[_Column]:
    spec = pod["spec"]
    asked = pods.requests(spec)
    for plugin in profiles.FILTERS:
        if plugin == profiles.FIT:
            yield _Column(plugin, "pods", profiles.only(plugin), _asking(pod, {}))
            for name, amount in asked.items():
                if amount:
                    yield _Column(plugin, name, profiles.only(plugin), _asking(pod, {name: amount}))
        elif _matters(plugin, spec):
            yield _Column(plugin, "", profiles.only(plugin), pod)


def _matters(plugin: str, spec: Object) -> bool:
    """Leave out filters that let every node pass for such a Pod."""
    if plugin.startswith("Volume") or plugin == "NodeVolumeLimits":
        return bool(spec.get("volumes"))
    if plugin == "NodePorts":
        every = [*spec["containers"], *(spec.get("initContainers") or ())]
        return any(port.get("hostPort") for each in every for port in each.get("ports") or ())
    return plugin != "NodeName"


def _asking(pod: Object, amounts: pods.Amounts) -> Object:
    """Return a Pod that asks for these amounts alone, and has no other wish."""
    written = {name: _written(name, amount) for name, amount in amounts.items()}
    own = all(name.startswith(("cpu", "memory", "ephemeral-storage")) for name in written)
    resources = {"requests": written} if own else {"limits": written, "requests": dict(written)}
    if any(name.startswith("hugepages-") for name in written):
        resources["requests"]["memory"] = "1"
    container = {"name": "c", "image": "i", "resources": resources}
    return {"metadata": pod["metadata"], "spec": {"containers": [container]}}


def _written(name: str, amount: int | Fraction) -> str:
    return f"{int(amount * 1000)}m" if name == "cpu" else str(amount)


def _failing(columns: list[_Column], answers: list[Answer], node: str) -> tuple[_Column, ...]:
    found = [c for c, answer in zip(columns, answers, strict=True) if node not in answer.passed]
    if any(column.resource == "pods" for column in found):  # then every amount fails with it
        found = [column for column in found if column.resource in {"", "pods"}]
    return tuple(found)


def _adds_up(
    failing: dict[str, tuple[_Column, ...]],
    columns: list[_Column],
    answers: list[Answer],
    message: Counter[str],
) -> bool:
    first: Counter[_Column] = Counter()
    for found in failing.values():
        first.update(column for column in found if column.plugin == found[0].plugin)
    counted = {
        column: sum(message[words] for words in answer.reasons)
        for column, answer in zip(columns, answers, strict=True)
        if first[column]
    }
    known = {words for answer in answers for words in answer.reasons}
    return all(counted[c] == first[c] for c in counted) and set(message) <= known


def _grouped(
    arena: Arena,
    outcome: Outcome,
    failing: dict[str, tuple[_Column, ...]],
    words: dict[_Column, str],
    rooms: dict[str, Room],
) -> list[tuple[Group, Remedy | None]]:
    found: dict[tuple[object, ...], list[str]] = {}
    remedy_of: dict[tuple[object, ...], Remedy | None] = {}
    for name, columns in failing.items():
        remedy = None
        if len(columns) == 1:
            column = columns[0]
            node, room = arena.world.nodes[name], rooms.get(name, Room({}, {}))
            remedy = remedies.find(column.plugin, column.resource, outcome.pod, node, room)
        key = (columns, remedy and remedy.text, remedy and remedy.hint)
        found.setdefault(key, []).append(name)
        remedy_of.setdefault(key, remedy)
    groups = [
        (Group(tuple(words[c] for c in key[0]), tuple(sorted(names))), remedy_of[key])  # type: ignore[attr-defined]
        for key, names in found.items()
    ]
    return sorted(groups, key=lambda pair: _nearness(*pair))


def _nearness(group: Group, remedy: Remedy | None) -> tuple[object, ...]:
    return (len(group.reasons), remedy is None, -len(group.nodes), group.nodes[:1])


def _tried(
    arena: Arena, prober: Prober, pod: Object, groups: Iterable[tuple[Group, Remedy | None]]
) -> Iterator[Group]:
    """Try each group's change on its first node, and keep those that the scheduler confirms."""
    left = TRIED
    for group, remedy in groups:
        if remedy is None or not left:
            yield group
            continue
        left -= 1
        name = group.nodes[0]
        node = remedy.applied(arena.world.nodes[name])
        with arena.with_node(node):
            answer = prober.ask([(profiles.ALL, pod)])[0]
        if name in answer.passed:
            yield replace(
                group, change=remedy.text, option=remedy.option(name), tried=name, hint=remedy.hint
            )
        else:
            yield replace(group, hint=remedy.hint)
