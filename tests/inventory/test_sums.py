"""The figures: against an independent implementation, and the rules that every row keeps."""

from dataclasses import asdict
from pathlib import Path

import pytest
from tests.inventory import second_opinion
from tests.inventory.clusters import (
    GPU,
    MODEL,
    NAMES,
    PROFILE,
    container,
    generated,
    node,
    pod,
    read,
)

from gpuwl.errors import InputError
from gpuwl.inventory import selector, sums
from gpuwl.inventory.model import Use


def test_sums_agree_with_an_independent_implementation(tmp_path: Path) -> None:
    for seed in range(150):
        nodes, pods = generated(seed)
        rows = {row.resource: asdict(row) for row in sums.by_resource(read(tmp_path, nodes, pods))}
        for name in NAMES:
            wanted = second_opinion.row(nodes, pods, name)
            if not name.startswith("nvidia.com/"):
                assert name not in rows
            elif name not in rows:
                assert not any(wanted.values()), (seed, name)
            else:
                assert {key: rows[name][key] for key in wanted} == wanted, (seed, name)


def test_no_row_says_that_more_is_used_than_is_there(tmp_path: Path) -> None:
    for seed in range(150, 250):
        found = read(tmp_path, *generated(seed))
        for row in sums.by_resource(found):
            keeps_the_rules(asdict(row))
        for one in sums.by_node(found):
            keeps_the_rules(asdict(one))


def keeps_the_rules(row: dict[str, int]) -> None:
    assert 0 <= row["used"] <= row["advertised"]
    assert row["used"] + row["free"] + row["closed"] == row["advertised"]
    assert row["used"] + row["over"] == row["requested"]


def test_views_add_up_to_the_same(tmp_path: Path) -> None:
    for seed in range(40):
        found = read(tmp_path, *generated(seed))
        by_node = sums.by_node(found)
        for workloads in (True, False):
            holders = sums.by_holder(found, workloads=workloads)
            for row in sums.by_resource(found):
                mine = [one for one in holders if one.resource == row.resource]
                assert sum(one.held for one in mine) == row.requested
                assert sum(one.asked for one in mine) == row.asked
                assert sum(one.waiting for one in mine) == row.waiting
                nodes = [one for one in by_node if one.resource == row.resource]
                assert sum(one.free or 0 for one in nodes) == row.free


def test_without_pods_nothing_is_said_to_be_0(tmp_path: Path) -> None:
    found = read(tmp_path, [node("a", "container", amounts={GPU: "8"})], None)
    row, by_node = sums.by_resource(found)[0], sums.by_node(found)[0]
    assert (row.advertised, row.nodes, by_node.advertised) == (8, 1, 8)
    for unknown in ("requested", "used", "over", "free", "closed"):
        assert getattr(row, unknown) is getattr(by_node, unknown) is None
    assert row.largest is row.waiting is row.asked is row.gated is None


def test_an_amount_that_cannot_be_read_is_unknown(tmp_path: Path) -> None:
    nodes = [node("a", amounts={GPU: "lots"}), node("b", amounts={GPU: "2"})]
    row = sums.by_resource(read(tmp_path, nodes, []))[0]
    assert (row.nodes, row.advertised, row.free, row.largest) == (2, None, None, None)


def test_zero_is_a_row(tmp_path: Path) -> None:
    nodes = [node("a", amounts={GPU: "0", MODEL: "2"})]
    waits = pod("p", container({PROFILE: "1"}))
    rows = {row.resource: row for row in sums.by_resource(read(tmp_path, nodes, [waits]))}
    assert (rows[GPU].nodes, rows[GPU].advertised) == (0, 0)
    assert (rows[PROFILE].nodes, rows[PROFILE].waiting, rows[PROFILE].asked) == (0, 1, 1)


def test_a_node_that_is_over_committed_has_nothing_free(tmp_path: Path) -> None:
    pods = [pod(f"p{n}", container({GPU: "3"}), on="a") for n in range(2)]
    found = read(tmp_path, [node("a", amounts={GPU: "4"})], pods)
    row = sums.by_node(found)[0]
    assert (row.used, row.over, row.requested, row.free) == (4, 2, 6, 0)
    assert "over-committed" in row.marks


