"""Findings about quotas: one that limits nothing, and workloads that a quota or a limit refuses."""

from collections.abc import Iterator

from gpuwl.checker import shown
from gpuwl.findings import Finding, Severity
from gpuwl.k8s import quantity
from gpuwl.k8s.documents import Document
from gpuwl.k8s.names import is_extended
from gpuwl.k8s.objects import Object
from gpuwl.k8s.pods import mapping, text
from gpuwl.review.surroundings import Quota, Surroundings
from gpuwl.review.workload import Unit, Workload, finding

REQUESTS = "requests."


def check_quota(document: Document) -> Iterator[Finding]:
    """Return the names of a ResourceQuota that count nothing."""
    hard = mapping(mapping(document.object.get("spec")).get("hard"))
    for name in hard:
        if not _is_device(name):
            continue
        yield finding(
            document,
            "quota-prefix",
            ("spec", "hard", name),
            f"{shown(name)} limits nothing: a quota counts extended resources by their requests alone",
            severity=Severity.WARNING,
            fix=f"write {REQUESTS}{shown(name.removeprefix('limits.'))}",
        )


def _is_device(name: str) -> bool:
    """Tell whether a quota's name means an extended resource, without the prefix that it needs."""
    plain = name.removeprefix("limits.")
    return (
        is_extended(plain)
        and not name.startswith((REQUESTS, "count/"))
        and "storageclass" not in name
    )


def check(work: Workload, unit: Unit, known: Surroundings) -> Iterator[Finding]:
    """Return the quotas and limits in view that refuse a unit's Pods."""
    if unit.is_vm:
        return
    for quota in known.quotas:
        if quota.named[0] == work.namespace and not quota.scoped:
            yield from _over(work, unit, quota)
    for named, limits in known.limits:
        if named[0] == work.namespace:
            yield from _limits(work, unit, named[1], limits)


def _over(work: Workload, unit: Unit, quota: Quota) -> Iterator[Finding]:
    for name, amount in unit.asked.items():
        hard = quantity.amount(quota.hard.get(REQUESTS + name, "none"))
        if hard is None:
            continue
        used = quantity.amount(quota.used.get(REQUESTS + name, "0")) or 0
        whole = amount * max(unit.template.count, 1)
        if amount <= hard and whole + used <= hard:
            continue
        which = f"the quota {shown(quota.named[1])} of {shown(work.namespace)} allows {hard}"
        asked = f"{unit.template.count} x {amount}" if unit.template.count > 1 else str(amount)
        yield work.finding(
            "over-quota",
            unit.paths[name],
            f"asks for {asked} {shown(name)}; {which}, of which {used} is used",
            severity=Severity.ERROR if amount > hard else Severity.WARNING,
            found=asked,
            expected=f"{hard - used} at most",
        )


def _limits(work: Workload, unit: Unit, named: str, limits: list[Object]) -> Iterator[Finding]:
    for limit in limits:
        if text(limit.get("type")) != "Pod":
            continue
        for name, amount in unit.asked.items():
            most = quantity.amount(mapping(limit.get("max")).get(name, "none"))
            if most is not None and amount > most:
                yield work.finding(
                    "over-quota",
                    unit.paths[name],
                    f"a Pod asks for {amount} {shown(name)}; the LimitRange {shown(named)} allows {most}",
                    found=str(amount),
                    expected=f"{most} at most",
                )
