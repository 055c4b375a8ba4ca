"""Step 1: the namespace, and one label for each node."""

from gpuwl.errors import JudgedNegativeError
from gpuwl.k8s import objects
from gpuwl.lab import byhand, report
from gpuwl.lab.context import Context
from gpuwl.lab.names import LABEL_KEY, NAMESPACE, LabNode
from gpuwl.lab.step import Nodes, Step, Why

OUTPUT = "out/01-nodes.txt"


def run(ctx: Context) -> None:
    """Make folders and namespace, label the nodes, and write which label each one carries."""
    ctx.artifacts.prepare()
    ctx.changes.namespace()
    for node in ctx.nodes:
        ctx.changes.label(node)
    ctx.artifacts.write(OUTPUT, report.rows(_read_back(ctx, node) for node in ctx.nodes))


def _read_back(ctx: Context, node: LabNode) -> tuple[str, str]:
    """Return node and label value; JudgedNegativeError where the node carries another."""
    found = objects.label_of(ctx.node(node))
    if found != node.value:
        carries = "no such label" if found is None else f"{LABEL_KEY}={found}"
        raise JudgedNegativeError(
            f"node {node.name} does not keep what was set: it carries {carries} instead of "
            f"{LABEL_KEY}={node.value}",
            hint="an admission policy or a controller of that cluster may set it back: use other "
            "nodes",
        )
    return node.name, found


def by_hand(nodes: Nodes) -> str:
    """Return the same with kubectl."""
    escaped = LABEL_KEY.replace(".", r"\.")
    names = " ".join(node.name for node in nodes)
    labels = [
        f"kubectl label node {node.name} --overwrite {LABEL_KEY}={node.value}" for node in nodes
    ]
    return report.lines(
        [
            "mkdir -p out bin k8s",
            f"kubectl create namespace {NAMESPACE} --dry-run=client -o yaml | kubectl apply -f -",
            *labels,
        ]
    ) + byhand.listing(
        f"kubectl get nodes {names}",
        f"{{.metadata.name}} {{.metadata.labels.{escaped}}}",
        OUTPUT,
    )


STEP = Step(
    number=1,
    slug="labels",
    title="Label each node with its GPU use",
    why=Why(
        matters=(
            "Not every GPU workload is a container. Licences and old systems keep some of them in "
            "virtual machines, and to hand a card to a VM even the driver on the node is another "
            "one: the data center driver for containers, vfio-pci for whole cards, the vGPU "
            "Manager for shares of a card. The operator takes that choice as a single node label "
            "and swaps the node's whole software stack for it."
        ),
        look=(
            f"The label {LABEL_KEY} and its value on each node: container, vm-passthrough or "
            f"vm-vgpu. Read it back with `kubectl get nodes -L {LABEL_KEY}`."
        ),
        pitfalls=(
            "Any string is a legal label value. A typo (vm-gpu, VM-vGPU) is accepted without a "
            "warning, and the node silently gets the operator's default."
        ),
    ),
    requires=(),
    artifacts=(OUTPUT,),
    run=run,
    by_hand=by_hand,
    changes_nodes=True,
)
