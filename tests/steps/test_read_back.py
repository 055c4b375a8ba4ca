"""A cluster that keeps something else than it was asked to: no step says ok then."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.lab_fixtures import Lab

from gpuwl.k8s.client import Cluster
from gpuwl.lab import manifests, paths
from gpuwl.lab.names import JOB_CONTAINER, LABEL_KEY, NAMESPACE
from gpuwl.system import waiting

pytestmark = pytest.mark.cluster

POLICIES = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings"
NAME = "of-the-test"


@contextlib.contextmanager
def rewriting(
    cluster: Cluster, resource: str, condition: str, patch: str, rewritten: Callable[[], bool]
) -> Iterator[None]:
    """Let the API server itself rewrite what it is given; `rewritten` tells whether it does yet."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"]}
    spec = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [{**rule, "resources": [resource]}]},
        "matchConditions": [{"name": "one", "expression": condition}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    }
    bodies: dict[str, dict[str, Any]] = {POLICIES: spec, BINDINGS: {"policyName": NAME}}
    made = [
        (f"{collection}/{NAME}", cluster.create(collection, {"metadata": {"name": NAME}, **body}))
        for collection, body in ((c, {"spec": one}) for c, one in bodies.items())
    ]
    try:
        assert waiting.until(lambda: rewritten() or None, seconds=30)
        yield
    finally:
        for path, found in made:
            cluster.delete(path, uid=found["metadata"]["uid"])
        assert waiting.until(lambda: None if rewritten() else True, seconds=30)


def test_a_label_that_the_cluster_takes_off_again(lab: Lab, cluster: Cluster) -> None:
    node = paths.node("lab-node-0")

    def rewritten() -> bool:
        label = {"metadata": {"labels": {LABEL_KEY: "probe"}}}
        kept = cluster.merge_patch(f"{node}?dryRun=All", label)
        return LABEL_KEY not in kept["metadata"]["labels"]

    has_label = f"object.metadata.name == 'lab-node-0' && '{LABEL_KEY}' in object.metadata.labels"
    path = f'"/metadata/labels/" + jsonpatch.escapeKey("{LABEL_KEY}")'
    remove = f'[JSONPatch{{op: "remove", path: {path}}}]'
    with rewriting(cluster, "nodes", has_label, remove, rewritten):
        done = lab("run", "--all")
    assert done.code == 1
    assert f"it carries no such label instead of {LABEL_KEY}=container" in done.err
    assert "out/01-nodes.txt" not in lab.files()
    lab.run_all()
    assert lab.wrong_files() == {}


def test_a_pod_that_the_cluster_rewrites(lab: Lab, cluster: Cluster) -> None:
    lab("run", "--to", "3")
    is_in_the_lab = f"object.metadata.namespace == '{NAMESPACE}'"
    add = (
        '[JSONPatch{op: "add", path: "/spec/tolerations/-", '
        'value: Object.spec.tolerations{operator: "Exists", key: "of-the-test"}}]'
    )

    def rewritten() -> bool:
        probe = {**manifests.pod(JOB_CONTAINER), "metadata": {"name": "probe"}}
        made = cluster.create(f"{paths.PODS}?dryRun=All", probe)
        return any(one.get("key") == "of-the-test" for one in made["spec"]["tolerations"])

    with rewriting(cluster, "pods", is_in_the_lab, add, rewritten):
        done = lab("step", "4")
    assert done.code == 1
    assert "Pod job-container does not ask for what k8s/pod-container.yaml says" in done.err
    assert "tolerations: expected none, found" in done.err
    assert "out/04-container.txt" not in lab.files()
    lab.run_all()
    assert lab.wrong_files() == {}
