"""The launcher Pod that KubeVirt makes for a VM, as far as a scheduler reads it.

The constants are those of https://github.com/kubevirt/kubevirt/tree/main/pkg/virt-controller/services
(template.go, rendererresources.go) in August 2026; releases before 1.9.1 count 20 MiB less for QEMU.
"""

import math
from typing import Any

from gpuwl.k8s import pods, quantity
from gpuwl.k8s.objects import Object

MIB = 2**20
FIXED = (25 + 100 + 25 + 40 + 50) * MIB
"""Launcher, monitor, virtqemud, virtlogd and QEMU itself."""
PER_VCPU = 8 * MIB
IO_THREAD = 8 * MIB
GRAPHICS = 32 * MIB
VFIO = 1024 * MIB
"""For the whole of a VM with any passed-through device."""
PAGE_TABLES = 512
"""A page table takes one byte for so many of the guest's memory."""
OVERCOMMIT = 10
"""vCPUs for one requested core, cpuAllocationRatio's default."""
COPIED = (
    "tolerations",
    "topologySpreadConstraints",
    "priorityClassName",
    "schedulerName",
    "resourceClaims",
)


def launcher(spec: Object, metadata: Object, name: str, namespace: str) -> Object:
    """Return the launcher Pod of a VM instance with this spec.

    An instancetype has to be resolved before: what it would add is not in the spec.
    """
    domain = pods.mapping(spec.get("domain"))
    requests, limits = _resources(domain)
    container: Object = {"name": "compute", "image": "virt-launcher"}
    container |= {"resources": {"requests": {**requests, **limits}, "limits": limits}}
    claims = [
        {"name": one.claim, **({"request": one.request} if one.request else {})}
        for one in pods.vm_devices(spec)
        if one.claim
    ]
    if claims:
        container["resources"] = {**container["resources"], "claims": claims}
    copied = {key: spec[key] for key in COPIED if spec.get(key)}
    labels = {**pods.mapping(metadata.get("labels")), "kubevirt.io": "virt-launcher"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"virt-launcher-{name}",
            "namespace": namespace,
            "labels": labels,
        },
        "spec": {
            "containers": [container],
            "nodeSelector": _selector(spec, domain),
            "affinity": _affinity(spec, domain),
            **copied,
        },
    }


def vcpus(domain: Object) -> int:
    """Return how many vCPUs a VM has: sockets x cores x threads, else its requests or limits, else 1."""
    cpu = pods.mapping(domain.get("cpu"))
    topology = [cpu.get(key) for key in ("sockets", "cores", "threads")]
    if any(topology):
        return math.prod(int(one or 1) for one in topology)
    resources = pods.mapping(domain.get("resources"))
    for field in ("requests", "limits"):
        if amount := quantity.amount(pods.mapping(resources.get(field)).get("cpu")):
            return math.ceil(amount)
    return 1


def _resources(domain: Object) -> tuple[dict[str, Any], dict[str, Any]]:
    devices = pods.mapping(domain.get("devices"))
    named = [one.name for one in pods.vm_devices({"domain": domain}) if one.name and not one.claim]
    limits: dict[str, Any] = {"devices.kubevirt.io/kvm": "1"}
    interfaces = devices.get("interfaces") or []
    if interfaces or devices.get("autoattachPodInterface") is not False:
        limits["devices.kubevirt.io/tun"] = "1"
        if not interfaces or any(one.get("model", "virtio") == "virtio" for one in interfaces):
            limits["devices.kubevirt.io/vhost-net"] = "1"
    for name in named:
        limits[name] = str(int(limits.get(name, 0)) + 1)
    own = pods.mapping(domain.get("resources"))
    asked, bounded = pods.mapping(own.get("requests")), pods.mapping(own.get("limits"))
    dedicated = pods.mapping(domain.get("cpu")).get("dedicatedCpuPlacement")
    memory = str(_memory(domain) + _overhead(domain, devices))
    cpu = asked.get("cpu") or (
        vcpus(domain) if dedicated else f"{vcpus(domain) * 1000 // OVERCOMMIT}m"
    )
    requests = {"cpu": str(cpu), "memory": memory, "ephemeral-storage": "50M"}
    if dedicated:
        limits |= {"cpu": str(vcpus(domain)), "memory": memory}
        requests["cpu"] = str(vcpus(domain))
    elif bounded.get("cpu"):
        limits["cpu"] = str(bounded["cpu"])
    return requests, limits


def _memory(domain: Object) -> int:
    own = pods.mapping(domain.get("resources"))
    for holder in (pods.mapping(own.get("requests")), pods.mapping(own.get("limits"))):
        if holder.get("memory"):
            return quantity.whole(holder["memory"])
    guest = pods.mapping(domain.get("memory")).get("guest")
    return quantity.whole(guest) if guest else 0


def _overhead(domain: Object, devices: Object) -> int:
    """Return what a VM takes beside its guest's memory, in bytes."""
    total = FIXED + IO_THREAD + vcpus(domain) * PER_VCPU
    total += _memory(domain) // PAGE_TABLES
    if devices.get("autoattachGraphicsDevice") is not False:
        total += GRAPHICS
    if devices.get("gpus") or devices.get("hostDevices"):
        total += VFIO
    return total


def _selector(spec: Object, domain: Object) -> Object:
    own = {str(key): str(value) for key, value in pods.mapping(spec.get("nodeSelector")).items()}
    machine = str(pods.mapping(domain.get("machine")).get("type") or "q35")
    architecture = str(spec.get("architecture") or "amd64")
    found = {"kubernetes.io/arch": architecture, "kubevirt.io/schedulable": "true"}
    found[f"machine-type.node.kubevirt.io/{machine}"] = "true"
    model = pods.mapping(domain.get("cpu")).get("model")
    if model and model not in {"host-model", "host-passthrough"}:
        found[f"cpu-model.node.kubevirt.io/{model}"] = "true"
    return {**found, **own}


def _affinity(spec: Object, domain: Object) -> Object:
    """Return the VM's affinity; without a CPU model, nodes of an outdated one are passed over."""
    own = dict(pods.mapping(spec.get("affinity")))
    model = pods.mapping(domain.get("cpu")).get("model")
    if model and model != "host-model":
        return own
    absent = {"key": "node-labeller.kubevirt.io/obsolete-host-model", "operator": "DoesNotExist"}
    node = dict(pods.mapping(own.get("nodeAffinity")))
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    terms = pods.mapping(node.get(key)).get("nodeSelectorTerms") or [{}]
    added = [
        {**term, "matchExpressions": [*(term.get("matchExpressions") or ()), absent]}
        for term in terms
    ]
    return {**own, "nodeAffinity": {**node, key: {"nodeSelectorTerms": added}}}
