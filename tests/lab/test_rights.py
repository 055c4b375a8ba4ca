"""The lab under the rights of docs/clusterrole.yaml, with an identity that has no others."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.conftest import Run, program

from gpuwl.controlplane.plane import Plane
from gpuwl.errors import ClusterError
from gpuwl.k8s.client import Cluster
from gpuwl.lab.local_plane import lab_nodes
from gpuwl.system import waiting

pytestmark = pytest.mark.cluster

FILE = Path(__file__).parents[2] / "docs/clusterrole.yaml"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
SUBJECT = {"kind": "ServiceAccount", "name": "lab", "namespace": "default"}


def role_path(role: dict[str, Any], plural: str = "") -> str:
    namespace = role["metadata"].get("namespace")
    kind = plural or role["kind"].lower() + "s"
    middle = f"namespaces/{namespace}/" if namespace else ""
    return f"{RBAC}/{middle}{kind}"


def roles() -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all(FILE.read_text()) if one["kind"] != "Namespace"]


def bind(cluster: Cluster, role: dict[str, Any]) -> None:
    """Do what the file's own comment says, for a service account."""
    metadata = {key: value for key, value in role["metadata"].items() if key != "labels"}
    body = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": f"{role['kind']}Binding",
        "metadata": metadata,
        "subjects": [SUBJECT],
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": role["kind"],
            "name": role["metadata"]["name"],
        },
    }
    cluster.create(role_path(role, f"{role['kind'].lower()}bindings"), body)


def may(client: Cluster, rule: dict[str, Any], verb: str, namespace: str) -> bool:
    resource, _, subresource = rule["resources"][0].partition("/")
    attributes = {
        "verb": verb,
        "group": rule["apiGroups"][0],
        "resource": resource,
        "subresource": subresource,
        "namespace": namespace,
        "name": rule.get("resourceNames", [""])[0],
    }
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    return bool(client.create(REVIEWS, review)["status"]["allowed"])


def kubeconfig_of(plane: Plane, token: str) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load(plane.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    return config


@pytest.fixture
def account(cluster: Cluster, control_plane: Plane, kubectl: Run, tmp_path: Path) -> Iterator[Path]:
    """A kubeconfig of a service account that holds the file's rights and no others."""
    body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "lab"}}
    cluster.create("/api/v1/namespaces/default/serviceaccounts", body)
    applied = kubectl("apply", "-f", str(FILE))
    assert applied.returncode == 0, applied.stderr
    for role in roles():
        bind(cluster, role)
    token = kubectl("create", "token", "lab").stdout.strip()
    path = tmp_path / "lab.kubeconfig"
    path.write_text(json.dumps(kubeconfig_of(control_plane, token)))
    client = Cluster.from_kubeconfig(path)
    allowed = waiting.until(lambda: has_all(client) or None, seconds=20)
    client.close()
    assert allowed
    yield path
    kubectl("delete", "-f", str(FILE), "--ignore-not-found", "--wait=false")
    for role in roles():
        kind = f"{role['kind'].lower()}bindings"
        namespace = ["-n", role["metadata"].get("namespace", "default")]
        kubectl("delete", kind, role["metadata"]["name"], "--ignore-not-found", *namespace)
    kubectl("delete", "serviceaccount", "lab")


def has_all(client: Cluster) -> bool:
    """Tell whether the rights, and those of every user, have reached the authorizer."""
    try:
        client.get("/version")
    except ClusterError:  # not allowed yet
        return False
    return all(
        may(client, rule, verb, role["metadata"].get("namespace", ""))
        for role in roles()
        for rule in role["rules"]
        for verb in rule["verbs"]
    )


@pytest.fixture
def as_lab(account: Path, root: Path, tmp_path: Path) -> Run:
    """Run gpuwl as that account, with a state folder that knows of no local control plane."""
    return program(
        "gpuwl",
        KUBECONFIG=str(account),
        GPUWL_ROOT=str(root),
        XDG_STATE_HOME=str(tmp_path / "state"),
    )


def test_the_lab_runs_twice_verifies_and_is_taken_back(
    cluster: Cluster, as_lab: Run, root: Path
) -> None:
    for arguments in (("run", "--all"), ("run", "--all"), ("verify",), ("reset", "--files")):
        done = as_lab(*arguments)
        assert done.returncode == 0, done.stderr
    assert not root.exists()
    assert not cluster.get("/api/v1/pods")["items"]


