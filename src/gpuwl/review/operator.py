"""Findings about what the GPU Operator was told: labels on nodes against ClusterPolicy.

What the operator makes of a label is read from its documentation and its source of release 26.7
(https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-kubevirt.html).
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from gpuwl.checker import CONTAINER, LABEL_KEY, LABEL_VALUES, PREFIX, VM_PASSTHROUGH, VM_VGPU, shown
from gpuwl.findings import Finding, Severity
from gpuwl.k8s import quantity
from gpuwl.k8s.names import distance
from gpuwl.k8s.objects import Object
from gpuwl.k8s.pods import mapping, text
from gpuwl.review.nodes import many
from gpuwl.review.surroundings import Surroundings
from gpuwl.review.workload import where

DEPLOY = "nvidia.com/gpu.deploy."
_VM = frozenset({"sandbox-device-plugin", "sandbox-validator", "cc-manager", "client"})
OPERANDS = {
    CONTAINER: frozenset(
        [
            "driver",
            "gpu-feature-discovery",
            "container-toolkit",
            "device-plugin",
            "dcgm",
            "dcgm-exporter",
            "node-status-exporter",
            "operator-validator",
            "client",
            "mig-manager",
        ]
    ),
    VM_PASSTHROUGH: _VM | {"kata-sandbox-device-plugin", "vfio-manager", "kata-manager"},
    VM_VGPU: _VM | {"vgpu-manager", "vgpu-device-manager"},
}
"""The operands that each label value brings, as in the labels nvidia.com/gpu.deploy.X."""
_EVERY = frozenset[str]().union(*OPERANDS.values())


@dataclass
class NodeLabels:
    """What the operator's findings need of nodes, taken one node at a time."""

    file: str | None = None
    by_value: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    advertising: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)
    count: int = 0

    def add(self, node: Object) -> None:
        """Take a node."""
        self.count += 1
        metadata = mapping(node.get("metadata"))
        labels, name = mapping(metadata.get("labels")), text(metadata.get("name"))
        if _cards(node):
            self.advertising.add(name)
        if LABEL_KEY not in labels:
            return
        value = str(labels[LABEL_KEY])
        self.by_value[value].append(name)
        if value not in LABEL_VALUES:
            self.findings.append(self._unknown_value(node, value))
        elif stale := _stale(labels, value):
            self.findings.append(self._stale(node, value, stale))

    def _unknown_value(self, node: Object, value: str) -> Finding:
        near = [each for each in LABEL_VALUES if distance(value.lower()[:40], each) <= 2]
        what = (
            f"the label value {shown(value) or '(empty)'} is none that the GPU Operator knows: the node"
            " gets what sandboxWorkloads.defaultWorkload says, container unless it is set"
        )
        fix = f"did you mean {near[0]}?" if near else f"known are {', '.join(LABEL_VALUES)}"
        return Finding("unknown-label", where(node), what, Severity.WARNING, self.file, fix=fix)

    def _stale(self, node: Object, value: str, stale: list[str]) -> Finding:
        what = (
            f"labelled {value}, and still marked for operands of another use:"
            f" {', '.join(map(shown, stale))}"
        )
        return Finding("stale-operands", where(node), what, Severity.WARNING, self.file)


def _cards(node: Object) -> bool:
    status = mapping(node.get("status"))
    amounts = mapping(status.get("allocatable"))
    return any(
        name.startswith(PREFIX) and not quantity.is_zero(amount) for name, amount in amounts.items()
    )


def _stale(labels: Object, value: str) -> list[str]:
    deployed = {
        key.removeprefix(DEPLOY)
        for key, state in labels.items()
        if key.startswith(DEPLOY) and state == "true"
    }
    return sorted((deployed & _EVERY) - OPERANDS[value])


def check(known: Surroundings, nodes: NodeLabels) -> Iterator[Finding]:
    """Return the findings about ClusterPolicy, GPUCluster and nodes that advertise twice."""
    for policy, document in known.policies:
        file = document.file if document else None
        for name, path, what in _policy(mapping(policy.get("spec")), known, nodes):
            line = document.line_of(path) if document else None
            yield Finding(name, where(policy), what, Severity.WARNING, file, line)
    twice = sorted(nodes.advertising & known.sliced_nodes)
    if twice:
        what = (
            f"{many(len(twice), 'node')} ({', '.join(map(shown, twice[:3]))}) both advertise cards and"
            " publish them in ResourceSlices: a card can be given away twice"
        )
        yield Finding("advertised-twice", f"Node//{shown(twice[0])}", what, Severity.WARNING)


def _policy(
    spec: Object, known: Surroundings, nodes: NodeLabels
) -> Iterator[tuple[str, tuple[str, ...], str]]:
    sandbox = mapping(spec.get("sandboxWorkloads"))
    enabled = sandbox.get("enabled") is True
    vms = [name for value in (VM_PASSTHROUGH, VM_VGPU) for name in nodes.by_value.get(value, ())]
    vgpu = nodes.by_value.get(VM_VGPU, [])
    if vms and not enabled:
        yield (
            "label-unread",
            ("spec", "sandboxWorkloads", "enabled"),
            (
                f"sandboxWorkloads.enabled is not true, so the operator does not read the label of"
                f" {many(len(vms), 'node')} ({', '.join(map(shown, vms[:3]))}): they are set up for containers"
            ),
        )
    if vgpu and enabled and mapping(spec.get("vgpuManager")).get("enabled") is not True:
        yield (
            "no-vgpu-manager",
            ("spec", "vgpuManager", "enabled"),
            (
                f"vgpuManager.enabled is not true, and {many(len(vgpu), 'node')} with vm-vgpu"
                f" ({', '.join(map(shown, vgpu[:3]))}) advertises no vGPU without a manager from elsewhere"
            ),
        )
    if vgpu and enabled and sandbox.get("mode") == "kata":
        yield (
            "vgpu-in-kata",
            ("spec", "sandboxWorkloads", "mode"),
            f"in mode kata a vm-vgpu node gets no device plugin: {', '.join(map(shown, vgpu[:3]))}",
        )
    if known.gpu_clusters:
        yield (
            "two-operators",
            ("kind",),
            "a GPUCluster stands beside this ClusterPolicy, and the two exclude each other",
        )
