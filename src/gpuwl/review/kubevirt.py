"""Findings about a VM's devices: what KubeVirt permits, and in which list a device stands.

KubeVirt makes no Pod for a VM whose device is not in permittedHostDevices; the VMI then gets the
event FailedCreate (kubevirt.io, pkg/virt-controller/watch).
"""

from collections.abc import Iterator

from gpuwl.checker import KIND_PROFILE, kind_of, shown
from gpuwl.findings import Finding, Severity
from gpuwl.k8s import pods
from gpuwl.k8s.names import near
from gpuwl.k8s.pods import Device, mapping, text
from gpuwl.review.surroundings import Surroundings
from gpuwl.review.workload import Unit, Workload, is_placeholder


def check(work: Workload, unit: Unit, known: Surroundings) -> Iterator[Finding]:
    """Return the findings in the devices of a VM."""
    for device in pods.vm_devices(unit.spec):
        if device.claim:
            yield from _claim(work, unit, device)
        elif device.name and not is_placeholder(device.name):
            yield from _permission(work, unit, known, device)
            yield from _list(work, unit, device)


def is_permitted(unit: Unit, known: Surroundings) -> bool:
    """Tell whether KubeVirt makes a Pod for the VM, as far as that is in view."""
    names = [device.name for device in pods.vm_devices(unit.spec) if device.name]
    return known.permitted is None or all(name in known.permitted for name in names)


def _claim(work: Workload, unit: Unit, device: Device) -> Iterator[Finding]:
    declared = unit.spec.get("resourceClaims")
    names = [mapping(each).get("name") for each in declared] if isinstance(declared, list) else []
    if device.claim not in names:
        yield work.finding(
            "claim-missing",
            (*unit.template.path, *device.path, "claimName"),
            f"the claim {shown(device.claim)} is not among the VM's resourceClaims",
            fix=f"resourceClaims: [{{name: {shown(device.claim)}, resourceClaimTemplateName: …}}]",
        )


def _permission(
    work: Workload, unit: Unit, known: Surroundings, device: Device
) -> Iterator[Finding]:
    path = (*unit.template.path, *device.path, "deviceName")
    name = shown(device.name)
    if known.permitted is None:
        return
    if device.name not in known.permitted:
        found = near(device.name, {*known.permitted, *known.nodes.advertised})
        options = [f"{shown(each.name)} ({_where(each.name, known)}; {each.why})" for each in found]
        listed = ", ".join(map(shown, sorted(known.permitted))) or "nothing"
        yield work.finding(
            "not-permitted",
            path,
            f"{name} is not in KubeVirt's permittedHostDevices: no Pod will be made for the VM",
            fix=f"did you mean {' or '.join(options)}?" if options else f"permitted are: {listed}",
        )
    elif known.nodes.seen and device.name not in known.nodes.advertised:
        permission = known.permitted[device.name]
        who = "an external device plugin" if permission.external else "KubeVirt's own device plugin"
        found = near(device.name, known.nodes.advertised)
        options = [shown(each.name) for each in found]
        yield work.finding(
            "permitted-not-advertised",
            path,
            f"{name} is permitted, and no node advertises it ({who} would): the launcher Pod waits",
            fix=f"did you mean {' or '.join(options)}, in both places?" if options else None,
        )


def _where(name: str, known: Surroundings) -> str:
    places = ["permitted"] if name in (known.permitted or {}) else ["not permitted"]
    return ", ".join([*places, *(["advertised"] if name in known.nodes.advertised else [])])


def _list(work: Workload, unit: Unit, device: Device) -> Iterator[Finding]:
    if device.list == "hostDevices" and kind_of(device.name) == KIND_PROFILE:
        yield work.finding(
            "wrong-list",
            (*unit.template.path, *device.path, "deviceName"),
            f"{shown(device.name)} is a vGPU profile and stands under hostDevices: the VM gets no"
            " display for it",
            severity=Severity.WARNING,
            fix="move it to gpus",
        )


def claims_of(unit: Unit) -> list[str]:
    """Return the names of the claims that a VM's or Pod's spec declares."""
    declared = unit.spec.get("resourceClaims")
    return (
        [text(mapping(each).get("name")) for each in declared] if isinstance(declared, list) else []
    )
