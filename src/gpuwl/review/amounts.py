"""Findings in how a Pod asks: what the API server refuses, and what means something else.

The rules are those of ValidatePodTemplateSpec in k8s.io/kubernetes/pkg/apis/core/validation.
"""

from collections.abc import Iterator

from gpuwl.checker import GPU, KIND_MODEL, kind_of, shown
from gpuwl.findings import Finding, Severity
from gpuwl.k8s import pods, quantity
from gpuwl.k8s.names import is_extended, is_qualified, is_standard, near
from gpuwl.k8s.objects import Object
from gpuwl.k8s.pods import Path, mapping
from gpuwl.review.surroundings import Surroundings
from gpuwl.review.workload import Ask, Unit, Workload, amounts_of, is_placeholder, pod_asks

API = "the API server refuses the Pod"


def check(work: Workload, unit: Unit, known: Surroundings) -> Iterator[Finding]:
    """Return the findings in a Pod template's amounts."""
    template = unit.template
    for field in ("containers", "initContainers"):
        found = template.spec.get(field)
        for index, container in enumerate(found if isinstance(found, list) else ()):
            path = (*template.path, field, index, "resources")
            yield from _container(work, mapping(container), path, known)
    yield from _pod_level(work, unit)
    yield from _zero(work, unit)
    yield from _annotations(work, unit, known)


def _container(
    work: Workload, container: Object, path: Path, known: Surroundings
) -> Iterator[Finding]:
    resources = mapping(container.get("resources"))
    limits = mapping(resources.get("limits"))
    for ask in amounts_of(resources, path):
        yield from _name(work, ask, known)
        if is_extended(ask.name) and not is_placeholder(ask.value):
            yield from _value(work, ask)
            if ask.path[-2] == "requests":
                yield from _request(work, ask, limits)
    for key in resources:
        if is_extended(key):
            yield work.finding(
                "wrong-place",
                (*path, key),
                f"{shown(key)} stands in resources itself: it has to stand in limits",
                severity=Severity.WARNING,
                fix=f"limits: {{{shown(key)}: {shown(str(resources[key]))}}}",
            )


def _name(work: Workload, ask: Ask, known: Surroundings) -> Iterator[Finding]:
    if is_standard(ask.name) or is_qualified(ask.name) or is_placeholder(ask.name):
        return
    name = "bare-name" if "/" not in ask.name else "invalid-name"
    why = "has no domain" if name == "bare-name" else "is no name that a resource can have"
    found = near(ask.name, {*known.nodes.advertised, GPU})
    fix = f"write {shown(found[0].name)}" if found else None
    yield work.finding(name, ask.path, f"the resource {shown(ask.name)} {why}: {API}", fix=fix)


def _value(work: Workload, ask: Ask) -> Iterator[Finding]:
    amount = quantity.amount(ask.value)
    said = f"{shown(ask.name)}: {shown(str(ask.value))}"
    if amount is None or amount < 0:
        why = "is no amount" if amount is None else "is less than nothing"
        yield work.finding(
            "quoted-wrong", ask.path, f"{said} {why}: {API}", fix="write a whole number"
        )
    elif amount % 1:
        yield work.finding(
            "fraction", ask.path, f"{said} is not whole, and devices are not shared by fractions: {API}"
        )  # fmt: skip


def _request(work: Workload, ask: Ask, limits: Object) -> Iterator[Finding]:
    name, asked = shown(ask.name), quantity.amount(ask.value)
    if ask.name not in limits:
        yield work.finding(
            "requests-only",
            ask.path,
            f"{name} has a request and no limit: {API}",
            fix=f"limits: {{{name}: {shown(str(ask.value))}}}",
        )
        return
    limit = limits[ask.name]
    if is_placeholder(limit) or asked is None or quantity.amount(limit) in (None, asked):
        return
    yield work.finding(
        "requests-differ",
        ask.path,
        f"{name} has the request {shown(str(ask.value))} and the limit {shown(str(limit))},"
        f" which have to be equal: {API}",
        fix="drop the request; the limit is one",
    )


def _pod_level(work: Workload, unit: Unit) -> Iterator[Finding]:
    path = (*unit.template.path, "resources")
    for ask in amounts_of(mapping(unit.spec.get("resources")), path):
        if is_extended(ask.name):
            yield work.finding(
                "wrong-place",
                ask.path,
                f"{shown(ask.name)} stands in the Pod's own resources, which hold cpu, memory and"
                f" huge pages only: {API}",
                fix="move it to the limits of a container",
            )


def _zero(work: Workload, unit: Unit) -> Iterator[Finding]:
    """Find names whose every amount is zero."""
    asks = [ask for ask in pod_asks(unit.template) if is_extended(ask.name)]
    for ask in asks:
        amounts = [quantity.amount(other.value) for other in asks if other.name == ask.name]
        if any(amounts) or None in amounts or ask.path != unit.paths[ask.name]:
            continue
        yield work.finding(
            "zero",
            ask.path,
            f"{shown(ask.name)} is asked for with 0: the Pod goes to any node and gets no device",
            severity=Severity.WARNING,
        )


def _annotations(work: Workload, unit: Unit, known: Surroundings) -> Iterator[Finding]:
    for key, value in mapping(unit.template.metadata.get("annotations")).items():
        if key in unit.paths or not _is_device(key, known) or not quantity.amount(value):
            continue
        yield work.finding(
            "in-annotations-only",
            _annotation_path(unit, key),
            f"{shown(key)} is an annotation, which the scheduler does not read, and no container"
            " asks for it",
            severity=Severity.WARNING,
            fix=f"limits: {{{shown(key)}: {shown(str(value))}}} in a container",
        )


def _annotation_path(unit: Unit, key: str) -> Path:
    return (*unit.template.path[:-1], "metadata", "annotations", key)


def _is_device(key: str, known: Surroundings) -> bool:
    is_of_nvidia = key.startswith("nvidia.com/") and kind_of(key) != KIND_MODEL
    return is_of_nvidia or key in known.nodes.advertised


def sums(unit: Unit, name: str) -> list[int]:
    """Return what each container that runs beside the others asks of a resource, as whole numbers."""
    spec = unit.spec
    together = [*pods.containers(spec), *pods.sidecars(spec)]
    found = [pods.rounded(pods.container_requests(each)).get(name, 0) for each in together]
    return [int(amount) for amount in found if amount]
