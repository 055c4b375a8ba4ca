"""`gpuwl verify` on the real control plane: what holds, what differs, and that the mends mend."""

import contextlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from tests.conftest import Run, program, undo_lab

from gpuwl.controlplane import plane
from gpuwl.findings import Finding, Severity
from gpuwl.k8s.client import Cluster, ReadOnlyCluster
from gpuwl.lab import manifests, paths
from gpuwl.lab.artifacts import Artifacts
from gpuwl.lab.names import (
    JOB_CONTAINER,
    JOB_CROSS,
    LABEL_KEY,
    PODS,
    VMI_PASSTHROUGH,
    VMI_VGPU,
    lab_nodes,
)
from gpuwl.steps import STEPS
from gpuwl.system import waiting
from gpuwl.target.connection import TargetRecord
from gpuwl.verification.assess import assess
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.grading import cases
from gpuwl.verification.outcome import Outcome

pytestmark = pytest.mark.cluster


ALL_CASES = cases.cases


def _few_cases(seed: int) -> list[cases.Case]:
    """Return one case of each of a few parts: test_grading looks at all of them."""
    parts = {one.part: one for one in ALL_CASES(seed)}
    return [parts["every-node"], parts["container"], parts[cases.NO_DUMP]]


@dataclass(frozen=True)
class Lab:
    """A finished lab: its cluster, its root, and the programs that work on both."""

    cluster: Cluster
    root: Path
    kubeconfig: Path
    gpuwl: Run
    kubectl: Run

    def verify(self) -> list[Outcome]:
        """Verify in this process, with a client that cannot write."""
        with contextlib.closing(ReadOnlyCluster.from_kubeconfig(self.kubeconfig)) as client:
            record = TargetRecord("local", "tests", client.server, "v0")
            artifacts, kept = Artifacts(self.root), self.root.parent / "kept"
            attempt = Attempt(client, artifacts, lab_nodes(), record, 30, kept, seed=1)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(cases, "cases", _few_cases)
                outcomes = assess(attempt, STEPS)
            assert client.requests <= 4  # nodes, namespace, Pods, events: each list at most once
            return outcomes

    def differing(self) -> list[Outcome]:
        return [one for one in self.verify() if one.differences]

    def mend(self, outcomes: list[Outcome]) -> None:
        """Run each command that does a step anew, in its order, once."""
        commands = dict.fromkeys(one.redo for one in outcomes)
        environment = {
            **os.environ,
            "KUBECONFIG": str(self.kubeconfig),
            "GPUWL_ROOT": str(self.root),
            "GPUWL_YES": "1",  # a Pod of somebody else's making is replaced
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        for command in commands:
            words = ["/bin/sh", "-c", command]
            done = subprocess.run(
                words, env=environment, check=False, capture_output=True, text=True
            )
            assert done.returncode == 0, (command, done.stderr)

    def write(self, relative: str, old: str, new: str) -> None:
        path = self.root / relative
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def replace_pod(self, body: dict[str, Any]) -> None:
        """Delete a Pod and create another one of its name."""
        path = paths.pod(body["metadata"]["name"])
        found = self.cluster.get(path)
        self.cluster.delete(path, uid=found["metadata"]["uid"], grace_period=0)
        self.cluster.create(paths.PODS, body)


@pytest.fixture(scope="module")
def finished(control_plane: plane.Plane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One lab for all tests of this module; each puts right what it spoiled."""
    root = tmp_path_factory.mktemp("verify") / "root"
    variables = {"KUBECONFIG": str(control_plane.kubeconfig), "GPUWL_ROOT": str(root)}
    client = Cluster.from_kubeconfig(control_plane.kubeconfig)
    undo_lab(client)
    gpuwl = program("gpuwl", **variables, GPUWL_YES="1")
    assert gpuwl("run", "--all").returncode == 0
    yield Lab(client, root, control_plane.kubeconfig, gpuwl, program("kubectl", **variables))
    undo_lab(client)
    client.close()


@pytest.fixture
def lab(finished: Lab) -> Lab:
    """Hand out the finished lab, and finish it again where the test left it otherwise."""
    if finished.differing():
        undo_lab(finished.cluster)
        done = finished.gpuwl("run", "--all")
        assert done.returncode == 0, done.stderr
    return finished


def test_a_finished_lab_holds_with_the_scheduler_s_events_as_evidence(lab: Lab) -> None:
    outcomes = lab.verify()
    assert not any(one.findings or one.obstacle for one in outcomes)
    evidence = [one for outcome in outcomes for one in outcome.evidence]
    assert [(one.pod, one.node, one.kind) for one in evidence] == [
        ("job-container", "lab-node-0", "event"),
        ("vmi-passthrough", "lab-node-1", "event"),
        ("vmi-vgpu", "lab-node-2", "event"),
    ]
    assert all("default-scheduler" in one.says for one in evidence)


def test_verify_asks_little_and_changes_nothing(lab: Lab) -> None:
    before = {path: path.read_bytes() for path in lab.root.rglob("*") if path.is_file()}
    versions = _versions(lab.cluster)
    done = lab.gpuwl("verify")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "8 steps: 8 ok")
    assert {path: path.read_bytes() for path in lab.root.rglob("*") if path.is_file()} == before
    assert _versions(lab.cluster) == versions


def _versions(cluster: Cluster) -> list[str]:
    lists = [cluster.get(path) for path in (paths.NODES, paths.PODS, paths.NAMESPACES)]
    return [item["metadata"]["resourceVersion"] for listed in lists for item in listed["items"]]


Spoil = Callable[[Lab], object]


def _label(lab: Lab, name: str, value: str | None) -> None:
    lab.cluster.merge_patch(paths.node(name), {"metadata": {"labels": {LABEL_KEY: value}}})


def _status(lab: Lab, name: str, **fields: dict[str, str | None]) -> None:
    lab.cluster.merge_patch(f"{paths.node(name)}/status", {"status": fields})


def _pod(lab_pod: Any = JOB_CONTAINER, **spec: object) -> dict[str, Any]:
    body = manifests.pod(lab_pod)
    return {**body, "spec": {**body["spec"], **spec}}


def _unlink(relative: str) -> Spoil:
    return lambda lab: (lab.root / relative).unlink()


def _edit(relative: str, old: str, new: str) -> Spoil:
    return lambda lab: lab.write(relative, old, new)


def _delete_pod(name: str) -> Spoil:
    def spoil(lab: Lab) -> None:
        uid = lab.cluster.get(paths.pod(name))["metadata"]["uid"]
        lab.cluster.delete(paths.pod(name), uid=uid, grace_period=0)

    return spoil


def _delete_namespace(lab: Lab) -> None:
    uid = lab.cluster.get(paths.THE_NAMESPACE)["metadata"]["uid"]
    lab.cluster.delete(paths.THE_NAMESPACE, uid=uid)


def _unsort(lab: Lab) -> None:
    path = lab.root / "out/06-placement.txt"
    path.write_text("".join(sorted(path.read_text().splitlines(keepends=True), reverse=True)))


def _container(amount: int) -> dict[str, Any]:
    return {"name": "cuda", "image": "x", "resources": {"limits": {"nvidia.com/gpu": amount}}}


@dataclass(frozen=True)
class Spoiled:
    """What is done, the step that must differ then, what is named and what was found."""

    spoil: Spoil
    step: int
    what: str
    found: str


SPOILED = {
    "labels, and a wrong line in each file": [
        Spoiled(lambda lab: _label(lab, "lab-node-0", None), 1, "node lab-node-0: the label", "no such"),
        Spoiled(lambda lab: _label(lab, "lab-node-1", "VM-vgpu"), 1, "node lab-node-1: the label", "VM-vgpu"),
        Spoiled(lambda lab: _label(lab, "lab-node-2", "vm-gpu"), 1, "node lab-node-2: the label", "vm-gpu"),
        Spoiled(_edit("out/01-nodes.txt", "vm-vgpu", "vgpu"), 1, "line 3", "lab-node-2 vgpu"),
        Spoiled(_edit("out/operands.txt", "vgpu-device-manager,", ""), 2, "operands of vm-vgpu", "vgpu-man"),
        Spoiled(_edit("out/03-resources.txt", "A10 2", "A10 4"), 3, "line 2", "GA102GL_A10 4"),
        Spoiled(_edit("out/04-container.txt", "lab-node-0", "lab-node-1"), 4, "line 1", "node-1"),
        Spoiled(_edit("out/05-passthrough.txt", "GA102GL_A10", "gpu"), 5, "line 2", "nvidia.com/gpu"),
        Spoiled(_edit("out/07-cross.txt", "0/3", "0/4"), 7, "07-cross.txt: line 3", "MESSAGE=0/4"),
        Spoiled(_edit("out/consistency.txt", "OK=3", "OK=4"), 8, "out/consistency.txt", "OK=4"),
    ],
    "resources": [
        Spoiled(
            lambda lab: _status(lab, "lab-node-0", capacity={"nvidia.com/gpu": None}),
            3, "node lab-node-0: the nvidia.com/ names in status.capacity", "nothing"),
        Spoiled(
            lambda lab: _status(lab, "lab-node-1", capacity={"nvidia.com/gpu": "0"}),
            3, "node lab-node-1: the nvidia.com/ names in status.capacity", "nvidia.com/gpu=0"),
        Spoiled(
            lambda lab: _status(lab, "lab-node-2", capacity={"nvidia.com/NVIDIA_A10-12Q": "3"}),
            3, "node lab-node-2: the nvidia.com/ names in status.capacity", "nvidia.com/NVIDIA_A10-12Q=3"),
        Spoiled(
            lambda lab: _status(lab, "lab-node-2", allocatable={"nvidia.com/NVIDIA_A10-12q": "4"}),
            3, "node lab-node-2: the nvidia.com/ names in status.allocatable", "nvidia.com/NVIDIA_A10-12q=4"),
    ],
    "a resource gone from under its Pod": [
        Spoiled(
            lambda lab: _status(
                lab, "lab-node-0", capacity={"nvidia.com/gpu": None},
                allocatable={"nvidia.com/gpu": None}),
            4, "Pod job-container: its node lab-node-0 does not advertise", "nothing"),
    ],
    "files gone": [
        Spoiled(_unlink("out/01-nodes.txt"), 1, "out/01-nodes.txt", "no such file"),
        Spoiled(_unlink("out/operands.txt"), 2, "out/operands.txt", "no such file"),
        Spoiled(_unlink("out/03-resources.txt"), 3, "out/03-resources.txt", "no such file"),
        Spoiled(_unlink("k8s/pod-container.yaml"), 4, "k8s/pod-container.yaml", "no such file"),
        Spoiled(_unlink("out/05-passthrough.txt"), 5, "05-passthrough.txt", "no such file"),
        Spoiled(_unlink("out/06-placement.txt"), 6, "out/06-placement.txt", "no such file"),
        Spoiled(_unlink("out/07-cross.txt"), 7, "out/07-cross.txt", "no such file"),
        Spoiled(_unlink("out/nodes.json"), 8, "out/nodes.json", "no such file"),
        Spoiled(_unlink("bin/check-config.sh"), 8, "bin/check-config.sh", "no such file"),
    ],
    "Pods that ask for something else": [
        Spoiled(
            lambda lab: lab.replace_pod(_pod(nodeSelector={LABEL_KEY: "container"})),
            4, "Pod job-container: spec.nodeSelector", "container"),
        Spoiled(
            lambda lab: lab.replace_pod(_pod(VMI_PASSTHROUGH, containers=[_container(2)])),
            5, "Pod vmi-passthrough: spec.containers[0].resources.limits.nvidia.com/gpu", "2"),
        Spoiled(
            lambda lab: lab.replace_pod(_pod(JOB_CROSS, nodeSelector={})),
            7, "Pod job-cross: spec.nodeSelector", "not set"),
        Spoiled(
            _edit("k8s/pod-vgpu.yaml", "limits:", "requests: {nvidia.com/gpu: 2}\n      limits:"),
            6, "k8s/pod-vgpu.yaml: spec.containers[0].resources.requests.nvidia.com/gpu", "2"),
    ],
    "Pods put on nodes past the scheduler": [
        Spoiled(
            lambda lab: lab.replace_pod(_pod(nodeName="lab-node-0")),
            4, "Pod job-container: the scheduler has not", "nodeName=lab-node-0, no PodScheduled"),
        Spoiled(
            lambda lab: lab.replace_pod(_pod(VMI_VGPU, nodeName="lab-node-1")),
            6, "Pod vmi-vgpu: the scheduler has not", "nodeName=lab-node-1, no PodScheduled"),
        Spoiled(
            lambda lab: lab.replace_pod(_pod(JOB_CROSS, nodeName="lab-node-1")),
            7, "Pod job-cross: the scheduler has not refused", "spec.nodeName=lab-node-1"),
    ],
    "a Pod gone, a dump and a checker of another kind": [
        Spoiled(_delete_pod("job-container"), 4, "Pod job-container: there is no such Pod", ""),
        Spoiled(
            lambda lab: (lab.root / "bin/check-config.sh").write_text("#!/bin/sh\necho OK=3\n"),
            8, "check-config.sh: container fits", "exit 0: OK=3"),
    ],
    "a dump of nodes of the same names elsewhere": [
        Spoiled(_edit("out/nodes.json", '"uid": "', '"uid": "f'), 8, "metadata.uid", "f"),
    ],
    "the namespace going, a dump of another day": [
        Spoiled(_delete_namespace, 1, "namespace gpu-vm: it is being deleted", "Terminating"),
        Spoiled(
            _edit("out/nodes.json", "nvidia.com/GA102GL_A10", "nvidia.com/GA102GL_A11"),
            8, "out/nodes.json, node lab-node-1: the nvidia.com/ names in status.allocatable", "nvidia.com/GA102GL_A11=2"),
        Spoiled(
            lambda lab: (lab.root / "bin/check-config.sh").chmod(0o644),
            8, "bin/check-config.sh: it may not be run", "644"),
    ],
    "lines in another order": [Spoiled(_unsort, 6, "06-placement.txt: the lines", "vmi-vgpu lab-node-2 | vmi-pass")],
}  # fmt: skip


@pytest.mark.parametrize("name", SPOILED)
def test_deviations_are_found_and_the_named_commands_mend_them(lab: Lab, name: str) -> None:
    for spoiled in SPOILED[name]:
        spoiled.spoil(lab)
    outcomes = lab.differing()
    told = {one.number: [_in_words(d) for d in one.differences] for one in outcomes}
    for one in SPOILED[name]:
        found = told.get(one.step, [])
        assert [1 for words in found if one.what in words and one.found in words], (one, found)
    lab.mend(outcomes)
    assert lab.differing() == []


def _in_words(finding: Finding) -> str:
    return f"{finding.where}: {finding.what}; found: {finding.found}"


def test_an_expired_event_leaves_the_condition_as_evidence(lab: Lab) -> None:
    # the whole collection in one request: --all sends one for each event of the session
    assert lab.kubectl("delete", "--raw", paths.EVENTS).returncode == 0
    evidence = [one for outcome in lab.verify() for one in outcome.evidence]
    assert [one.kind for one in evidence] == ["condition"] * 3
    assert lab.differing() == []
    lab.gpuwl("run", "--from", "4", "--to", "6")


def test_a_pod_pinned_by_hand_with_no_event_left_cannot_be_told(lab: Lab) -> None:
    lab.replace_pod(_pod(nodeName="lab-node-0"))
    condition = {"conditions": [{"type": "PodScheduled", "status": "True"}]}
    lab.cluster.merge_patch(f"{paths.pod('job-container')}/status", {"status": condition})
    step = lab.verify()[3]
    assert (str(step.result), step.evidence) == ("unknown", ())
    (found,) = step.findings
    assert (found.id, found.severity) == ("container.placement", Severity.WARNING)
    lab.gpuwl("step", "4")


@pytest.mark.parametrize("spoil", [None, "labels alone"])
def test_a_bare_cluster_or_half_a_lab_never_holds_in_step_8(
    finished: Lab, tmp_path: Path, spoil: str | None
) -> None:
    undo_lab(finished.cluster)
    steps = ("1", "8") if spoil else ("8",)
    for step in steps:
        finished.gpuwl("step", step, "--root", str(tmp_path))
    document = json.loads(
        finished.gpuwl("verify", "--root", str(tmp_path), "--output", "json").stdout
    )
    assert document["steps"][7]["verdict"] == "differs"
    assert "consistency.lab" in {one["id"] for one in document["steps"][7]["findings"]}


def test_differences_are_told_with_exit_1_in_every_format(lab: Lab) -> None:
    (lab.root / "out/operands.txt").unlink()
    plain = lab.gpuwl("verify")
    assert plain.returncode == 1
    assert "step 2 differs Which operands each label value brings" in plain.stdout
    ways = [line.strip() for line in plain.stdout.splitlines() if "gpuwl " in line]
    assert ways == [  # what teaches comes first, and what overwrites says so
        "learn how: gpuwl explain 2",
        "let gpuwl do it instead, which overwrites your out/operands.txt: gpuwl step 2",
    ]
    document = json.loads(lab.gpuwl("verify", "--output", "json", "--seed", "7").stdout)
    assert (document["version"], document["exitCode"], document["verdict"]) == (1, 1, "differs")
    assert (document["seed"], document["kept"]) == (7, None)
    step = document["steps"][1]
    assert [one["verdict"] for one in step["points"]] == ["differs"] * 6
    assert step["findings"] == [
        {
            "id": "operands.file",
            "where": "out/operands.txt",
            "what": "the file is missing",
            "severity": "error",
            "file": "out/operands.txt",
            "line": None,
            "expected": None,
            "found": "no such file",
            "fix": None,
        }
    ]
    suites = ET.fromstring(lab.gpuwl("--output", "junit", "verify").stdout)  # noqa: S314 - ours
    assert (suites.attrib["tests"], suites.attrib["failures"]) == ("8", "1")
    lab.gpuwl("step", "2")


def test_the_command_that_mends_names_the_same_root(lab: Lab, tmp_path: Path) -> None:
    root = tmp_path / "a folder"
    done = lab.gpuwl("--root", str(root), "verify")
    assert done.returncode == 1
    assert shlex.join(["gpuwl", "--root", str(root), "step", "2"]) in done.stdout


@pytest.mark.parametrize("arguments", [("run", "--all"), ("steps",), ("local", "status")])
@pytest.mark.parametrize("by_variable", [True, False])
def test_junit_is_for_verify_alone(
    gpuwl: Run,
    arguments: tuple[str, ...],
    by_variable: bool,  # noqa: FBT001 - a parameter
) -> None:
    if by_variable:
        done = gpuwl(*arguments, env={"GPUWL_OUTPUT": "junit"})
    else:
        done = gpuwl("--output", "junit", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "junit" in done.stderr


def _kubeconfig(lab: Lab, path: Path, **changes: str) -> Path:
    """Write a kubeconfig for the same cluster with a token in place of the certificate."""
    document = yaml.safe_load(lab.kubeconfig.read_text())
    if "token" in changes:
        document["users"][0]["user"] = {"token": changes["token"]}
    if "server" in changes:
        document["clusters"][0]["cluster"]["server"] = changes["server"]
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.mark.parametrize("change", [{"token": "nobody"}, {"server": "https://127.0.0.1:1"}])
def test_a_cluster_that_does_not_answer_cannot_be_told(
    lab: Lab, tmp_path: Path, change: dict[str, str]
) -> None:
    config = _kubeconfig(lab, tmp_path / "config", **change)
    done = lab.gpuwl("verify", "--output", "junit", env={"KUBECONFIG": str(config)})
    assert done.returncode == 3
    assert done.stderr.startswith("error: ")
    suites = ET.fromstring(done.stdout)  # noqa: S314 - our own output
    assert (suites.attrib["tests"], suites.attrib["errors"]) == ("8", "8")


def test_a_local_control_plane_that_is_down_is_not_started(lab: Lab, tmp_path: Path) -> None:
    done = lab.gpuwl("verify", "--local", "--name", "down", env={"KUBECONFIG": ""})
    assert done.returncode == 3
    assert "hint: gpuwl run --all --local --name down" in done.stderr
    assert "down" not in plane.names()


RIGHTS = {
    "all but events": ("get,list", "nodes,pods,namespaces", 0),
    "no Pods": ("get,list", "nodes,namespaces,events", 3),
}


def _may_list(lab: Lab, resources: str) -> bool | None:
    """Tell whether the authorizer knows of the role by now, which it hears of a moment later."""
    reader = "--as=system:serviceaccount:default:reader"
    asked = ("auth", "can-i", "list", resources.split(",", maxsplit=1)[0], reader)
    return lab.kubectl(*asked).returncode == 0 or None


@pytest.mark.parametrize("name", RIGHTS)
def test_with_fewer_rights_it_says_what_it_cannot_tell(lab: Lab, tmp_path: Path, name: str) -> None:
    verbs, resources, code = RIGHTS[name]
    commands = (
        "create serviceaccount reader",
        f"create clusterrole reader --verb={verbs} --resource={resources}",
        "create clusterrolebinding reader --clusterrole=reader --serviceaccount=default:reader",
    )
    try:
        for command in commands:
            assert lab.kubectl(*shlex.split(command)).returncode == 0
        assert waiting.until(lambda: _may_list(lab, resources), seconds=20)
        token = lab.kubectl("create", "token", "reader").stdout.strip()
        config = _kubeconfig(lab, tmp_path / "config", token=token)
        done = lab.gpuwl("verify", env={"KUBECONFIG": str(config)})
        assert done.returncode == code, done.stdout + done.stderr
        assert "is forbidden" in done.stdout + done.stderr
        assert ("step 4 unknown" in done.stdout) == (code == 3)
    finally:
        lab.kubectl("delete", "serviceaccount/reader", "clusterrole/reader")
        lab.kubectl("delete", "clusterrolebinding/reader")


def test_a_stopped_verify_leaves_no_folder_and_no_process(lab: Lab, tmp_path: Path) -> None:
    script, pids = lab.root / "bin/check-config.sh", tmp_path / "pids"
    folder = tmp_path / "temporary"
    folder.mkdir()
    script.write_text(f"#!/bin/sh\necho $$ > {pids}\nsleep 300\n")
    environment = {
        **os.environ,
        "KUBECONFIG": str(lab.kubeconfig),
        "GPUWL_ROOT": str(lab.root),
        "TMPDIR": str(folder),
    }
    command = [str(Path(sys.executable).parent / "gpuwl"), "verify"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        assert waiting.until(lambda: (pids.exists() and pids.read_text()) or None, seconds=60)
        assert [path.name[:13] for path in folder.glob("gpuwl-verify*")] == ["gpuwl-verify-"]
        process.terminate()
        assert process.wait(60) == 143
    assert list(folder.iterdir()) == []
    assert not Path(f"/proc/{pids.read_text().strip()}").exists()
    lab.gpuwl("step", "8")  # the next test would wait for this script's end


def test_nodes_of_another_cluster_are_no_lab(lab: Lab) -> None:
    done = lab.gpuwl("verify", "--lab-nodes", "a,b,c")
    assert done.returncode == 3
    assert "lacks nodes of the lab: a, b, c" in done.stderr


BY_HAND = r"""
set -e
mkdir -p out bin k8s
key=nvidia.com/gpu.workload.config
kubectl create namespace gpu-vm >/dev/null
n=0
for use in container vm-passthrough vm-vgpu; do
  kubectl label node lab-node-$n $key=$use >/dev/null; n=$((n + 1))
done
kubectl get nodes -L $key --no-headers | awk '{print $1 " " $NF}' > out/01-nodes.txt
cat > out/operands.txt <<'TABLE'
container=device-plugin, dcgm-exporter, container-toolkit, datacenter-driver
vm-passthrough=sandbox-device-plugin,vfio-manager
vm-vgpu=sandbox-device-plugin,vgpu-device-manager,vgpu-manager
NO_LABEL=container
ENABLE_FLAG=sandboxWorkloads.enabled
TABLE
advertise() {
  kubectl patch node "$1" --subresource=status --type=merge >/dev/null \
    -p "{\"status\":{\"allocatable\":{\"$2\":\"$3\"},\"capacity\":{\"$2\":\"$3\"}}}"
  echo "$1 $2 $3"
}
{
  advertise lab-node-0 nvidia.com/gpu 4
  advertise lab-node-1 nvidia.com/GA102GL_A10 2
  advertise lab-node-2 nvidia.com/NVIDIA_A10-12Q 4
} > out/03-resources.txt
image=nvcr.io/nvidia/cuda:12.4.1-base-ubuntu22.04
pod() {
  printf '# %s\n{"apiVersion": "v1", kind: Pod, metadata: {name: %s, namespace: gpu-vm},\n' "$1" "$1"
  printf ' spec: {%s containers: [{image: %s, name: cuda,\n' "$3" $image
  printf "  resources: {limits: {'%s': '1'}}}]}}" "$2"
}
pod job-container nvidia.com/gpu > k8s/pod-container.yaml
pod vmi-passthrough nvidia.com/GA102GL_A10 > k8s/pod-passthrough.yaml
pod vmi-vgpu nvidia.com/NVIDIA_A10-12Q > k8s/pod-vgpu.yaml
pod job-cross nvidia.com/gpu "nodeSelector: {$key: vm-passthrough}," > k8s/pod-cross.yaml
kubectl apply -f k8s >/dev/null
kubectl wait -n gpu-vm pod/job-container pod/vmi-passthrough pod/vmi-vgpu \
  --for=condition=PodScheduled --timeout=30s >/dev/null
kubectl wait -n gpu-vm pod/job-cross --for=condition=PodScheduled=False --timeout=30s >/dev/null
field() { kubectl get pod -n gpu-vm "$1" -o jsonpath="$2"; }
echo "NODE=$(field job-container '{.spec.nodeName}')" > out/04-container.txt
printf 'NODE=%s\nRESOURCE=nvidia.com/GA102GL_A10\n' \
  "$(field vmi-passthrough '{.spec.nodeName}')" > out/05-passthrough.txt
for name in job-container vmi-passthrough vmi-vgpu; do
  echo "$name $(field $name '{.spec.nodeName}')"
done > out/06-placement.txt
printf 'PHASE=%s\nNODE=none\nMESSAGE=%s\n' "$(field job-cross '{.status.phase}')" \
  "$(field job-cross '{.status.conditions[?(@.type=="PodScheduled")].message}')" > out/07-cross.txt
kubectl get nodes -o json > out/nodes.json
cat > bin/check-config.sh <<'CHECK'
#!/usr/bin/env python3
import json, re, sys
try:
    nodes = json.load(open(sys.argv[1]))["items"]
except Exception as error:
    print(f"no list of nodes: {error!r}", file=sys.stderr)
    sys.exit(2)
bad, good = [], 0
for node in nodes:
    use = node["metadata"].get("labels", {}).get("nvidia.com/gpu.workload.config")
    have = [n for n, q in node.get("status", {}).get("allocatable", {}).items()
            if n.startswith("nvidia.com/") and q != "0"]
    kind = [("vm-vgpu" if re.search(r"-\d+[A-Z]$", n) else "vm-passthrough")
            if n != "nvidia.com/gpu" else "container" for n in have]
    if use is not None and kind != [use]:
        bad.append("MISMATCH=%s %s has %s" % (node["metadata"]["name"], use, have))
    good += use is not None
print("\n".join(bad) if bad else "OK=%d" % good)
sys.exit(bool(bad))
CHECK
chmod 755 bin/check-config.sh
bin/check-config.sh out/nodes.json > out/consistency.txt
"""


def test_an_attempt_by_hand_holds(
    finished: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undo_lab(finished.cluster)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.setenv("KUBECONFIG", str(finished.kubeconfig))
    done = subprocess.run(
        ["/bin/bash", "-c", BY_HAND], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    checked = finished.gpuwl("verify", "--root", str(tmp_path))
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_all_four_manifests_are_looked_at(lab: Lab) -> None:
    for lab_pod in PODS:
        lab.write(lab_pod.manifest, "name: cuda", "name: other")
    found = [_in_words(one) for outcome in lab.differing() for one in outcome.differences]
    what = "spec.containers[0].name is wrong; found: 'other'"
    assert found == [f"{pod.manifest}: {what}" for pod in PODS]
    lab.gpuwl("run", "--from", "4", "--to", "7")
