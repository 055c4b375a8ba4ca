"""`gpuwl review`: each finding with a twin that has none, its outputs, and the real scheduler as judge."""

import json
import random
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.conftest import program

from gpuwl import texts
from gpuwl.lab.names import LABEL_KEY
from gpuwl.review.review import Review

GPU = "nvidia.com/gpu"
MODEL = "nvidia.com/GA102GL_A10"
PROFILE = "nvidia.com/NVIDIA_A10-12Q"

Object = dict[str, Any]


def node(name: str, value: str, **amounts: str) -> Object:
    held = {"cpu": "8", "memory": "16Gi", "pods": "110", **amounts}
    labels = {LABEL_KEY: value, "kubevirt.io/schedulable": "true", "kubernetes.io/arch": "amd64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {
            "capacity": held,
            "allocatable": held,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


NODES = [
    node("c", "container", **{GPU: "4"}),
    node("p", "vm-passthrough", **{MODEL: "2"}),
    node("v", "vm-vgpu", **{PROFILE: "4"}),
]


def pod(limits: Object, name: str = "job", **spec: object) -> Object:
    container = {"name": "c", "image": "i", "resources": {"limits": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], **spec},
    }


def vm(device: str, kind: str = "gpus") -> Object:
    devices = {kind: [{"name": "g", "deviceName": device}]}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": "vm"},
        "spec": {"template": {"spec": {"domain": {"devices": devices}}}},
    }


def kubevirt(*names: str) -> Object:
    listed = [
        {"resourceName": name, "pciVendorSelector": "10DE:2236", "externalResourceProvider": True}
        for name in names
    ]
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "KubeVirt",
        "metadata": {"name": "kubevirt", "namespace": "kubevirt"},
        "spec": {"configuration": {"permittedHostDevices": {"pciHostDevices": listed}}},
    }


def quota(name: str, amount: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {name: amount}},
    }


def requests_only() -> Object:
    item = pod({})
    item["spec"]["containers"][0]["resources"] = {"requests": {GPU: 1}}
    return item


def ids(*items: Object, around: tuple[Object, ...] = (), folder: Path) -> set[str]:
    file = folder / "manifests.yaml"
    file.write_text(yaml.safe_dump_all([*around, *items]))
    review = Review()
    for each in NODES:
        review.add_node(each)
    review.read([str(file)])
    return {each.id for each in review.findings()}


FINDINGS: dict[str, tuple[tuple[Object, ...], tuple[Object, ...]]] = {
    "unknown-name": ((pod({"nvidia.com/NVIDIA_A10-12q": 1}),), (pod({GPU: 1}),)),
    "nowhere": (
        (pod({GPU: 1}, nodeSelector={LABEL_KEY: "vm-passthrough"}),),
        (pod({GPU: 1}, nodeSelector={LABEL_KEY: "container"}),),
    ),
    "too-many": ((pod({GPU: 5}),), (pod({GPU: 4}),)),
    "two-kinds": ((pod({GPU: 1, MODEL: 1}),), (pod({GPU: 1}),)),
    "wrong-side": ((pod({MODEL: 1}),), (vm(MODEL),)),
    "requests-only": ((requests_only(),), (pod({GPU: 1}),)),
    "fraction": ((pod({GPU: "500m"}),), (pod({GPU: "1"}),)),
    "bare-name": ((pod({"gpu": 1}),), (pod({GPU: 1}),)),
    "not-permitted": ((kubevirt(PROFILE), vm(MODEL)), (kubevirt(MODEL), vm(MODEL))),
    "quota-prefix": ((quota(GPU, "1"),), (quota(f"requests.{GPU}", "1"),)),
    "over-quota": (
        (quota(f"requests.{GPU}", "1"), pod({GPU: 2})),
        (quota(f"requests.{GPU}", "2"), pod({GPU: 2})),
    ),
}


@pytest.mark.parametrize("name", FINDINGS)
def test_each_finding_has_a_file_that_shows_it_and_a_twin_that_does_not(
    name: str, tmp_path: Path
) -> None:
    shows, twin = FINDINGS[name]
    assert name in ids(*shows, folder=tmp_path)
    assert name not in ids(*twin, folder=tmp_path)


