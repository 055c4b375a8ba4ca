"""Step 3: each node advertises the resource of its use."""

import json

from gpuwl import objects, report
from gpuwl.context import Context
from gpuwl.errors import JudgedNegativeError
from gpuwl.names import PREFIX, LabNode
from gpuwl.step import Nodes, Step, Why

OUTPUT = "out/03-resources.txt"
FIELDS = ("capacity", "allocatable")


def run(ctx: Context) -> None:
    """Set each node's resource in its status, and write what the node then advertises."""
    for node in ctx.nodes:
        ctx.changes.advertise(node)
    ctx.artifacts.write(OUTPUT, report.rows(_read_back(ctx, node) for node in ctx.nodes))


def _read_back(ctx: Context, node: LabNode) -> tuple[str, str, str]:
    """Return node, resource and amount; JudgedNegativeError where the node shows another."""
    found = ctx.node(node)
    for field in FIELDS:
        shown = objects.gpu_resources(found, field)
        if shown != {node.resource: node.amount}:
            raise JudgedNegativeError(
                f"node {node.name} does not keep what was set: status.{field} holds "
                f"{_in_words(shown)} instead of {node.resource}={node.amount}",
                hint="a kubelet or a device plugin on that node may set it back: use other nodes",
            )
    ((resource, amount),) = objects.gpu_resources(found).items()
    return node.name, resource, amount


def _in_words(amounts: dict[str, str]) -> str:
    return ", ".join(f"{name}={amount}" for name, amount in amounts.items()) or "nothing"


def by_hand(nodes: Nodes) -> str:
    """Return the same with kubectl: other names first go by null, then the node's own is set."""
    return report.lines(["{", *(line for node in nodes for line in _lines(node)), f"}} > {OUTPUT}"])


def _lines(node: LabNode) -> list[str]:
    patch = json.dumps({"status": {field: {node.resource: node.amount} for field in FIELDS}})
    escaped = node.resource.replace(".", r"\.")
    others = (
        f'for name in $(kubectl get node {node.name} -o json | grep -o \'"{PREFIX}[^"]*": "[0-9]\' '
        f"| cut -d'\"' -f2 | sort -u | grep -vxF {node.resource}); do"
    )
    removal = (
        f"  kubectl patch node {node.name} --subresource=status --type=merge -p "
        '"{\\"status\\":{\\"capacity\\":{\\"$name\\":null},\\"allocatable\\":{\\"$name\\":null}}}" >&2'
    )
    return [
        others,
        removal,
        "done",
        f"kubectl patch node {node.name} --subresource=status --type=merge -p '{patch}' >&2",
        (
            f"echo {node.name} {node.resource} "
            f"$(kubectl get node {node.name} -o jsonpath='{{.status.allocatable.{escaped}}}')"
        ),
    ]


STEP = Step(
    number=3,
    slug="resources",
    title="Each node advertises the resource of its use",
    why=Why(
        matters=(
            "In a real cluster a device plugin fills this in: the Kubernetes device plugin on "
            "container nodes, the sandbox device plugin on both kinds of VM nodes. The name comes "
            "from the card's PCI device model or from the vGPU profile, so each use has names of "
            "its own."
        ),
        look=(
            "status.capacity and status.allocatable of the three nodes. Only a vGPU profile ends "
            "in a hyphen, digits and a capital letter (NVIDIA_A10-12Q); a device model such as "
            "GA102GL_A10 does not."
        ),
        pitfalls=(
            "`kubectl patch node` without --subresource=status reports success and changes nothing "
            "in the status. Dots of the name are escaped when reading with jsonpath, but not when "
            "patching. A kubelet that restarts sets a patched amount back to zero."
        ),
    ),
    requires=(),
    artifacts=(OUTPUT,),
    run=run,
    by_hand=by_hand,
    changes_nodes=True,
)
