"""Findings about a name on the wrong side: containers that ask for what VMs get, and the reverse."""

from collections.abc import Iterator

from gpuwl.checker import (
    KIND_CONTAINER,
    KIND_PROFILE,
    KIND_SLICE,
    LABEL_KEY,
    PREFIX,
    kind_of,
    shown,
)
from gpuwl.findings import Finding, Severity
from gpuwl.k8s.names import is_published, models, short
from gpuwl.k8s.pods import mapping
from gpuwl.review.surroundings import Surroundings
from gpuwl.review.workload import Unit, Workload


def check(work: Workload, unit: Unit, known: Surroundings) -> Iterator[Finding]:
    """Return the names of a unit that are meant for the other kind of workload."""
    for name in unit.asked:
        if not name.startswith(PREFIX):
            continue
        if unit.is_vm:
            yield from _vm(work, unit, known, name)
        elif _is_for_vms(name) and not unit.holds_vm and not _knows(unit):
            yield work.finding(
                "wrong-side",
                unit.paths[name],
                f"{shown(name)} is a device for VMs (a {_word(name)}): a container gets no GPU driver"
                " with it",
                severity=Severity.WARNING,
                fix="containers ask for nvidia.com/gpu",
            )


def _vm(work: Workload, unit: Unit, known: Surroundings, name: str) -> Iterator[Finding]:
    if kind_of(name) not in (KIND_CONTAINER, KIND_SLICE) or name in (known.permitted or {}):
        return
    yield work.finding(
        "wrong-side",
        unit.paths[name],
        f"{shown(name)} is for containers; a VM asks for a device model or a vGPU profile",
        severity=Severity.WARNING,
        fix="write the name that a vm-passthrough or vm-vgpu node advertises",
    )


def _is_for_vms(name: str) -> bool:
    if kind_of(name) == KIND_PROFILE:
        return is_published(name)
    return short(name) in ("pgpu", *models().values())


def _word(name: str) -> str:
    return "vGPU profile" if kind_of(name) == KIND_PROFILE else "whole card"


def _knows(unit: Unit) -> bool:
    """Tell whether the Pod itself picks nodes for VMs: then the name is no slip."""
    chosen = mapping(unit.spec.get("nodeSelector")).get(LABEL_KEY)
    return isinstance(chosen, str) and chosen.startswith("vm-")
