"""The lab's text files, the operand table and the node dump, against files on disk."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from gpuwl.findings import Finding, shown
from gpuwl.k8s import dump as k8s_dump
from gpuwl.lab import report
from gpuwl.lab.artifacts import Artifacts
from gpuwl.lab.names import GPU, LABEL_KEY, LabNode
from gpuwl.steps import s2_operands
from gpuwl.verification import dump, files, operands
from gpuwl.verification.outcome import Told, first_few

OUT = "out/01-nodes.txt"


@pytest.fixture
def artifacts(tmp_path: Path) -> Artifacts:
    return Artifacts(tmp_path)


def texts(told: Iterable[Told]) -> list[str]:
    return [str(one.found) for one in told if isinstance(one, Finding)]


def lines_of(artifacts: Artifacts) -> list[str]:
    return texts(files.compare(artifacts, "labels.file", OUT, ["a b", "c d"]))


@pytest.mark.parametrize(
    "data",
    [
        b"a b\nc d\n",
        b"a b\nc d",
        b"a b\nc d\n\n\n",
        b"a b\r\nc d\r\n",
        b"a b \nc d\t\n",
        b"\xef\xbb\xbfa b\nc d\n",
        b"a      b\nc\td\n",
    ],
    ids=["exact", "no newline", "several", "CRLF", "blanks behind", "BOM", "columns"],
)
def test_the_form_that_tools_write_is_right(artifacts: Artifacts, data: bytes) -> None:
    artifacts.write(OUT, data)
    assert lines_of(artifacts) == []


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"c d\na b\n", ["c d | a b"]),
        (b"a b\n", ["no line"]),
        (b"a b\nc d\ne f\n", ["e f"]),
        (b"NAME USE\na b\nc d\n", ["NAME USE", "a b", "c d"]),
        (b"a b\n\nc d\n", ["an empty line", "c d"]),
        (b"a b\n\x1b[2Jc d\n", ["\\x1b[2Jc d"]),
        (b"", ["no line", "no line"]),
        ("a b\nc d\n".encode("utf-16"), ["something else at byte 0"]),
    ],
)
def test_a_fact_that_is_wrong_missing_or_elsewhere_is_told(
    artifacts: Artifacts, data: bytes, found: list[str]
) -> None:
    artifacts.write(OUT, data)
    assert lines_of(artifacts) == found


def test_a_missing_file_is_told(artifacts: Artifacts) -> None:
    assert lines_of(artifacts) == ["no such file"]


def test_a_folder_in_place_of_a_file_is_no_file(artifacts: Artifacts) -> None:
    artifacts.path(OUT).mkdir(parents=True)
    assert lines_of(artifacts) == ["no such file"]


LINES = s2_operands.render().splitlines()


def table(artifacts: Artifacts, lines: list[str]) -> list[tuple[str, str]]:
    artifacts.write(s2_operands.OUTPUT, report.lines(lines))
    told = operands.differences(artifacts)
    return [(one.id, str(one.found)) for one in told if isinstance(one, Finding)]


def test_the_operands_of_a_line_stand_in_any_order_with_blanks_or_without(
    artifacts: Artifacts,
) -> None:
    reordered = []
    for line in LINES:
        key, _, value = line.partition("=")
        reordered.append(f"{key}={', '.join(reversed(value.split(',')))}")
    assert table(artifacts, LINES) == table(artifacts, reordered) == []


@pytest.mark.parametrize(
    ("lines", "id_", "found"),
    [
        (LINES[1:], "container", "0 lines"),
        ([*LINES, "more=x"], "file", "more=x"),
        ([*LINES, LINES[0]], "container", "2 lines"),
        ([f"{LINES[0]},dcgm", *LINES[1:]], "container", f"{LINES[0].partition('=')[2]},dcgm"),
        ([*LINES[:3], "NO_LABEL=vm-vgpu", LINES[4]], "no-label", "vm-vgpu"),
        ([*LINES[:4], "ENABLE_FLAG="], "enable-flag", "nothing"),
        ([*LINES, "words"], "file", "words"),
        (
            [LINES[1], LINES[0], *LINES[2:]],
            "file",
            "vm-passthrough | container | vm-vgpu | NO_LABEL | ENABLE_FLAG",
        ),
    ],
)
def test_a_wrong_table_says_what_is_wrong(
    artifacts: Artifacts, lines: list[str], id_: str, found: str
) -> None:
    assert table(artifacts, lines) == [(f"operands.{id_}", found)]


def node(name: str, **status: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"a": "b"}, "resourceVersion": "7"},
        "status": {"allocatable": {"cpu": "8"}, "capacity": {"cpu": "8"}, **status},
    }


def listing(*nodes: object, **more: object) -> dict[str, Any]:
    return {"apiVersion": "v1", "items": list(nodes), "kind": "List", **more}


def compared(document: dict[str, Any], *there: object) -> list[str]:
    return [f"{one.where}: {one.what}" for one in dump.differences(document, listing(*there))]


@pytest.mark.parametrize(
    "form",
    [
        lambda one: {**listing(one), "kind": "NodeList", "metadata": {"resourceVersion": "9"}},
        lambda one: listing({k: v for k, v in one.items() if k not in {"kind", "apiVersion"}}),
        lambda one: {"items": [one]},
        lambda one: listing({**one, "metadata": {**one["metadata"], "managedFields": [{}]}}),
    ],
    ids=["NodeList", "items without kind", "items alone", "managedFields"],
)
def test_the_forms_that_tools_write_are_dumps(form: Any) -> None:
    assert compared(form(node("a")), node("a")) == []


@pytest.mark.parametrize(
    "encode",
    [
        lambda one: k8s_dump.go_json(one).encode(),
        lambda one: json.dumps(one).encode(),
        lambda one: json.dumps(one, indent=2).replace("\n", "\r\n").encode("utf-8-sig"),
    ],
    ids=["kubectl", "raw", "jq with BOM and CRLF"],
)
def test_any_rendering_of_the_json_is_read(encode: Any) -> None:
    assert dump.decoded(encode(listing(node("a")))) == listing(node("a"))


def test_a_dump_may_be_older_in_what_the_server_keeps_for_itself() -> None:
    now = node("a")
    now["metadata"] = {"name": "a", "labels": {"a": "b"}, "resourceVersion": "9"}
    now["status"] = {**now["status"], "conditions": [{"type": "Ready"}]}
    assert compared(listing(node("a")), now) == []


@pytest.mark.parametrize(
    ("document", "told"),
    [
        (listing(), "node a: it is missing from the dump"),
        (listing(node("a"), node("b")), "node b: it is not in the cluster"),
        (listing(node("a"), node("a")), "node a: it stands in the dump more than once"),
        (listing(node("a", allocatable={"cpu": "9"})), "node a: status.allocatable is wrong"),
        (listing(node("a", capacity={})), "node a: status.capacity is wrong"),
        (listing(node("a"), {}), "out/nodes.json: it holds items that are not nodes"),
    ],
)
def test_a_dump_of_other_nodes_is_told(document: dict[str, Any], told: str) -> None:
    assert compared(document, node("a")) == [told]


def test_a_node_that_has_not_changed_since_is_told_in_full() -> None:
    now = {**node("a"), "spec": {"taints": [{"key": "x"}]}}
    told: dict[str, object] = {
        **node("a", conditions={"a": "b"}),
        "spec": {"unschedulable": True},
        "x": 1,
    }
    assert compared(listing(told), now) == [
        f"node a: {what} is wrong"
        for what in ("spec.taints", "spec.unschedulable", "status.conditions", "x")
    ]


LAB_NODE = LabNode("a", "container", GPU, "4")


def lab_node(value: str | None, amount: str) -> dict[str, Any]:
    amounts = {"cpu": "8", GPU: amount}
    made = node("a", allocatable=amounts, capacity=amounts)
    made["metadata"]["labels"] = {LABEL_KEY: value} if value else {}
    return made


def test_the_cluster_s_wrong_value_is_never_what_is_expected() -> None:
    """The dump is right; what the cluster holds now is told of the cluster, and only as found."""
    right, wrong = lab_node("container", "4"), lab_node("vm-gpu", "1")
    assert list(dump.differences(listing(right), listing(wrong), (LAB_NODE,))) == []
    assert list(dump.lab_nodes(listing(right), (LAB_NODE,), "")) == []
    told = list(dump.lab_nodes(listing(wrong), (LAB_NODE,), ""))
    assert [(one.expected, one.found) for one in told] == [
        ("container", "vm-gpu"),
        ("nvidia.com/gpu=4", "nvidia.com/gpu=1"),
        ("nvidia.com/gpu=4", "nvidia.com/gpu=1"),
    ]


def test_a_very_deep_value_is_survived() -> None:
    deep = b'{"items": [], "x": ' + b"[" * 800 + b"]" * 800 + b"}"
    assert dump.decoded(deep) is not None


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{", b"\xff\xfe{\x00}\x00", b"[" * 100_000, b"9" * 5000, b"null"],
    ids=["empty", "array", "cut off", "UTF-16", "deep", "number", "null"],
)
def test_what_is_no_dump_is_none(data: bytes) -> None:
    assert dump.decoded(data) is None


@pytest.mark.parametrize(
    "item",
    [None, 1, "x", [], {}, {"metadata": None}, {"metadata": {"name": 1}}, {"metadata": {"name": ""}},
     {"kind": "Node", "metadata": {"name": "a", "labels": []}, "status": []},
     {"kind": "Node", "metadata": {"name": "\ud800\n"}, "status": {"capacity": 1}}],
)  # fmt: skip
def test_strange_items_are_survived(item: object) -> None:
    found = list(dump.differences(listing(item), listing(node("a"))))
    assert found
    assert all(f"{one.where}{one.what}{one.found}".isprintable() for one in found)


def test_what_is_shown_is_one_printable_line() -> None:
    assert shown("a\x1b[31m\nb\u202e한글\ud800") == "a\\x1b[31m\\nb\\u202e한글\\ud800"
    assert len(shown("x" * 10_000)) < 500


def test_many_findings_are_counted() -> None:
    many = [Finding("x", str(number), "wrong", file="all") for number in range(50)]
    told = list(first_few(many, most=3))
    assert [one.where for one in told] == ["0", "1", "2", "all"]
    assert told[-1].what == "47 more like this"
