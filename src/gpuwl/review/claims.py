"""Findings about DRA: claims, templates and classes that a workload names and nobody made."""

from collections.abc import Iterator

from gpuwl.checker import shown
from gpuwl.findings import Finding, Severity
from gpuwl.k8s.documents import Document
from gpuwl.k8s.objects import Object
from gpuwl.k8s.pods import Path, mapping, text
from gpuwl.review.surroundings import Surroundings
from gpuwl.review.workload import Unit, Workload, finding


def check(work: Workload, unit: Unit, known: Surroundings) -> Iterator[Finding]:
    """Return the findings in a unit's claims."""
    declared = unit.spec.get("resourceClaims")
    claims = declared if isinstance(declared, list) else []
    for index, claim in enumerate(claims):
        path = (*unit.template.path, "resourceClaims", index)
        yield from _source(work, mapping(claim), path, known)
    names = {text(mapping(claim).get("name")) for claim in claims}
    if not unit.is_vm:
        yield from _used(work, unit, names)


def _used(work: Workload, unit: Unit, names: set[str]) -> Iterator[Finding]:
    for field in ("containers", "initContainers"):
        found = unit.spec.get(field)
        for number, container in enumerate(found if isinstance(found, list) else ()):
            used = mapping(mapping(container).get("resources")).get("claims")
            for index, claim in enumerate(used if isinstance(used, list) else ()):
                name = text(mapping(claim).get("name"))
                if name not in names:
                    yield work.finding(
                        "claim-missing",
                        (*unit.template.path, field, number, "resources", "claims", index),
                        f"the claim {shown(name)} is not among the Pod's resourceClaims: the API"
                        " server refuses the Pod",
                    )


def _source(work: Workload, claim: Object, path: Path, known: Surroundings) -> Iterator[Finding]:
    kinds = {
        "resourceClaimName": ("ResourceClaim", known.claims),
        "resourceClaimTemplateName": ("ResourceClaimTemplate", known.claim_templates),
    }
    for field, (kind, there) in kinds.items():
        name = text(claim.get(field))
        if name and (work.namespace, name) not in there:
            in_view = "in the cluster" if known.whole else "in view, and the cluster was not"
            yield work.finding(
                "claim-missing",
                (*path, field),
                f"no {kind} {shown(name)} of namespace {shown(work.namespace)} is {in_view}: the Pod"
                " waits for it",
                severity=Severity.WARNING,
            )


def check_classes(document: Document, known: Surroundings) -> Iterator[Finding]:
    """Return the classes that a ResourceClaim or ResourceClaimTemplate names and that are not in view."""
    for path, name in _classes(document.object):
        if known.classes_seen and name not in known.classes:
            listed = ", ".join(map(shown, sorted(known.classes))) or "none"
            yield finding(
                document,
                "class-missing",
                path,
                f"no DeviceClass {shown(name)} is in view (there are: {listed})",
                severity=Severity.ERROR if known.whole else Severity.WARNING,
            )


def _classes(item: Object) -> Iterator[tuple[Path, str]]:
    """Return the class of each request; v1beta1 writes it without `exactly`."""
    path: Path = ("spec", "spec") if item.get("kind") == "ResourceClaimTemplate" else ("spec",)
    spec = item
    for key in path:
        spec = mapping(spec.get(str(key)))
    found = mapping(spec.get("devices")).get("requests")
    for index, request in enumerate(found if isinstance(found, list) else ()):
        place: Path = (*path, "devices", "requests", index)
        for inner in ("exactly", ""):
            holder = mapping(mapping(request).get(inner)) if inner else mapping(request)
            name = text(holder.get("deviceClassName"))
            if name:
                yield (*place, *([inner] if inner else []), "deviceClassName"), name