def template(kind: str, version: str, *path: str) -> Object:
    """An object that holds a Pod template below a path, as the kinds of the field do."""
    held: Object = {"spec": pod({GPU: 1})["spec"]}
    for part in reversed(path):
        held = {part: held}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "w"}, "spec": held}


OF_THE_FIELD = [
    template("Deployment", "apps/v1", "template"),
    template("CronJob", "batch/v1", "jobTemplate", "spec", "template"),
    template("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", "leaderWorkerTemplate", "workerTemplate"),
    template("RayCluster", "ray.io/v1", "headGroupSpec", "template"),
    template("PyTorchJob", "kubeflow.org/v1", "pytorchReplicaSpecs", "Worker", "template"),
    vm(PROFILE),
    vm(MODEL, "hostDevices"),
]  # fmt: skip


@pytest.mark.parametrize("item", OF_THE_FIELD, ids=range(len(OF_THE_FIELD)))
def test_what_the_field_writes_gives_no_false_alarm(item: Object, tmp_path: Path) -> None:
    assert ids(item, folder=tmp_path) == set()
    wrong = json.loads(json.dumps(item).replace(GPU, f"{GPU}s").replace("A10", "A11"))
    assert "unknown-name" in ids(wrong, folder=tmp_path)


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("nvidia.com/NVIDIA_A10-12q", PROFILE),
        ("nvidia.com/NVIDIA-A10-12Q", PROFILE),
        ("nvidia.com/GA102GL_a10", MODEL),
        ("GA102GL_A10", MODEL),
    ],
)
def test_the_name_that_was_meant_is_named(wrong: str, near: str, tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(yaml.safe_dump(vm(wrong)))
    review = Review()
    for each in NODES:
        review.add_node(each)
    review.read([str(file)])
    assert any(near in (each.fix or "") for each in review.findings())


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "nodes.json").write_text(json.dumps({"kind": "List", "items": NODES}))
    items = [pod({GPU: 9}, "many"), pod({GPU: 1}, "fine"), pod({f"{GPU}s": 1}, "typo")]
    (tmp_path / "m.yaml").write_text(yaml.safe_dump_all(items))
    return tmp_path


def run(folder: Path, *words: str, code: int) -> str:
    done = program("gpuwl")("review", *words, cwd=folder)
    assert done.returncode == code, done.stderr
    return str(done.stdout)


def test_one_line_for_each_workload_in_file_order(place: Path) -> None:
    lines = run(place, "m.yaml", "--nodes", "nodes.json", code=1).splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "PROBLEM=Pod/default/many too-many",
        "PROBLEM=Pod/default/typo unknown-name",
    ]
    ignored = ("--ignore", "too-many", "--ignore", "unknown-name")
    assert run(place, "m.yaml", "--nodes", "nodes.json", *ignored, code=0) == "OK=3\n"


def test_a_comment_leaves_a_finding_out(place: Path) -> None:
    text = (place / "m.yaml").read_text()
    (place / "m.yaml").write_text(text.replace(f"{GPU}: 9", f"{GPU}: 9  # gpuwl: ignore too-many"))
    shown = run(place, "m.yaml", "--nodes", "nodes.json", code=1)
    assert "too-many" not in shown
    assert "unknown-name" in shown


def test_the_forms_for_programs(place: Path) -> None:
    words = ("m.yaml", "--nodes", "nodes.json", "--output")
    sarif = json.loads(run(place, *words, "sarif", code=1))
    results = sarif["runs"][0]["results"]
    assert [(one["ruleId"], one["level"]) for one in results] == [
        ("too-many", "error"),
        ("unknown-name", "error"),
    ]
    where = results[0]["locations"][0]["physicalLocation"]
    line = (place / "m.yaml").read_text().splitlines()[where["region"]["startLine"] - 1]
    assert (where["artifactLocation"]["uri"], line.strip()) == ("m.yaml", f"{GPU}: 9")
    annotations = run(place, *words, "github", code=1).splitlines()
    assert annotations[0].startswith("::error file=m.yaml,line=")
    suites = ET.fromstring(run(place, *words, "junit", code=1))  # noqa: S314 - our own document
    assert suites.attrib["failures"] == "2"


