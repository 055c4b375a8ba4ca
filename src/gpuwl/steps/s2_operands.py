"""Step 2: which operands the label puts on a node."""

from gpuwl.lab import report
from gpuwl.lab.context import Context
from gpuwl.lab.names import CONTAINER, VM_PASSTHROUGH, VM_VGPU
from gpuwl.lab.step import Nodes, Step

OUTPUT = "out/operands.txt"

OPERANDS = {
    CONTAINER: ("datacenter-driver", "container-toolkit", "device-plugin", "dcgm-exporter"),
    VM_PASSTHROUGH: ("vfio-manager", "sandbox-device-plugin"),
    VM_VGPU: ("vgpu-manager", "vgpu-device-manager", "sandbox-device-plugin"),
}
"""Operands of each label value. Source: NVIDIA GPU Operator documentation, "GPU Operator with
KubeVirt" (https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-operator-kubevirt.html)."""


def render() -> str:
    """Return the table: a line for each label value, then the default and the flag."""
    table = {value: ",".join(operands) for value, operands in OPERANDS.items()}
    return report.pairs({**table, "NO_LABEL": CONTAINER, "ENABLE_FLAG": "sandboxWorkloads.enabled"})


def run(ctx: Context) -> None:
    """Write the operand table."""
    ctx.artifacts.write(OUTPUT, render())


def by_hand(nodes: Nodes) -> str:  # noqa: ARG001 - the table does not depend on the nodes
    """Return the same in a shell."""
    return f"mkdir -p out\ncat > {OUTPUT} <<'TABLE'\n{render()}TABLE\n"


STEP = Step(
    number=2,
    slug="operands",
    requires=(),
    artifacts=(OUTPUT,),
    run=run,
    by_hand=by_hand,
)
