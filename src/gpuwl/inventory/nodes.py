"""What a Node says of its GPUs: amounts by name, and what is worth knowing about the node."""

from collections.abc import Callable
from typing import Any

from gpuwl import checker
from gpuwl.checker import CONTAINER, PREFIX, VM_PASSTHROUGH, VM_VGPU
from gpuwl.inventory.model import Amount, Mark, Node, Supply, Use
from gpuwl.k8s import quantity
from gpuwl.k8s.objects import Object

DEPLOY = f"{PREFIX}gpu.deploy."
_CONTAINERS = frozenset(
    [
        "driver",
        "gpu-feature-discovery",
        "container-toolkit",
        "device-plugin",
        "dcgm",
        "dcgm-exporter",
        "node-status-exporter",
        "operator-validator",
        "mig-manager",
    ]
)
_VMS = frozenset(("sandbox-device-plugin", "kata-sandbox-device-plugin", "sandbox-validator"))
OPERANDS = {
    CONTAINER: _CONTAINERS,
    VM_PASSTHROUGH: _VMS | {"vfio-manager", "kata-manager", "cc-manager"},
    VM_VGPU: _VMS | {"vgpu-manager", "vgpu-device-manager", "cc-manager"},
}
"""What the operator (26.7) deploys on a node of each use, in the words of its labels; `client` and
`operands` are on every node. Source: controllers/state_manager.go of NVIDIA/gpu-operator."""
_ALL = frozenset().union(*OPERANDS.values())

_USES = {
    checker.KIND_CONTAINER: Use.CONTAINER,
    checker.KIND_SLICE: Use.SLICE,
    checker.KIND_PROFILE: Use.VGPU,
    checker.KIND_MODEL: Use.PASSTHROUGH,
}
_PARTS_OF_CARDS = ("audio", "nvswitch")
"""PCI functions beside a card, and the fabric: pci.ids names them too."""


def counts(name: object) -> bool:
    """Tell whether a resource is one of NVIDIA's."""
    return isinstance(name, str) and name.startswith(PREFIX)


def use_of(name: str) -> Use:
    """Return what a resource is for, by its name alone."""
    if not checker.is_known(name) or any(one in name.lower() for one in _PARTS_OF_CARDS):
        return Use.UNKNOWN
    return _USES[checker.kind_of(name)]


def read(item: Object, *, knows_pods: bool, selects: Callable[[dict[str, str]], bool]) -> Node:
    """Return a Node's facts. Raises checker.NotNodesError where a field has the wrong type."""
    verdict = checker.judge(item)
    metadata = part(item, "metadata")
    labels = part(metadata, "labels")
    supplies = _supplies(part(item, "status"), 0 if knows_pods else None)
    node = Node(
        name=shown(metadata["name"]),
        label=shown(verdict.label) if verdict else None,
        supplies=dict(sorted(supplies.items())),
        finding=verdict.reason if verdict and verdict.reason else None,
        selected=selects({str(key): str(value) for key, value in labels.items()}),
    )
    node.marks = _marks(node, item, labels)
    return node


def part(holder: Any, key: str) -> dict[str, Any]:  # noqa: ANN401 - strangers write what they like
    """Return a field that should be an object, empty where it is none."""
    found = holder.get(key) if isinstance(holder, dict) else None
    return found if isinstance(found, dict) else {}


def shown(text: object) -> str:
    """Return a stranger's text so that it can be printed anywhere."""
    return checker.shown(str(text))


def _supplies(status: Object, requested: Amount) -> dict[str, Supply]:
    field = "allocatable" if status.get("allocatable") is not None else "capacity"
    return {
        shown(name): Supply(_amount(value), requested)
        for name, value in part(status, field).items()
        if counts(name)
    }


def _amount(value: object) -> Amount:
    """Return a whole number of slots; the scheduler rounds up, and less than nothing is nothing."""
    try:
        return max(0, quantity.whole(value))
    except ValueError:
        return None


def _marks(node: Node, item: Object, labels: Object) -> set[Mark]:
    found = set()
    if part(item, "spec").get("unschedulable") is True:
        found.add(Mark.CORDONED)
    if _is_unready(part(item, "status")):
        found.add(Mark.NOT_READY)
    if any(supply.advertised is None for supply in node.supplies.values()):
        found.add(Mark.UNREADABLE)
    advertises = any(supply.advertised != 0 for supply in node.supplies.values())
    if advertises and node.label is None:
        found.add(Mark.UNLABELLED)
    if not advertises and node.label is not None:
        found.add(Mark.NOTHING)
    if _stale(node.label, labels):
        found.add(Mark.STALE)
    return found


def _is_unready(status: Object) -> bool:
    """Tell whether the node says that it is not ready; one that says nothing may be."""
    conditions = status.get("conditions")
    return any(
        isinstance(one, dict) and one.get("type") == "Ready" and one.get("status") != "True"
        for one in (conditions if isinstance(conditions, list) else ())
    )


def _stale(label: str | None, labels: Object) -> bool:
    """Tell whether a label of the operator deploys what only another use needs."""
    own = OPERANDS.get(label or CONTAINER)
    deployed = {
        key.removeprefix(DEPLOY)
        for key, value in labels.items()
        if key.startswith(DEPLOY) and value == "true"
    }
    return own is not None and bool((deployed & _ALL) - own)