def test_nodes_alone_give_the_operators_findings(place: Path) -> None:
    odd = [*NODES, node("o", "vm-gpu", **{GPU: "1"})]
    (place / "nodes.json").write_text(json.dumps({"kind": "List", "items": odd}))
    assert run(place, "--nodes", "nodes.json", code=1).startswith("PROBLEM=Node//o unknown-label")


@pytest.mark.parametrize(
    "content",
    ["a: [", "a: !!python/object/apply:os.system [id]\n", "\x00", "a: &a [*a]\n", "[" * 5000],
    ids=["broken", "tag", "nul", "cycle", "deep"],
)
def test_hostile_files_are_refused_and_nothing_runs(content: str, place: Path) -> None:
    (place / "m.yaml").write_text(content)
    done = program("gpuwl")("review", "m.yaml", "--nodes", "nodes.json", cwd=place)
    assert done.returncode in {0, 2}
    assert "Traceback" not in done.stderr
    assert "uid=" not in done.stdout + done.stderr


def test_strangers_names_forge_no_line(place: Path) -> None:
    item = pod({f"{GPU}s": 1}, "x\nOK=1\x1b[2J")
    (place / "m.yaml").write_text(yaml.safe_dump(item))
    lines = run(place, "m.yaml", "--nodes", "nodes.json", code=1).splitlines()
    assert len(lines) == 1
    assert "\x1b" not in lines[0]


@pytest.mark.cluster
@pytest.mark.usefixtures("found_binaries")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_real_scheduler_confirms_errors_and_what_passes(tmp_path: Path, seed: int) -> None:
    """What review calls an error never gets a node; what it passes does, each Pod for itself."""
    dice = random.Random(seed)  # noqa: S311 - generated cases
    names = (GPU, MODEL, PROFILE, "nvidia.com/NVIDIA_A10-12q", "example.com/gpu")
    nodes = []
    for number in range(10):
        made = node(
            f"n{number}", dice.choice(["container", "vm-vgpu"]), **{dice.choice(names[:3]): "40"}
        )
        made["metadata"]["labels"]["pool"] = dice.choice("ab")
        if dice.random() < 0.4:
            made["spec"] = {"taints": [{"key": "gpu", "value": "x", "effect": "NoSchedule"}]}
        nodes.append(made)
    pods = []
    for number in range(16):
        more: Object = {"nodeSelector": {"pool": dice.choice("abc")}} if dice.random() < 0.6 else {}
        if dice.random() < 0.5:
            more["tolerations"] = [{"key": "gpu", "operator": "Exists"}]
        pods.append(pod({dice.choice(names): dice.choice([1, 41])}, f"p{number}", **more))
    (tmp_path / "nodes.json").write_text(json.dumps({"kind": "List", "items": nodes}))
    (tmp_path / "pods.yaml").write_text(yaml.safe_dump_all(pods))
    gpuwl = program("gpuwl", XDG_STATE_HOME=str(tmp_path / "state"))
    words = ("pods.yaml", "--nodes", "nodes.json", "--output", "json")
    found = json.loads(gpuwl("review", *words, cwd=tmp_path).stdout)["findings"]
    errors = {one["where"].split("/")[-1] for one in found if one["severity"] == "error"}
    placed = json.loads(gpuwl("place", *words, "--reasons", "0", cwd=tmp_path).stdout)
    went = {one["name"] for one in placed["before"]["pods"] if one["node"]}
    assert errors | went == {one["metadata"]["name"] for one in pods}
    assert errors & went == set()


def test_every_finding_has_a_page(tmp_path: Path) -> None:
    for name, (shows, _) in FINDINGS.items():
        for found in ids(*shows, folder=tmp_path):
            assert texts.catalogue("en", "review")[found], name
    shown = program("gpuwl")("explain", "unknown-name").stdout
    assert "compared as strings" in " ".join(shown.split())
    assert program("gpuwl")("explain", "no-such-finding").returncode == 2