def test_the_script_of_a_dry_run_needs_no_more(
    cluster: Cluster, as_lab: Run, account: Path, tmp_path: Path
) -> None:
    hand = tmp_path / "hand"
    for _ in range(2):  # the second time there is something to delete
        script = as_lab("run", "--all", "--dry-run", "--root", str(hand)).stdout
        assert "outside gpuwl's journal" in script
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            ["/bin/sh"],
            input=script,
            env={"PATH": path, "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )
        assert done.returncode == 0, done.stderr
    assert (hand / "out/consistency.txt").read_text() == "OK=3\n"


def test_other_nodes_need_no_more(cluster: Cluster, as_lab: Run) -> None:
    for name in ("x", "y", "z"):
        node = lab_nodes()[0]
        node["metadata"] = {"name": name}
        cluster.create("/api/v1/nodes", node)
    done = as_lab("run", "--all", "--lab-nodes", "x,y,z")
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr


RIGHTS = [
    ("gpuwl", "", "nodes", "get", "get nodes/lab-node-0 "),
    ("gpuwl", "", "nodes", "list", "get nodes "),
    ("gpuwl", "", "nodes", "patch", "patch nodes/lab-node-0 "),
    ("gpuwl", "", "nodes/status", "patch", "patch nodes/lab-node-0/status "),
    ("gpuwl", "", "namespaces", "get", "get namespaces/gpu-vm "),
    ("gpuwl", "gpu-vm", "pods", "get", "get pods/job-container in gpu-vm "),
    ("gpuwl", "gpu-vm", "pods", "create", "create pods in gpu-vm "),
    ("gpuwl", "gpu-vm", "pods", "delete", "delete pods/job-cross in gpu-vm "),
]


@pytest.mark.parametrize(("role", "namespace", "resource", "verb", "named"), RIGHTS)
def test_without_a_right_the_error_names_verb_and_resource(
    cluster: Cluster,
    as_lab: Run,
    account: Path,
    *,
    role: str,
    namespace: str,
    resource: str,
    verb: str,
    named: str,
) -> None:
    take_away(cluster, account, namespace, resource, verb)
    done = as_lab("run", "--all")
    if verb == "delete":  # only a second run has anything to delete
        assert done.returncode == 0, done.stderr
        done = as_lab("run", "--all")
    assert done.returncode == 3
    error = next(line for line in done.stderr.splitlines() if line.startswith("error: "))
    assert f"refused to {named}(403)" in error
    assert resource.split("/", maxsplit=1)[0] in error
    assert "ClusterRole gpuwl" in done.stderr


def take_away(cluster: Cluster, account: Path, namespace: str, resource: str, verb: str) -> None:
    """Take one right out of the role, and wait until the authorizer knows."""
    role = next(r for r in roles() if r["metadata"].get("namespace", "") == namespace)
    rule = next(r for r in role["rules"] if r["resources"] == [resource])
    rules = [
        {**r, "verbs": [v for v in r["verbs"] if r != rule or v != verb]} for r in role["rules"]
    ]
    kept = [r for r in rules if r["verbs"]]
    cluster.merge_patch(f"{role_path(role)}/{role['metadata']['name']}", {"rules": kept})
    client = Cluster.from_kubeconfig(account)
    gone = waiting.until(lambda: not may(client, rule, verb, namespace) or None, seconds=20)
    client.close()
    assert gone


def test_without_leases_other_nodes_are_asked_about(
    cluster: Cluster, as_lab: Run, account: Path
) -> None:
    node = lab_nodes()[0]
    node["metadata"] = {"name": "x"}
    cluster.create("/api/v1/nodes", node)
    take_away(cluster, account, "kube-node-lease", "leases", "get")
    done = as_lab("run", "--all", "--lab-nodes", "x,lab-node-1,lab-node-2")
    assert done.returncode == 3
    assert "cannot tell whether a kubelet runs there" in done.stderr
    assert "leases" in done.stderr
    done = as_lab("run", "--all", "--lab-nodes", "x,lab-node-1,lab-node-2", "--yes")
    assert done.returncode == 0, done.stderr


def test_every_right_is_tested() -> None:
    listed = {
        (role["metadata"].get("namespace", ""), rule["resources"][0], verb)
        for role in roles()
        for rule in role["rules"]
        for verb in rule["verbs"]
    }
    tested = {(namespace, resource, verb) for _, namespace, resource, verb, _ in RIGHTS}
    assert listed - tested == {
        ("kube-node-lease", "leases", "get"),
        ("gpu-vm", "events", "list"),
        ("gpu-vm", "pods", "list"),
        ("gpu-vm", "pods", "watch"),
        ("", "nodes/status", "get"),
    }
