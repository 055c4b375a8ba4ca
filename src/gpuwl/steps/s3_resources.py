"""Step 3: each node advertises the resource of its use."""

from gpuwl.errors import JudgedNegativeError
from gpuwl.k8s import objects
from gpuwl.lab import report
from gpuwl.lab.context import Context
from gpuwl.lab.names import LabNode
from gpuwl.lab.step import Nodes, Step

OUTPUT = "out/03-resources.txt"


def run(ctx: Context) -> None:
    """Set each node's resource in its status, and write what the node then advertises."""
    for node in ctx.nodes:
        ctx.changes.advertise(node)
    ctx.artifacts.write(OUTPUT, report.rows(_read_back(ctx, node) for node in ctx.nodes))


def _read_back(ctx: Context, node: LabNode) -> tuple[str, str, str]:
    """Return node, resource and amount; JudgedNegativeError where the node shows another."""
    found = ctx.node(node)
    for field in objects.AMOUNTS:
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
    """Return the same with kubectl: other names go by null, then the node's own is set."""
    calls = [f"advertise {node.name} {node.resource} {node.amount}" for node in nodes]
    reads = [_read_by_hand(node, index) for index, node in enumerate(nodes)]
    variables = " ".join(f'"$line{index}"' for index in range(len(nodes)))
    write = f"printf '%s\\n' {variables} | LC_ALL=C sort > {OUTPUT}"
    return _ADVERTISE_BY_HAND + report.lines(["mkdir -p out", *calls, *reads, write])


_ADVERTISE_BY_HAND = r"""advertise() { # node, resource, amount
  names=$(kubectl get node "$1" -o go-template='
    {{range $name, $_ := .status.capacity}}{{$name}} {{end}}
    {{range $name, $_ := .status.allocatable}}{{$name}} {{end}}')
  for name in $names; do
    case $name in
      "$2") ;;
      nvidia.com/*)
        kubectl patch node "$1" --subresource=status --type=merge -p \
          "{\"status\": {\"capacity\": {\"$name\": null}, \"allocatable\": {\"$name\": null}}}" ;;
    esac
  done
  kubectl patch node "$1" --subresource=status --type=merge -p \
    "{\"status\": {\"capacity\": {\"$2\": \"$3\"}, \"allocatable\": {\"$2\": \"$3\"}}}"
}
"""


def _read_by_hand(node: LabNode, index: int) -> str:
    escaped = node.resource.replace(".", r"\.")
    template = f"{{.metadata.name}} {node.resource} {{.status.allocatable.{escaped}}}"
    return f"line{index}=$(kubectl get node {node.name} \\\n  -o jsonpath='{template}')"


STEP = Step(
    number=3,
    slug="resources",
    requires=(),
    artifacts=(OUTPUT,),
    run=run,
    by_hand=by_hand,
    changes_nodes=True,
)