def test_uses(tmp_path: Path) -> None:
    names = {
        GPU: Use.CONTAINER,
        "nvidia.com/gpu.shared": Use.SLICE,
        "nvidia.com/mig-1g.10gb.shared": Use.SLICE,
        MODEL: Use.PASSTHROUGH,
        "nvidia.com/26b5": Use.PASSTHROUGH,
        "nvidia.com/pgpu": Use.PASSTHROUGH,
        PROFILE: Use.VGPU,
        "nvidia.com/hostdev": Use.UNKNOWN,
        "nvidia.com/gpumem": Use.UNKNOWN,
        "nvidia.com/nvswitch": Use.UNKNOWN,
    }
    nodes = [node("a", amounts=dict.fromkeys(names, "1"))]
    rows = sums.by_resource(read(tmp_path, nodes, []))
    assert {row.resource: row.use for row in rows} == names
    order = [list(Use).index(row.use) for row in rows]
    assert order == sorted(order)


def test_workloads_are_what_owns_the_pods(tmp_path: Path) -> None:
    def owned(name: str, kind: str, owner: str, **labels: str) -> dict[str, object]:
        owners = [{"kind": "X", "name": "x"}, {"kind": kind, "name": owner, "controller": True}]
        return pod(
            name,
            container({GPU: "1"}),
            on="a",
            metadata={"ownerReferences": owners, "labels": labels},
        )

    pods = [
        owned("web-5d4-a", "ReplicaSet", "web-5d4", **{"pod-template-hash": "5d4"}),
        owned("web-5d4-b", "ReplicaSet", "web-5d4", **{"pod-template-hash": "5d4"}),
        owned("other", "ReplicaSet", "other-abc"),
        owned("virt-launcher-vm-x", "VirtualMachineInstance", "vm"),
        owned("static-a", "Node", "a"),
        pod("alone", container({GPU: "1"}), on="a"),
    ]
    rows = sums.by_holder(read(tmp_path, [node("a", amounts={GPU: "8"})], pods), workloads=True)
    assert {row.workload: (row.pods, row.held) for row in rows} == {
        "Deployment/web": (2, 2),
        "ReplicaSet/other-abc": (1, 1),
        "VirtualMachineInstance/vm": (1, 1),
        "Pod/static-a": (1, 1),
        "Pod/alone": (1, 1),
    }


def test_pods_on_nodes_that_are_not_in_view_are_told_apart(tmp_path: Path) -> None:
    pods = [pod("p", container({GPU: "3"}), on="elsewhere")]
    found = read(tmp_path, [node("a", amounts={GPU: "4"})], pods)
    assert sums.by_resource(found)[0].requested == 0
    assert (found.strays[GPU].pods, found.strays[GPU].slots) == (1, 3)


def test_one_dump_of_both(tmp_path: Path) -> None:
    both = [node("a", amounts={GPU: "4"}), pod("p", container({GPU: "3"}), on="a")]
    row = sums.by_resource(read(tmp_path, both, None))[0]
    assert (row.used, row.free) == (3, 1)


def test_a_node_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the node a is there twice"):
        read(tmp_path, [node("a"), node("a")], [])


@pytest.mark.parametrize(
    ("written", "matching"),
    [
        ("pool=x", "a"),
        ("pool==x", "a"),
        ("pool!=x", "bc"),
        ("pool", "ab"),
        ("!pool", "c"),
        ("pool in (x, z)", "a"),
        ("pool notin (x)", "bc"),
        ("pool,zone=1", "a"),
        ("pool in (x,y),zone!=1", "b"),
    ],
)
def test_selectors(tmp_path: Path, written: str, matching: str) -> None:
    nodes = [
        node("a", amounts={GPU: "1"}, labels={"pool": "x", "zone": "1"}),
        node("b", amounts={GPU: "1"}, labels={"pool": "y"}),
        node("c", amounts={GPU: "1"}),
    ]
    pods = [pod("p", container({GPU: "1"}), on=name) for name in "abc"]
    found = read(tmp_path, nodes, pods, selector.parse(written))
    assert "".join(row.node for row in sums.by_node(found)) == matching
    row = sums.by_resource(found)[0]
    assert (row.advertised, row.used, found.strays) == (len(matching), len(matching), {})


@pytest.mark.parametrize("written", ["", "a=b=c", "a in x", "a,,b", "-a", "a in ("])
def test_what_is_no_selector(written: str) -> None:
    with pytest.raises(InputError, match="is not a label selector"):
        selector.parse(written)
