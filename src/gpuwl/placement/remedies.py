"""The one change of a node that might let a Pod in. A guess: the scheduler is asked whether it does."""

import copy
from collections.abc import Callable
from dataclasses import dataclass

from gpuwl.checker import CONTAINER, LABEL_KEY, PREFIX, VM_PASSTHROUGH, VM_VGPU, kind_of
from gpuwl.k8s import pods
from gpuwl.k8s.objects import Object
from gpuwl.placement.schedulerdump import Room

HARD = frozenset({"NoSchedule", "NoExecute"})


_VALUES = {"device model": VM_PASSTHROUGH, "vGPU profile": VM_VGPU}


def value_of(resource: str) -> str:
    """Return the label value with which the operator has a node advertise such a name."""
    return _VALUES.get(str(kind_of(resource)), CONTAINER)


@dataclass(frozen=True)
class Remedy:
    """What to change (`set the label …`), how to apply it to a node, and the option of `place` for it."""

    text: str
    apply: Callable[[Object], None]
    template: str | None = None
    hint: str | None = None

    def applied(self, node: Object) -> Object:
        """Return a changed copy of a node."""
        changed = copy.deepcopy(node)
        self.apply(changed)
        return changed

    def option(self, node: str) -> str | None:
        """Return the option that asks what if, None where there is none."""
        return self.template.format(node=node) if self.template else None


def find(plugin: str, resource: str, pod: Object, node: Object, room: Room) -> Remedy | None:
    """Return the change for a node that fails this filter alone, None where none is known."""
    if plugin == "NodeUnschedulable":
        return Remedy("uncordon", _uncordon, "--uncordon {node}")
    if plugin == "TaintToleration":
        return _without_taints(pod, node)
    if plugin == "NodeAffinity":
        return _with_labels(pod, node)
    if plugin == "NodeResourcesFit" and resource != "pods":
        return _with_more(resource, pod, room)
    return None


def _uncordon(node: Object) -> None:
    node["spec"].pop("unschedulable", None)
    taints = node["spec"].get("taints") or []
    node["spec"]["taints"] = [
        one for one in taints if one["key"] != "node.kubernetes.io/unschedulable"
    ]


def _without_taints(pod: Object, node: Object) -> Remedy | None:
    tolerations = pod["spec"].get("tolerations") or ()
    taints = [one for one in node["spec"].get("taints") or () if one.get("effect") in HARD]
    bad = [one for one in taints if not any(_tolerates(each, one) for each in tolerations)]
    if not bad:
        return None

    def apply(changed: Object) -> None:
        changed["spec"]["taints"] = [one for one in changed["spec"]["taints"] if one not in bad]

    names = ", ".join(_shown(one) for one in bad)
    return Remedy(f"tolerate or remove the taint {names}", apply)


def _shown(taint: Object) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def _tolerates(toleration: Object, taint: Object) -> bool:
    key, operator = toleration.get("key"), toleration.get("operator") or "Equal"
    if key and key != taint["key"]:
        return False
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if operator == "Exists":
        return True
    return bool(key) and (toleration.get("value") or "") == (taint.get("value") or "")


def _with_labels(pod: Object, node: Object) -> Remedy | None:
    labels = node["metadata"].get("labels") or {}
    selector = pod["spec"].get("nodeSelector") or {}
    wanted: dict[str, str | None] = {k: v for k, v in selector.items() if labels.get(k) != v}
    required = pods.mapping(pods.mapping(pod["spec"].get("affinity")).get("nodeAffinity"))
    terms = pods.mapping(required.get("requiredDuringSchedulingIgnoredDuringExecution"))
    choices = [_wanted_by(term, labels) for term in terms.get("nodeSelectorTerms") or ()]
    known = [choice for choice in choices if choice is not None]
    if choices and not known:
        return None
    if known:
        fewest = min(known, key=len)
        wanted |= fewest
    if not wanted:
        return None

    def apply(changed: Object) -> None:
        found = {**(changed["metadata"].get("labels") or {}), **wanted}
        changed["metadata"]["labels"] = {k: v for k, v in found.items() if v is not None}

    parts = [_change(key, value, labels.get(key)) for key, value in sorted(wanted.items())]
    turns = f"the operator goes by {LABEL_KEY}: with it the node advertises other resources"
    return Remedy(" and ".join(parts), apply, hint=turns if LABEL_KEY in wanted else None)


def _change(key: str, value: str | None, there: str | None) -> str:
    if value is None:
        return f"remove the label {key}={there}"
    return f"set the label {key}={value}" + (f" (now {there})" if there is not None else "")


def _wanted_by(term: Object, labels: dict[str, str]) -> dict[str, str | None] | None:
    """Return the labels that a term of a node affinity lacks; None where labels do not help."""
    if term.get("matchFields"):
        return None
    wanted: dict[str, str | None] = {}
    for one in term.get("matchExpressions") or ():
        key, values, operator = one["key"], one.get("values") or [""], one["operator"]
        there = labels.get(key)
        if operator == "In" and there not in values:
            wanted[key] = values[0]
        elif operator == "Exists" and there is None:
            wanted[key] = "true"
        elif (operator == "DoesNotExist" and there is not None) or (
            operator == "NotIn" and there in values
        ):
            wanted[key] = None
        elif operator in {"Gt", "Lt"}:
            wanted[key] = str(int(values[0]) + (1 if operator == "Gt" else -1))
    return wanted


def _with_more(resource: str, pod: Object, room: Room) -> Remedy:
    asked = pods.requests(pod["spec"])[resource]
    units = int(asked * 1000) if resource == "cpu" else int(asked)
    there, taken = room.allocatable.get(resource, 0), room.requested.get(resource, 0)
    amount = taken + units

    def apply(changed: Object) -> None:
        written = f"{amount}m" if resource == "cpu" else str(amount)
        for field in ("capacity", "allocatable"):
            changed["status"][field] = {**(changed["status"].get(field) or {}), resource: written}

    free = {
        name: most - room.requested.get(name, 0)
        for name, most in room.allocatable.items()
        if resource.startswith(PREFIX) and name.startswith(PREFIX) and name != resource
    }
    others = ", ".join(f"{count} {name}" for name, count in sorted(free.items()) if count > 0)
    if others:
        value = value_of(resource)
        template = f"--move {{node}}={value}:{resource}={amount}"

        def turn(changed: Object) -> None:
            apply(changed)
            labels = {**(changed["metadata"].get("labels") or {}), LABEL_KEY: value}
            changed["metadata"]["labels"] = labels

        text = f"turn it to {value} with {amount} {resource}"
        return Remedy(text, turn, template, hint=f"free under another name: {others}")
    more = units - (there - taken)
    shown = f"{more / 1000:g}" if resource == "cpu" else str(more)
    return Remedy(f"{shown} more {resource}", apply)
