"""A step that cannot run yet says what is missing, and touches neither cluster nor root."""

import re
from typing import Any

import pytest
from tests.lab_fixtures import Lab, make_pod, set_resources

from gpuwl.k8s.client import Cluster
from gpuwl.lab import paths

pytestmark = pytest.mark.cluster


def state_of(client: Cluster) -> dict[str, Any]:
    """Return everything that a step could have changed."""
    collections = (paths.NODES, paths.NAMESPACES, "/api/v1/pods")
    return {path: client.get(path)["items"] for path in collections}


@pytest.mark.parametrize(
    ("step", "missing", "command"),
    [
        (4, ["namespace gpu-vm", "nvidia.com/gpu on the container node"], "--from 1 --to 3"),
        (5, ["namespace gpu-vm", "nvidia.com/GA102GL_A10"], "--from 1 --to 3"),
        (6, ["namespace gpu-vm", "NVIDIA_A10-12Q", "job-container", "vmi-pass"], "--from 1 --to 5"),
        (7, ["namespace gpu-vm", "workload labels", "nvidia.com/GA102GL_A10"], "--from 1 --to 3"),
    ],
)
def test_a_step_on_a_bare_cluster(
    step: int, missing: list[str], command: str, lab: Lab, cluster: Cluster
) -> None:
    before = state_of(cluster)
    done = lab("step", str(step))
    assert done.code == 3
    named = re.findall(r"^  missing: (.*)$", done.err, re.MULTILINE)
    assert len(named) == len(missing)
    for text, shown in zip(missing, named, strict=True):
        assert text in shown
    assert f"hint: gpuwl run {command}\n" in done.err
    assert state_of(cluster) == before
    assert not lab.root.exists()


@pytest.mark.parametrize("step", [1, 2, 3])
def test_the_first_three_steps_need_nothing(step: int, lab: Lab) -> None:
    done = lab("step", str(step))
    assert done.code == 0, done.err


def test_step_8_needs_nothing_but_nodes(lab: Lab) -> None:
    done = lab("step", "8")
    assert done.code == 0, done.err
    assert (lab.root / "out/consistency.txt").read_text() == "OK=0\n"
    assert re.search(
        r"^warning: .*nodes\.json holds no node with the label ", done.err, re.MULTILINE
    )


def test_a_verdict_on_labelled_nodes_comes_without_a_warning(lab: Lab) -> None:
    assert "warning" not in lab.run_all().err


def test_the_hint_provides_what_is_missing(lab: Lab) -> None:
    hint = re.findall(r"^hint: gpuwl (.*)$", lab("step", "6").err, re.MULTILINE)
    assert lab(*hint[0].split()).code == 0
    assert lab("step", "6").code == 0


def test_only_what_is_missing_is_named(lab: Lab, cluster: Cluster) -> None:
    lab.run_all()
    set_resources(cluster, "lab-node-2", **{"NVIDIA_A10-12Q": None})
    done = lab("step", "6")
    assert done.code == 3
    assert re.findall(r"^  missing: .*(nvidia\S+)", done.err, re.MULTILINE) == [
        "nvidia.com/NVIDIA_A10-12Q"
    ]
    assert "hint: gpuwl run --from 3 --to 3\n" in done.err


def test_a_part_of_the_run_needs_only_what_comes_before_it(lab: Lab) -> None:
    done = lab("run", "--from", "4", "--to", "6")
    assert done.code == 3
    assert "job-container" not in done.err  # step 4 itself makes it


def test_a_precondition_that_is_lost_on_the_way_leaves_the_files_of_before(
    lab: Lab, cluster: Cluster
) -> None:
    lab.run_all()
    before = lab.contents()
    labels = {"nvidia.com/gpu.workload.config": None}
    cluster.merge_patch(paths.node("lab-node-1"), {"metadata": {"labels": labels}})
    done = lab("step", "7")
    assert done.code == 3
    assert "workload labels" in done.err
    assert lab.contents() == before


def test_a_pod_that_only_looks_placed_is_none(lab: Lab, cluster: Cluster) -> None:
    lab("run", "--to", "3")
    limits = {"limits": {"nvidia.com/gpu": 1}}
    make_pod(cluster, "job-container", resources=limits, nodeName="lab-node-0")
    done = lab("step", "6", "--yes")
    assert done.code == 3
    assert "missing: Pod job-container" in done.err
