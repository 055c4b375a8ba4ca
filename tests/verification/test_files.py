"""The rules of the lab's text files, the operand table and the node dump, against files on disk."""

from pathlib import Path

import pytest

from gpuwl.k8s import dump as k8s_dump
from gpuwl.lab import report
from gpuwl.lab.artifacts import Artifacts
from gpuwl.steps import s2_operands
from gpuwl.verification import dump, files, operands
from gpuwl.verification.findings import Difference, Finding, first_few, shown

OUT = "out/01-nodes.txt"


@pytest.fixture
def artifacts(tmp_path: Path) -> Artifacts:
    return Artifacts(tmp_path)


def texts(findings: object) -> list[str]:
    assert not isinstance(findings, str)
    found: list[Finding] = list(findings)  # type: ignore[call-overload]
    return [one.found for one in found if isinstance(one, Difference)]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"a b\nc d\n", []),
        (b"a b\nc d", ["none"]),
        (b"a b\nc d\n\n", ["several"]),
        (b"a b\r\nc d\r\n", ["blanks or carriage returns at the end of line 1, 2"]),
        (b"a b \nc d\n", ["blanks or carriage returns at the end of line 1"]),
        (b"\xef\xbb\xbfa b\nc d\n", ["a byte order mark"]),
        (b"c d\na b\n", ["c d, a b"]),
        (b"a b\n", ["no line"]),
        (b"a b\nc d\ne f\n", ["e f"]),
        (b"a b\n\x1b[2Jc d\n", ["\\x1b[2Jc d"]),
        (b"", ["none", "an empty line", "no line"]),
    ],
)
def test_a_text_file_is_compared_line_by_line(
    artifacts: Artifacts, data: bytes, found: list[str]
) -> None:
    artifacts.write(OUT, data)
    assert texts(files.compare(artifacts, OUT, "a b\nc d\n")) == found


def test_a_file_in_another_encoding_says_where(artifacts: Artifacts) -> None:
    artifacts.write(OUT, "a b\nc d\n".encode("utf-16"))
    assert texts(files.follows_rules(artifacts, OUT)) == ["invalid start byte at byte 0"]


def test_a_missing_file_is_a_difference(artifacts: Artifacts) -> None:
    assert texts(files.compare(artifacts, OUT, "a\n")) == ["no such file"]


def test_a_folder_in_place_of_a_file_is_no_file(artifacts: Artifacts) -> None:
    artifacts.path(OUT).mkdir(parents=True)
    assert texts(files.compare(artifacts, OUT, "a\n")) == ["no such file"]


LINES = s2_operands.render().splitlines()


def table(artifacts: Artifacts, lines: list[str]) -> list[str]:
    artifacts.write(s2_operands.OUTPUT, report.lines(lines))
    return sorted(texts(operands.differences(artifacts)))


def test_operands_and_lines_stand_in_any_order(artifacts: Artifacts) -> None:
    reordered = []
    for line in reversed(LINES):
        key, _, value = line.partition("=")
        reordered.append(f"{key}={','.join(reversed(value.split(',')))}")
    assert table(artifacts, LINES) == table(artifacts, reordered) == []


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (LINES[1:], "no such line"),
        ([*LINES, "more=x"], "also more"),
        ([*LINES, LINES[0]], "2 lines"),
        ([LINES[0] + ",device-plugin", *LINES[1:]], LINES[0].partition("=")[2] + ",device-plugin"),
        ([*LINES[:3], "NO_LABEL=vm-vgpu", LINES[4]], "vm-vgpu"),
        ([*LINES[:4], "ENABLE_FLAG="], "nothing"),
        ([*LINES, "words"], "also words"),
    ],
)
def test_a_wrong_table_says_what_is_wrong(
    artifacts: Artifacts, lines: list[str], found: str
) -> None:
    assert table(artifacts, lines) == [found]


def node(name: str, **status: dict[str, str]) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"a": "b"}, "resourceVersion": "7"},
        "status": {"allocatable": {"cpu": "8"}, "capacity": {"cpu": "8"}, **status},
    }


def listing(*nodes: object, **more: object) -> dict[str, object]:
    return {"apiVersion": "v1", "items": list(nodes), "kind": "List", **more}


def compared(document: dict[str, object], *there: object) -> list[str]:
    data = k8s_dump.go_json(document).encode()
    return [one.what for one in dump.differences(data, listing(*there))]


