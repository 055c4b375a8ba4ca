"""Rendering: text from plain data, to the byte."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwl.k8s import dump
from gpuwl.lab import report

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
VALUES = st.recursive(
    NAMES | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=10,
)


def test_rows_are_sorted_by_the_first_word() -> None:
    table = [("b", "1"), ("a", "2"), ("b-0", "3"), ("B", "4")]
    assert report.rows(table) == "B 4\na 2\nb 1\nb-0 3\n"


def test_pairs_keep_their_order() -> None:
    assert report.pairs({"PHASE": "Pending", "NODE": "none"}) == "PHASE=Pending\nNODE=none\n"


def test_no_line_ends_in_a_blank() -> None:
    assert report.lines(["a ", "b\t", "", "MESSAGE="]) == "a\nb\n\nMESSAGE=\n"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("one\ntwo", "one two"),
        ("one\r\ntwo\rthree", "one two three"),
        ("one\u2028two\x85three\x0bfour", "one two three four"),
        (" spaced  out \n", "spaced  out"),
        ("", ""),
    ],
)
def test_a_message_becomes_one_line(text: str, line: str) -> None:
    assert report.one_line(text) == line


@given(NAMES)
def test_one_line_is_one_line_whatever_it_was(text: str) -> None:
    assert len(report.one_line(text).splitlines()) <= 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("<&>", r'"\u003c\u0026\u003e"'),
        ("\u2028\u2029", r'"\u2028\u2029"'),
        ("한국어", '"한국어"'),
        ("\U0001f600", '"\U0001f600"'),
        ('"\\/', r'"\"\\/"'),
        ("\b\f\n\r\t", r'"\b\f\n\r\t"'),
        ("\x00\x1b\x1f", r'"\u0000\u001b\u001f"'),
        ("\x7f\x80\xa0\ufeff\ufffd", '"\x7f\x80\xa0\ufeff\ufffd"'),
        ("'", '"\'"'),
        ([], "[]"),
        ({}, "{}"),
        ({"b": 1, "a": None, "B": True}, '{\n    "B": true,\n    "a": null,\n    "b": 1\n}'),
        ({"<": [1]}, '{\n    "\\u003c": [\n        1\n    ]\n}'),
        ({"\U0001f600": 1, "\uffff": 2}, '{\n    "\uffff": 2,\n    "\U0001f600": 1\n}'),
    ],
    ids=range(14),
)
def test_a_value_as_go_prints_it(value: Any, text: str) -> None:
    """The texts are what Go 1.26 printed for json.MarshalIndent(value, "", "    ")."""
    assert dump.go_json(value) == text + "\n"


@given(VALUES)
def test_what_is_printed_reads_back_and_holds_no_raw_markup(value: Any) -> None:
    text = dump.go_json(value)
    assert json.loads(text) == value
    assert not set(text) & set("<>&\u2028\u2029")


NODE = {
    "metadata": {"name": "a", "managedFields": [{"manager": "x"}], "uid": "1"},
    "spec": {},
    "status": {"allocatable": {"cpu": "1"}},
}


def node_list(**more: Any) -> bytes:
    answer = {"kind": "NodeList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, **more}
    return json.dumps(answer).encode()


def test_a_node_list_becomes_the_list_that_kubectl_prints() -> None:
    assert dump.kubectl_json(node_list(items=[NODE])) == (
        "{\n"
        '    "apiVersion": "v1",\n'
        '    "items": [\n'
        "        {\n"
        '            "apiVersion": "v1",\n'
        '            "kind": "Node",\n'
        '            "metadata": {\n'
        '                "name": "a",\n'
        '                "uid": "1"\n'
        "            },\n"
        '            "spec": {},\n'
        '            "status": {\n'
        '                "allocatable": {\n'
        '                    "cpu": "1"\n'
        "                }\n"
        "            }\n"
        "        }\n"
        "    ],\n"
        '    "kind": "List",\n'
        '    "metadata": {\n'
        '        "resourceVersion": ""\n'
        "    }\n"
        "}\n"
    )


@pytest.mark.parametrize("items", [[], None])
def test_a_cluster_without_nodes(items: list[Any] | None) -> None:
    assert '    "items": [],\n' in dump.kubectl_json(node_list(items=items))


def test_the_order_of_the_nodes_is_the_servers() -> None:
    nodes = [{"metadata": {"name": name}} for name in ("b", "a", "c")]
    printed = json.loads(dump.kubectl_json(node_list(items=nodes)))
    assert [node["metadata"]["name"] for node in printed["items"]] == ["b", "a", "c"]


@pytest.mark.parametrize(
    "answer", [b"", b"{}", b"[]", b"null", b'{"kind": "PodList"}', b"<html>", b"\xff"]
)
def test_what_is_no_node_list_is_refused(answer: bytes) -> None:
    with pytest.raises(ValueError, match=r"NodeList|Expecting value|decode"):
        dump.kubectl_json(answer)
