"""Changes of nodes, as somebody proposes them, on a world: pure."""

import copy
import re
from collections.abc import Iterable
from dataclasses import dataclass

from gpuwl.checker import LABEL_KEY, PREFIX
from gpuwl.errors import InputError
from gpuwl.k8s import objects, pods, quantity
from gpuwl.k8s.objects import Object
from gpuwl.placement import world as worlds
from gpuwl.placement.world import World, label_of

_MOVE = re.compile(r"(?P<node>[^=]+)=(?P<value>[^:=]*):(?P<resources>[^:]+)")
MOVE_FORM = "NODE=VALUE:RESOURCE=AMOUNT[,RESOURCE=AMOUNT]"


@dataclass(frozen=True)
class Change:
    """One proposal: `move`, `cordon`, `uncordon`, `remove`, `add` or `drain`, and its text."""

    kind: str
    text: str

    def __str__(self) -> str:
        """Say it as the option of the command line."""
        return f"--{self.kind} {self.text}"


@dataclass(frozen=True)
class Changed:
    """A world after changes, and the Pods that lose their place and look for another."""

    world: World
    evicted: tuple[Object, ...]


def apply(world: World, changes: Iterable[Change]) -> Changed:
    """Return the world after the changes, in order. Raises InputError for one that cannot be."""
    evicted: list[Object] = []
    for change in changes:
        found = _APPLY[change.kind](world, change.text)
        evicted += found.evicted
        world = found.world
    return Changed(world, tuple(evicted))


def _node(world: World, name: str) -> Object:
    if name not in world.nodes:
        raise InputError(
            f"there is no node {name}", hint="the dump's node names are the ones to use"
        )
    return copy.deepcopy(world.nodes[name])


def _with(world: World, node: Object, leaving: Iterable[Object] = ()) -> Changed:
    gone = tuple(leaving)
    names = {label_of(pod) for pod in gone}
    nodes = {**world.nodes, node["metadata"]["name"]: node}
    stay = [pod for pod in world.bound if label_of(pod) not in names]
    return Changed(world.with_nodes(nodes, stay), gone)


def move(world: World, text: str) -> Changed:
    """Turn a node to another use: label and resources change sides, Pods of the old resource leave."""
    found = _MOVE.fullmatch(text)
    if not found:
        raise InputError(f"--move {text} is not {MOVE_FORM}")
    node = _node(world, found["node"])
    amounts = dict(_amount(part, text) for part in found["resources"].split(","))
    labels = node["metadata"].setdefault("labels", {})
    labels.pop(LABEL_KEY, None)
    if found["value"]:
        labels[LABEL_KEY] = found["value"]
    for field in objects.AMOUNTS:
        old = node["status"].get(field) or {}
        kept = {name: amount for name, amount in old.items() if not name.startswith(PREFIX)}
        node["status"][field] = {**kept, **amounts}
    return _with(world, node, _without_room(world, found["node"], amounts))


def _amount(part: str, text: str) -> tuple[str, str]:
    name, equals, amount = part.rpartition("=")
    found = quantity.amount(amount) if equals and amount else None
    if found is None or found < 0 or found.denominator != 1:
        raise InputError(f"{part!r} of --move {text} is not RESOURCE=AMOUNT", hint=MOVE_FORM)
    return name, str(found.numerator)


def _without_room(world: World, node: str, amounts: dict[str, str]) -> list[Object]:
    """Return the Pods of a node that ask for a GPU name of which there is not enough any more."""
    asking: dict[str, list[Object]] = {}
    asked: dict[str, int] = {}
    for pod in _on(world, node):
        for name, amount in pods.requests(pod["spec"]).items():
            if name.startswith(PREFIX) and amount:
                asking.setdefault(name, []).append(pod)
                asked[name] = asked.get(name, 0) + int(amount)
    short = [name for name, total in asked.items() if total > int(amounts.get(name, 0))]
    found = {label_of(pod): pod for name in short for pod in asking[name]}
    return list(found.values())


def _on(world: World, node: str) -> list[Object]:
    return [pod for pod in world.bound if objects.node_of(pod) == node]


def cordon(world: World, name: str) -> Changed:
    """Let no new Pod onto a node."""
    node = _node(world, name)
    node["spec"]["unschedulable"] = True
    return _with(world, node)


def uncordon(world: World, name: str) -> Changed:
    """Let Pods onto a node again."""
    node = _node(world, name)
    node["spec"].pop("unschedulable", None)
    taints = node["spec"].get("taints") or []
    node["spec"]["taints"] = [
        one for one in taints if one["key"] != "node.kubernetes.io/unschedulable"
    ]
    return _with(world, node)


def drain(world: World, name: str) -> Changed:
    """Cordon a node, and let its Pods look for another; those of DaemonSets and of files stay."""
    cordoned = cordon(world, name).world
    leaving = [pod for pod in _on(world, name) if _moves(pod)]
    return _with(cordoned, cordoned.nodes[name], leaving)


def remove(world: World, name: str) -> Changed:
    """Take a node away; its Pods look for another, but for those of DaemonSets and of files."""
    _node(world, name)
    nodes = {key: node for key, node in world.nodes.items() if key != name}
    stay = [pod for pod in world.bound if objects.node_of(pod) != name]
    leaving = tuple(pod for pod in _on(world, name) if _moves(pod))
    return Changed(world.with_nodes(nodes, stay), leaving)


def _moves(pod: Object) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    mirror = worlds.MIRROR in (pod["metadata"].get("annotations") or {})
    return not mirror and not any(owner.get("kind") == "DaemonSet" for owner in owners)


def add(world: World, text: str) -> Changed:
    """Add nodes like one that is there, under names of their own."""
    name, equals, count = text.rpartition("=")
    if not equals or not count.isdecimal() or not 0 < int(count) <= 1000:
        raise InputError(f"--add {text} is not NODE=COUNT, with a count of 1 to 1000")
    nodes = dict(world.nodes)
    number = 0
    for _ in range(int(count)):
        node = _node(world, name)
        number = next(
            n for n in range(number + 1, len(nodes) + 2) if f"{name}-like-{n}" not in nodes
        )
        named = f"{name}-like-{number}"
        fresh = worlds.node(node)
        fresh["metadata"]["name"] = named
        labels = fresh["metadata"].get("labels") or {}
        if "kubernetes.io/hostname" in labels:
            fresh["metadata"]["labels"] = {**labels, "kubernetes.io/hostname": named}
        nodes[named] = fresh
    return Changed(world.with_nodes(nodes, world.bound), ())


_APPLY = {
    "add": add,
    "uncordon": uncordon,
    "move": move,
    "cordon": cordon,
    "drain": drain,
    "remove": remove,
}
KINDS = tuple(_APPLY)
"""In the order in which changes of one command are made."""