def test_a_dump_may_be_older_in_what_the_server_keeps_for_itself() -> None:
    now = node("a")
    now["metadata"] = {"name": "a", "labels": {"a": "b"}, "resourceVersion": "9"}
    now["status"] = {**now["status"], "conditions": [{"type": "Ready"}]}  # type: ignore[dict-item]
    assert compared(listing(node("a")), now) == []


@pytest.mark.parametrize(
    ("document", "what"),
    [
        (listing(), "out/nodes.json, node a"),
        (listing(node("a"), node("b")), "out/nodes.json, node b"),
        (listing(node("a"), node("a")), "out/nodes.json, node a"),
        (
            listing(node("a", allocatable={"cpu": "9"})),
            "out/nodes.json, node a, status.allocatable",
        ),
        (listing(node("a", capacity={})), "out/nodes.json, node a, status.capacity"),
        ({**listing(node("a")), "kind": "NodeList"}, "out/nodes.json, kind"),
    ],
)
def test_a_dump_of_other_nodes_is_told(document: dict[str, object], what: str) -> None:
    assert compared(document, node("a")) == [what]


def test_what_stands_around_the_nodes_is_compared() -> None:
    found = compared(listing(node("a"), apiVersion="v2", more=1), node("a"))
    assert found == ["out/nodes.json, apiVersion", "out/nodes.json, more"]


def test_the_nodes_stand_in_kubectl_s_order() -> None:
    found = compared(listing(node("b"), node("a")), node("a"), node("b"))
    assert found == ["out/nodes.json, order of the nodes"]


def test_a_node_that_has_not_changed_since_is_told_in_full() -> None:
    now = {**node("a"), "spec": {"taints": [{"key": "x"}]}}
    told: dict[str, object] = {
        **node("a", conditions={"a": "b"}),
        "spec": {"unschedulable": True},
        "x": 1,
    }
    assert compared(listing(told), now) == [
        f"out/nodes.json, node a, {what}"
        for what in ("spec.taints", "spec.unschedulable", "status.conditions", "x")
    ]


def test_a_very_deep_value_is_survived() -> None:
    deep = (
        b'{"apiVersion": "v1", "items": [], "kind": "List", "x": ' + b"[" * 800 + b"]" * 800 + b"}"
    )
    assert "out/nodes.json, x" in [one.what for one in dump.differences(deep, listing())]


def test_an_item_of_another_version_is_no_node() -> None:
    found = compared(listing({**node("a"), "apiVersion": "v2"}), node("a"))
    assert found == ["out/nodes.json, items", "out/nodes.json, node a, apiVersion"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        b'{"items": {}}',
        b"\xff\xfe{\x00}\x00",
        b"[" * 100_000,
        b"9" * 5000,
        b"null",
    ],
    ids=["empty", "array", "cut off", "items no list", "UTF-16", "deep", "number", "null"],
)
def test_what_is_no_dump_is_said(data: bytes) -> None:
    (found,) = dump.differences(data, listing(node("a")))
    assert found.expected.startswith("a List in JSON")


@pytest.mark.parametrize(
    "item",
    [None, 1, "x", [], {}, {"metadata": None}, {"metadata": {"name": 1}}, {"metadata": {"name": ""}},
     {"kind": "Node", "metadata": {"name": "a", "labels": []}, "status": []},
     {"kind": "Node", "metadata": {"name": "\ud800\n"}, "status": {"capacity": 1}}],
)  # fmt: skip
def test_strange_items_are_survived(item: object) -> None:
    data = k8s_dump.go_json(listing(item)).encode(errors="surrogatepass")
    found = list(dump.differences(data, listing(node("a"))))
    assert found
    assert all(one.what.isprintable() and one.found.isprintable() for one in found)


def test_another_rendering_is_not_what_kubectl_prints() -> None:
    data = k8s_dump.go_json(listing(node("a"))).replace("    ", "  ").encode()
    (found,) = dump.differences(data, listing(node("a")))
    assert found.what == "out/nodes.json, form"


def test_what_is_shown_is_one_printable_line() -> None:
    assert shown("a\x1b[31m\nb\u202e한글\ud800") == "a\\x1b[31m\\nb\\u202e한글\\ud800"
    assert len(shown("x" * 10_000)) < 500


def test_many_differences_are_counted() -> None:
    many = [Difference(str(number), "a", "b") for number in range(50)]
    told = list(first_few(many, "all", most=3))
    assert [one.what for one in told] == ["0", "1", "2", "all"]
    assert told[-1].found == "47 more differences"
