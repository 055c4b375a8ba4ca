"""Namespace, labels and resources in the cluster, and the files that tell of them (steps 1, 3)."""

from gpuwl.k8s import objects
from gpuwl.lab import report
from gpuwl.lab.artifacts import FOLDERS
from gpuwl.lab.names import LABEL_KEY, NAMESPACE, LabNode
from gpuwl.steps import s1_labels, s3_resources
from gpuwl.verification import files
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.findings import Difference, Findings, amounts, shown


def namespace(attempt: Attempt) -> Findings:
    """Check that the namespace is there to stay."""
    what, expected = f"namespace {NAMESPACE}", "in the cluster"
    if attempt.namespace is None:
        yield Difference(what, expected, "no such namespace")
    elif objects.is_terminating(attempt.namespace):
        mend = f"{attempt.gpuwl} run --from 1 --to 7"  # the Pods go with it
        yield Difference(what, expected, "being deleted (Terminating)", mend)


def folders(attempt: Attempt) -> Findings:
    """Check that the three folders are there."""
    for folder in FOLDERS:
        if not attempt.artifacts.path(folder).is_dir():
            yield Difference(f"{folder}/", "a folder", "no such folder")


def labels(attempt: Attempt) -> Findings:
    """Check that each node carries its label value, and that the file says so."""
    for lab_node in attempt.nodes:
        node = attempt.node(lab_node.name)
        if node is None:
            yield _gone(lab_node)
        elif (value := objects.label_of(node)) != lab_node.value:
            found = "no such label" if value is None else shown(value) or "an empty value"
            yield Difference(f"node {lab_node.name}, label {LABEL_KEY}", lab_node.value, found)
    expected = report.rows((node.name, node.value) for node in attempt.nodes)
    yield from files.compare(attempt.artifacts, s1_labels.OUTPUT, expected)


def resources(attempt: Attempt) -> Findings:
    """Check that each node has its resource and no other, and that the file says so."""
    for lab_node in attempt.nodes:
        yield from _resources_of(attempt, lab_node)
    expected = report.rows((node.name, node.resource, node.amount) for node in attempt.nodes)
    yield from files.compare(attempt.artifacts, s3_resources.OUTPUT, expected)


def _resources_of(attempt: Attempt, lab_node: LabNode) -> Findings:
    node = attempt.node(lab_node.name)
    if node is None:
        yield _gone(lab_node)
        return
    expected = {lab_node.resource: lab_node.amount}
    for field in objects.AMOUNTS:
        found = objects.gpu_resources(node, field)
        if found != expected:
            what = f"node {lab_node.name}, nvidia.com/ names of status.{field}"
            yield Difference(what, amounts(expected), amounts(found))


def _gone(lab_node: LabNode) -> Difference:
    return Difference(
        f"node {lab_node.name}",
        "in the cluster",
        "no such node",
        mend="kubectl get nodes  # then the node anew, or other nodes",
    )
