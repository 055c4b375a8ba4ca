"""Step 8: a dump of the nodes, the checker, and its verdict."""

import os

from gpuwl.errors import ClusterError, JudgedNegativeError, SetupError
from gpuwl.k8s import dump as k8s_dump
from gpuwl.lab import check_script, paths, verdict
from gpuwl.lab.context import Context
from gpuwl.lab.step import Nodes, Step

DUMP = "out/nodes.json"
SCRIPT = check_script.RELATIVE_PATH
OUTPUT = "out/consistency.txt"


def run(ctx: Context) -> None:
    """Write dump and checker, run the one on the other, and write the verdict.

    Raises JudgedNegativeError, after the verdict was written, where a node disagrees.
    """
    dump = ctx.artifacts.write(DUMP, _dump(ctx))
    script = check_script.install(ctx.artifacts)
    judged = verdict.of(script, dump, environment={**os.environ, "PATH": verdict.search_path()})
    if judged.code not in {0, 1}:
        raise SetupError(
            f"{SCRIPT} could not judge the dump (exit {judged.code})",
            details=judged.errors.splitlines(),
            hint=f"run it by hand: {script} {dump}",
        )
    ctx.artifacts.write(OUTPUT, judged.output)
    for line in judged.errors.splitlines():
        ctx.warn(line.removeprefix("check-config: warning: "))
    if judged.code == 1:
        raise JudgedNegativeError(
            "label and advertised resource disagree on a node of this cluster",
            details=judged.output.splitlines(),
            hint=f"the verdict is in {ctx.artifacts.path(OUTPUT)}",
        )


def _dump(ctx: Context) -> str:
    try:
        return k8s_dump.kubectl_json(ctx.cluster.raw(paths.NODES))
    except ValueError as error:
        message = f"the answer for nodes cannot be dumped: {error}"
        raise ClusterError(message, hint="a proxy on the way may have changed it") from None


def by_hand(nodes: Nodes) -> str:  # noqa: ARG001 - the dump holds all nodes of the cluster
    """Return the same with kubectl."""
    return (
        "mkdir -p out bin\n"
        f"kubectl get nodes -o json > {DUMP}\n"
        f"gpuwl check --print-script > {SCRIPT}\n"
        f"chmod 755 {SCRIPT}\n"
        f"{SCRIPT} {DUMP} > {OUTPUT}\n"
    )


STEP = Step(
    number=8,
    slug="consistency",
    requires=(),
    artifacts=(DUMP, SCRIPT, OUTPUT),
    run=run,
    by_hand=by_hand,
)
