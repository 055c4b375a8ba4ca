"""Namespace, labels and resources in the cluster, and the files that tell of them (steps 1, 3)."""

from gpuwl.findings import Finding, shown
from gpuwl.k8s import objects
from gpuwl.lab.artifacts import FOLDERS
from gpuwl.lab.names import LABEL_KEY, NAMESPACE, LabNode
from gpuwl.steps import s1_labels, s3_resources
from gpuwl.texts import text
from gpuwl.verification import files
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.outcome import Findings, amounts


def namespace(attempt: Attempt) -> Findings:
    """Check that the namespace is there to stay."""
    requirement, where = "labels.namespace", f"namespace {NAMESPACE}"
    if attempt.namespace is None:
        yield Finding(requirement, where, text("verify.not_in_cluster"))
    elif objects.is_terminating(attempt.namespace):
        what = text("verify.namespace_going")
        yield Finding(requirement, where, what, found="Terminating")


def folders(attempt: Attempt) -> Findings:
    """Check that the three folders are there."""
    for folder in FOLDERS:
        if not attempt.artifacts.path(folder).is_dir():
            yield Finding("labels.folders", f"{folder}/", text("verify.no_folder"))


def labels(attempt: Attempt) -> Findings:
    """Check that each node carries its label value, and that the file says so."""
    for lab_node in attempt.nodes:
        node = attempt.node(lab_node.name)
        if node is None:
            yield _gone("labels.nodes", lab_node)
        elif (value := objects.label_of(node)) != lab_node.value:
            yield Finding(
                "labels.nodes",
                f"node {lab_node.name}",
                text("verify.label_differs", key=LABEL_KEY),
                expected=lab_node.value,
                found=label_in_words(value),
            )
    expected = sorted(f"{node.name} {node.value}" for node in attempt.nodes)
    yield from files.compare(attempt.artifacts, "labels.file", s1_labels.OUTPUT, expected)


def label_in_words(value: object) -> str:
    """Return a label's value, or words for none and for an empty one."""
    return text("verify.no_label") if value is None else shown(value) or text("verify.empty_label")


def resources(attempt: Attempt) -> Findings:
    """Check that each node has its resource and no other, and that the file says so."""
    for lab_node in attempt.nodes:
        yield from _resources_of(attempt, lab_node)
    rows = sorted(f"{node.name} {node.resource} {node.amount}" for node in attempt.nodes)
    yield from files.compare(attempt.artifacts, "resources.file", s3_resources.OUTPUT, rows)


def _resources_of(attempt: Attempt, lab_node: LabNode) -> Findings:
    node = attempt.node(lab_node.name)
    if node is None:
        yield _gone("resources.nodes", lab_node)
        return
    expected = {lab_node.resource: lab_node.amount}
    for field in objects.AMOUNTS:
        found = objects.gpu_resources(node, field)
        if found != expected:
            yield Finding(
                "resources.nodes",
                f"node {lab_node.name}",
                text("verify.resources_differ", field=f"status.{field}"),
                expected=amounts(expected),
                found=amounts(found),
            )


def _gone(requirement: str, lab_node: LabNode) -> Finding:
    what, fix = text("verify.not_in_cluster"), "kubectl get nodes"
    return Finding(requirement, f"node {lab_node.name}", what, fix=fix)
