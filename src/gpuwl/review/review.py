"""A review: manifests read, surroundings taken, and every finding of every workload in file order."""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from gpuwl.checker import shown
from gpuwl.findings import Finding, Severity
from gpuwl.k8s import documents
from gpuwl.k8s.documents import Document, Unrendered
from gpuwl.k8s.names import near
from gpuwl.k8s.objects import Object, phase_of
from gpuwl.k8s.pods import mapping
from gpuwl.review import (
    amounts,
    claims,
    kubevirt,
    operator,
    placement,
    quota,
    sides,
    workload,
)
from gpuwl.review.nodes import many, size
from gpuwl.review.operator import NodeLabels
from gpuwl.review.surroundings import Surroundings
from gpuwl.review.workload import Unit, Workload

_COMMENT = re.compile(r"#\s*gpuwl:\s*ignore\s+([\w, -]+)")
_WITH_CLASSES = ("ResourceClaim", "ResourceClaimTemplate")


@dataclass
class Review:
    """Takes objects, keeps what can have a finding, and then says what it found.

    `reviewed` counts workloads, or nodes where only those are judged. `ignored` findings were told
    not to be shown, by id or by a comment.
    """

    known: Surroundings = field(default_factory=Surroundings)
    labels: NodeLabels = field(default_factory=NodeLabels)
    reviewed: int = 0
    objects: int = 0
    unrendered: list[Unrendered] = field(default_factory=list)
    ignored: int = 0
    _kept: list[Workload] = field(default_factory=list)
    _others: list[Document] = field(default_factory=list)
    _pods: list[Object] = field(default_factory=list)

    def read(self, paths: Iterable[str], *, as_surroundings: bool = False) -> None:
        """Read manifests; with `as_surroundings` workloads in them are not reviewed.

        Raises InputError for what cannot be read.
        """
        for found in documents.read(paths):
            if isinstance(found, Unrendered):
                self.unrendered.append(found)
            else:
                self._take(found, as_surroundings=as_surroundings)

    def _take(self, document: Document, *, as_surroundings: bool) -> None:
        self.objects += 1
        item = document.object
        kind = item.get("kind")
        if kind == "Pod" and _is_running(item):
            self._pods.append(item)
        elif self.known.add(item, document):
            if kind == "Node":
                self.labels.add(item)
            if kind in ("ResourceQuota", *_WITH_CLASSES) and not as_surroundings:
                self._others.append(document)
        elif not as_surroundings and (found := workload.of(document)) is not None:
            self.reviewed += 1
            if found.asks:
                self._kept.append(found)

    def add_node(self, node: Object, place: str = "") -> None:
        """Take a node of a dump or a cluster."""
        del place
        self.known.nodes.add(node)
        self.labels.add(node)

    def add_pod(self, pod: Object, place: str = "") -> None:
        """Take a Pod of a dump or a cluster; the nodes come first."""
        del place
        self.known.nodes.add_pod(pod)

    def findings(self, ignore: Collection[str] = (), *, nodes_too: bool = False) -> list[Finding]:
        """Return the findings, in file order; those of nodes and operator at the end."""
        for pod in self._pods:
            self.known.nodes.add_pod(pod)
        self._pods.clear()
        found = [
            each for work in self._kept for each in self._seen(work.document, _of(work, self.known))
        ]
        for document in self._others:
            found += self._seen(document, _of_other(document, self.known))
        if nodes_too:
            found += self.labels.findings
        found += operator.check(self.known, self.labels) if nodes_too or self.known.policies else ()
        shown_ones = [each for each in found if each.id not in ignore]
        self.ignored += len(found) - len(shown_ones)
        return shown_ones

    def _seen(self, document: Document, found: Iterable[Finding]) -> list[Finding]:
        every = list(dict.fromkeys(found))
        kept = [each for each in every if not _is_ignored(document, each)]
        self.ignored += len(every) - len(kept)
        return kept

    def not_seen(self) -> list[str]:
        """Say what the judgement had to do without, where it matters."""
        missing = []
        units = [unit for work in self._kept for unit in work.units]
        if not self.known.nodes.seen and (units or any(work.loose for work in self._kept)):
            missing.append("no nodes were in view: names and places were not compared with any")
        foreign = sorted({_scheduler(unit) for unit in units if _has_other_scheduler(unit)})
        if foreign:
            names = ", ".join(shown(name) for name in foreign)
            missing.append(f"where Pods of the scheduler {names} go is its own affair: not judged")
        vms = any(unit.is_vm for unit in units)
        if vms and self.known.permitted is None:
            missing.append(
                "no KubeVirt or HyperConverged was in view: permittedHostDevices unknown"
            )
        return missing


def _is_running(pod: Object) -> bool:
    """Tell whether a Pod is one that a cluster runs, not one to be made."""
    return bool(mapping(pod.get("spec")).get("nodeName")) and bool(phase_of(pod))


def _scheduler(unit: Unit) -> str:
    return str(unit.spec.get("schedulerName"))


def _has_other_scheduler(unit: Unit) -> bool:
    return placement.is_scheduled_by_others(unit) and not unit.spec.get("nodeName")


def _of(work: Workload, known: Surroundings) -> Iterator[Finding]:
    for unit in work.units:
        if unit.is_vm:
            found = list(kubevirt.check(work, unit, known))
        else:
            found = list(amounts.check(work, unit, known))
        yield from found
        yield from claims.check(work, unit, known)
        yield from sides.check(work, unit, known)
        yield from quota.check(work, unit, known)
        if not any(each.id in _FINAL for each in found):
            yield from placement.check(work, unit, known)
    yield from _loose(work, known)


_FINAL = ("not-permitted", "permitted-not-advertised", "quoted-wrong", "invalid-name", "bare-name")
"""Findings after which no Pod is made, or none with the name that was meant."""


def _loose(work: Workload, known: Surroundings) -> Iterator[Finding]:
    for ask in work.loose:
        if not known.nodes.seen or ask.name in known.nodes.advertised:
            continue
        if known.extended_by_class(ask.name) or workload.is_placeholder(ask.name):
            continue
        found = near(ask.name, known.nodes.advertised)
        yield work.finding(
            "unknown-name",
            ask.path,
            f"no node of {size(known.nodes.all)} advertises {shown(ask.name)}; which Pod asks for it is"
            " up to this kind's controller",
            severity=Severity.WARNING,
            fix=f"did you mean {shown(found[0].name)} ({found[0].why})?" if found else None,
        )


def _of_other(document: Document, known: Surroundings) -> Iterator[Finding]:
    if document.object.get("kind") == "ResourceQuota":
        yield from quota.check_quota(document)
    else:
        yield from claims.check_classes(document, known)


def _is_ignored(document: Document, found: Finding) -> bool:
    """Tell whether a comment on the line, or in the comments right above it, names the finding."""
    line = found.line or 0
    texts = [document.text_of(line)]
    while (above := document.text_of(line - 1)).lstrip().startswith("#"):
        texts.append(above)
        line -= 1
    return any(
        found.id in re.split(r"[,\s]+", match.group(1))
        for text in texts
        if (match := _COMMENT.search(text))
    )


def verdict(found: Iterable[Finding]) -> bool:
    """Tell whether nothing weighs: notes do not."""
    return all(each.severity is Severity.NOTE for each in found)


def counted(found: Collection[Finding]) -> str:
    """Return how many findings there are of each weight: `2 errors, 1 warning`."""
    sizes = [(sum(each.severity is kind for each in found), kind) for kind in Severity]
    return ", ".join(many(number, str(kind)) for number, kind in sizes if number)
