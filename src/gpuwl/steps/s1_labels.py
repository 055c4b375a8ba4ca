"""Step 1: the namespace, and one label for each node."""

from gpuwl.errors import JudgedNegativeError
from gpuwl.k8s import objects
from gpuwl.lab import byhand, report
from gpuwl.lab.context import Context
from gpuwl.lab.names import LABEL_KEY, NAMESPACE, LabNode
from gpuwl.lab.step import Nodes, Step

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
            f"kubectl get namespace {NAMESPACE} >/dev/null 2>&1 ||",
            f"  kubectl create namespace {NAMESPACE}",
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
    requires=(),
    artifacts=(OUTPUT,),
    run=run,
    by_hand=by_hand,
    changes_nodes=True,
)
