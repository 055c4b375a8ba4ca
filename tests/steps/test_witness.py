"""kubectl as the independent witness, for the dump and for the manifests."""

import json
import subprocess
from typing import Any

import pytest
import yaml
from tests.conftest import Run
from tests.lab import expected
from tests.lab_fixtures import Lab

from gpuwl.k8s.client import Cluster
from gpuwl.lab import paths

pytestmark = pytest.mark.cluster

AWKWARD = {
    "example.com/html": "<a href='x'>&amp;</a> > < &",
    "example.com/korean": "한국어 노드, 그래픽 카드",
    "example.com/separators": "line\u2028paragraph\u2029end",
    "example.com/controls": "tab\tnewline\nreturn\rbell\x07back\bform\fescape\x1b[31mdelete\x7fnul-next\x01",
    "example.com/emoji": "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "example.com/quotes": "\"double\" 'single' \\back\\slash /",
    "example.com/last-bmp": "\ufffd\uffff\ue000\ufeff",
    "example.com/json": '{"nvidia.com/gpu": "4"}',
    "example.com/empty": "",
}


def test_the_dump_is_what_kubectl_prints(lab: Lab, kubectl: Run) -> None:
    lab.run_all()
    assert dump(lab) == kubectl_dump(kubectl)


def test_the_dump_is_what_kubectl_prints_whatever_the_nodes_hold(
    lab: Lab, cluster: Cluster, kubectl: Run
) -> None:
    lab("run", "--to", "3")
    cluster.merge_patch(paths.node("lab-node-1"), {"metadata": {"annotations": AWKWARD}})
    taint = [{"key": "example.com/t", "effect": "PreferNoSchedule", "value": "v"}]
    cluster.merge_patch(paths.node("lab-node-2"), {"spec": {"taints": taint}})
    make_node(cluster, "another-node", memory="1500Mi", **{"nvidia.com/gpu": "1k"})
    assert lab("step", "8").code == 0
    assert dump(lab) == kubectl_dump(kubectl)


def make_node(client: Cluster, name: str, **amounts: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": AWKWARD},
        "status": {"capacity": amounts, "allocatable": amounts, "images": [{"names": ["a<b"]}]},
    }
    client.create(paths.NODES, body)


def dump(lab: Lab) -> bytes:
    return (lab.root / "out/nodes.json").read_bytes()


def kubectl_dump(kubectl: Run) -> bytes:
    done = kubectl("get", "nodes", "-o", "json")
    assert done.returncode == 0, done.stderr
    return done.stdout.encode()


def test_the_api_server_accepts_the_manifests_and_finds_nothing_to_change(
    lab: Lab, kubectl: Run
) -> None:
    lab("run", "--to", "7")
    done = kubectl("apply", "--dry-run=server", "-f", str(lab.root / "k8s"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("(server dry run)") == 4
    for line in done.stdout.splitlines():
        assert line.split()[1] in {"configured", "unchanged"}


def test_the_api_server_would_create_the_manifests_as_they_are(
    lab: Lab, cluster: Cluster, kubectl: Run
) -> None:
    lab("run", "--to", "7")
    for pod in cluster.get(paths.PODS)["items"]:
        cluster.delete(
            paths.pod(pod["metadata"]["name"]), uid=pod["metadata"]["uid"], grace_period=0
        )
    done = kubectl("apply", "--dry-run=server", "-f", str(lab.root / "k8s"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("created (server dry run)") == 4


def test_each_pod_in_the_cluster_is_its_manifest(lab: Lab, kubectl: Run) -> None:
    lab("run", "--to", "7")
    for name in expected.MANIFESTS:
        manifest = yaml.safe_load((lab.root / name).read_text())
        pod = json.loads(kubectl("get", "-f", str(lab.root / name), "-o", "json").stdout)
        assert lacking(manifest, pod) == []
        (container,) = pod["spec"]["containers"]
        assert container["resources"]["requests"] == container["resources"]["limits"]


def lacking(wanted: Any, found: Any, where: str = "") -> list[str]:
    """Return where an object of the cluster lacks what a manifest says."""
    if isinstance(wanted, dict):
        inside = (lacking(v, (found or {}).get(k), f"{where}.{k}") for k, v in wanted.items())
        return [place for places in inside for place in places]
    if isinstance(wanted, list):
        pairs = zip(wanted, found or [], strict=True)
        return [place for n, (w, f) in enumerate(pairs) for place in lacking(w, f, f"{where}[{n}]")]
    return [] if str(wanted) == str(found) else [f"{where}: {wanted!r} is {found!r}"]


def test_the_manifests_hold_nothing_beyond_what_the_lab_shows(lab: Lab) -> None:
    lab("run", "--to", "7")
    for name in expected.MANIFESTS:
        manifest = yaml.safe_load((lab.root / name).read_text())
        assert list(manifest) == ["apiVersion", "kind", "metadata", "spec"]
        assert set(manifest["spec"]) <= {"containers", "nodeSelector"}
        assert ("nodeSelector" in manifest["spec"]) == (name == "k8s/pod-cross.yaml")
        (container,) = manifest["spec"]["containers"]
        assert list(container["resources"]) == ["limits"]


def test_the_message_is_the_clusters_own(lab: Lab, kubectl: Run) -> None:
    lab("run", "--to", "7")
    template = '{.status.conditions[?(@.type=="PodScheduled")].message}'
    done = kubectl("get", "pod", "-n", "gpu-vm", "job-cross", "-o", f"jsonpath={template}")
    assert (lab.root / "out/07-cross.txt").read_text() == expected.cross(done.stdout)


def test_the_installed_checker_gives_the_verdict_that_was_written(lab: Lab) -> None:
    lab.run_all()
    script = [str(lab.root / "bin/check-config.sh"), str(lab.root / "out/nodes.json")]
    done = subprocess.run(script, capture_output=True, check=False, env={}, cwd="/")
    assert done.returncode == 0
    assert done.stdout == (lab.root / "out/consistency.txt").read_bytes()
