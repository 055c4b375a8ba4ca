"""Which nodes a Pod's own rules leave: nodeSelector, required node affinity and tolerations.

As the scheduler reads them (k8s.io/component-helpers/scheduling/corev1/nodeaffinity).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpuwl.k8s.objects import Object
from gpuwl.k8s.pods import Path, mapping, text
from gpuwl.review.nodes import UNSCHEDULABLE, NodeIndex, Nodes, Taint

REQUIRED = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
_OF_DAEMONS = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/memory-pressure",
    "node.kubernetes.io/pid-pressure",
    "node.kubernetes.io/network-unavailable",
    UNSCHEDULABLE[0],
)
"""What the DaemonSet controller lets its Pods tolerate
(https://kubernetes.io/docs/concepts/workloads/controllers/daemonset/#taints-and-tolerations)."""


@dataclass(frozen=True)
class Rule:
    """One rule of a Pod: how a person reads it, where it stands in the spec, the nodes it leaves."""

    text: str
    path: Path
    leaves: Nodes
    taint: str = ""


def rules(spec: Object, index: NodeIndex, *, daemon: bool = False) -> list[Rule]:
    """Return the rules of a Pod's spec that leave out at least one node."""
    found = [*_selector(spec, index), *_affinity(spec, index), *_taints(spec, index, daemon=daemon)]
    return [rule for rule in found if rule.leaves != index.all]


def left(found: list[Rule], index: NodeIndex) -> Nodes:
    """Return the nodes that all rules leave."""
    nodes = index.all
    for rule in found:
        nodes &= rule.leaves
    return nodes


def _selector(spec: Object, index: NodeIndex) -> Iterator[Rule]:
    for key, value in mapping(spec.get("nodeSelector")).items():
        yield Rule(
            f"nodeSelector {key}: {value}",
            ("nodeSelector", key),
            index.labelled(key, str(value)),
        )


def _affinity(spec: Object, index: NodeIndex) -> Iterator[Rule]:
    required: Any = spec
    for key in REQUIRED:
        required = mapping(required).get(key)
    terms = mapping(required).get("nodeSelectorTerms")
    if not isinstance(terms, list):
        return
    nodes = 0
    for term in terms:
        nodes |= _term(mapping(term), index)
    yield Rule("the required node affinity", REQUIRED, nodes)


def _term(term: Object, index: NodeIndex) -> Nodes:
    """Return the nodes that match all of a term; an empty one matches none."""
    expressions, fields = (_dicts(term.get(key)) for key in ("matchExpressions", "matchFields"))
    if not expressions and not fields:
        return 0
    nodes = index.all
    for expression in expressions:
        nodes &= _expression(expression, index)
    for field in fields:
        nodes &= _field(field, index)
    return nodes


def _dicts(value: object) -> list[Object]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _expression(expression: Object, index: NodeIndex) -> Nodes:
    key, operator = text(expression.get("key")), expression.get("operator")
    values = _values(expression)
    if operator in ("Exists", "DoesNotExist"):
        nodes = index.with_label(key)
        return nodes if operator == "Exists" else index.all & ~nodes
    if operator in ("Gt", "Lt"):
        values = [value for value in index.values(key) if _compares(value, operator, values)]
    nodes = 0
    for value in values:
        nodes |= index.labelled(key, value)
    return index.all & ~nodes if operator == "NotIn" else nodes


def _values(expression: Object) -> list[str]:
    found = expression.get("values")
    return [str(value) for value in found] if isinstance(found, list) else []


def _compares(value: str, operator: object, limits: list[str]) -> bool:
    try:
        have, limit = int(value), int(limits[0])
    except (ValueError, IndexError):
        return False
    return have > limit if operator == "Gt" else have < limit


def _field(field: Object, index: NodeIndex) -> Nodes:
    """Return the nodes of a matchFields; metadata.name is the only field there is."""
    numbers = [index.numbers[name] for name in _values(field) if name in index.numbers]
    nodes = sum(1 << number for number in set(numbers))
    return index.all & ~nodes if field.get("operator") == "NotIn" else nodes


def _taints(spec: Object, index: NodeIndex, *, daemon: bool) -> Iterator[Rule]:
    tolerations = _dicts(spec.get("tolerations"))
    if daemon:
        tolerations = [*tolerations, *({"key": key, "operator": "Exists"} for key in _OF_DAEMONS)]
    for taint, nodes in index.taints.items():
        if not any(_tolerates(toleration, taint) for toleration in tolerations):
            key, value, effect = taint
            named = f"{key}={value}:{effect}" if value else f"{key}:{effect}"
            path: Path = ("tolerations",) if "tolerations" in spec else ()
            yield Rule(f"no toleration of the taint {named}", path, index.all & ~nodes, key)


def _tolerates(toleration: Object, taint: Taint) -> bool:
    key, value, effect = taint
    if toleration.get("effect") not in (None, "", effect):
        return False
    if toleration.get("key") not in (None, "", key):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Equal":
        return bool(toleration.get("key")) and str(toleration.get("value") or "") == value
    return True  # Exists; the newer Lt and Gt are given the benefit of the doubt
