"""The shapes, encodings and oddities of dumps that are nodes."""

import codecs
import json

import pytest
from tests.checker.support import Json, chunks_of, dump, gpus, node, run_main

GOOD = node("good", "container", gpus(gpu="4"))
BAD = node("bad", "vm-vgpu", gpus(gpu="4"))
UNLABELLED = node("plain", None, gpus(gpu="0"))


def bare(item: dict[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in item.items() if key not in ("kind", "apiVersion")}


def encoded(document: Json) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    "data",
    [
        dump(GOOD, BAD, UNLABELLED),
        encoded({"kind": "NodeList", "apiVersion": "v1", "items": [bare(GOOD), bare(BAD)]}),
        encoded({"items": [bare(GOOD), bare(BAD)]}),
        encoded({"kind": None, "items": [GOOD | {"kind": None}, BAD | {"kind": ""}]}),
        encoded({"items": [GOOD, BAD], "kind": "", "x": [{"items": 1}]}),
        dump(GOOD, {"kind": "NodeClaim", "metadata": BAD["metadata"]}, BAD, {"kind": "Pod"}),
        dump(GOOD, BAD, BAD | {"apiVersion": "management.cattle.io/v3"}),
    ],
    ids=["List", "NodeList", "no-kind", "null-kind", "empty-kind", "mixed", "other-group"],
)
def test_lists(data: bytes) -> None:
    result = run_main(data)
    assert (result.code, result.lines, result.err) == (1, ["MISMATCH=bad"], "")


def test_single_node() -> None:
    assert run_main(encoded(GOOD)).out == "OK=1\n"
    assert run_main(encoded(BAD)).lines == ["MISMATCH=bad"]
    assert run_main(encoded(UNLABELLED)).out == "OK=0\n"
    last = {key: GOOD[key] for key in ("status", "metadata", "apiVersion", "kind")}
    assert run_main(encoded(last)).out == "OK=1\n"


def test_a_version_that_is_no_string_is_not_looked_into() -> None:
    odd = b'"apiVersion": {"a/b": ["a/b"]}'
    for whole in (dump(GOOD), encoded(GOOD).replace(b'":"', b'": "')):
        assert run_main(whole.replace(b'"apiVersion": "v1"', odd)).out == "OK=1\n"


@pytest.mark.parametrize(
    "data",
    [
        dump(),
        encoded({"items": []}),
        b'{"items": [\n ]}',
        encoded({"kind": "NodeList", "items": None}),
        dump(UNLABELLED),
        dump(node("n", None)),
        dump(GOOD | {"metadata": {"name": "n", "labels": None}}),
        dump(GOOD | {"metadata": {"name": "n"}}),
        dump(
            GOOD | {"metadata": {"name": "n", "labels": {"nvidia.com/gpu.workload.config": None}}}
        ),
    ],
)
def test_no_labelled_node(data: bytes) -> None:
    result = run_main(data)
    assert (result.code, result.out) == (0, "OK=0\n")
    assert result.err.startswith(
        "check-config: warning: standard input holds no node with the label"
    )
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    "status",
    [None, {}, {"allocatable": None}, {"allocatable": None, "capacity": None}, {"capacity": {}}],
)
def test_nulls_advertise_nothing(status: Json) -> None:
    result = run_main(dump(GOOD | {"status": status}))
    assert (result.code, result.lines) == (1, ["MISMATCH=good"])


def test_a_node_without_a_status_advertises_nothing() -> None:
    bare_of_status = {key: value for key, value in GOOD.items() if key != "status"}
    assert run_main(dump(bare_of_status)).lines == ["MISMATCH=good"]


ENCODINGS = {
    "utf-8": b"",
    "utf-8-bom": codecs.BOM_UTF8,
    "utf-16-le": b"",
    "utf-16-be": b"",
    "utf-16-le-bom": codecs.BOM_UTF16_LE,
    "utf-16-be-bom": codecs.BOM_UTF16_BE,
    "utf-32-le": b"",
    "utf-32-be": b"",
    "utf-32-le-bom": codecs.BOM_UTF32_LE,
    "utf-32-be-bom": codecs.BOM_UTF32_BE,
}


@pytest.mark.parametrize("size", [2, 3, 7, 100_000])
@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_encodings(encoding: str, newline: str, size: int) -> None:
    text = json.dumps(
        {"items": [GOOD, BAD], "note": "\ub178\ub4dc \U0001f600"}, indent=2, ensure_ascii=False
    )
    data = text.replace("\n", newline).encode(encoding.removesuffix("-bom"))
    with chunks_of(max(size, 4)):
        result = run_main(ENCODINGS[encoding] + data)
    assert (result.code, result.lines, result.err) == (1, ["MISMATCH=bad"], "")


def test_kind_before_and_behind_the_items() -> None:
    before = b'{"kind": "List", "items": [' + encoded(BAD) + b"]}"
    behind = b'{"items": [' + encoded(BAD) + b'], "kind": "List"}'
    assert run_main(before) == run_main(behind)
    assert run_main(before).code == 1


class TestDuplicateKeys:
    """The last one counts, as for Go, jq and Python."""

    def test_items(self) -> None:
        data = b'{"items": [%s], "items": [%s]}'
        assert run_main(data % (encoded(BAD), encoded(GOOD))).out == "OK=1\n"
        assert run_main(data % (b"5", encoded(BAD))).lines == ["MISMATCH=bad"]
        null = b'{"kind": "List", "items": [%s], "items": null}' % encoded(BAD)
        assert run_main(null).out == "OK=0\n"

    def test_kind(self) -> None:
        data = b'{"kind": "Pod", "items": [%s], "kind": "List"}' % encoded(BAD)
        assert run_main(data).code == 1
        data = b'{"kind": "List", "items": [%s], "kind": "PodList"}' % encoded(BAD)
        assert run_main(data).code == 2

    def test_within_a_node(self) -> None:
        data = encoded(GOOD).replace(
            b'{"nvidia.com/gpu":"4"}', b'{"nvidia.com/gpu":"4","nvidia.com/gpu":"0"}'
        )
        assert run_main(data).code == 1


@pytest.mark.parametrize("levels", [50, 600])
@pytest.mark.parametrize("size", [512, 100_000])
def test_deep_nesting_beside_what_counts(levels: int, size: int) -> None:
    deep = b'[{"k" : [1, ' * (levels // 3) + b"{}" + b' ] , "x":null}]' * (levels // 3)
    item = encoded(BAD).replace(b'"status":{', b'"status":{"deep":' + deep + b",")
    with chunks_of(size):
        result = run_main(b'{"items":[' + item + b"," + encoded(GOOD) + b"]}")
        assert (result.code, result.lines, result.err) == (1, ["MISMATCH=bad"], "")
        result = run_main(item[:-1] + b', "more": ' + deep + b"}")
        assert (result.code, result.lines, result.err) == (1, ["MISMATCH=bad"], "")


PAGE = {"continue": "eyJ2", "remainingItemCount": 12}


@pytest.mark.parametrize(
    "document",
    [
        [GOOD, BAD],
        [bare(GOOD), bare(BAD)],
        [{"items": [GOOD], "kind": "List"}, {"kind": "List", "items": [BAD]}],
        [{"items": [bare(GOOD)]}, {"items": [bare(BAD)]}],
        [{"items": [GOOD], "kind": "List"}, BAD],
        [[GOOD], [[BAD]]],
        {"items": [GOOD, {"items": [BAD], "kind": "List"}], "kind": "List"},
        {"items": [{"items": [{"items": [GOOD, BAD]}], "kind": "NodeList"}, [], {"items": []}]},
        {"items": [GOOD, {"kind": "NodeList", "items": None}, BAD]},
        {"items": [GOOD, {"kind": "PodList", "items": [bare(GOOD)]}, BAD], "kind": "List"},
        [{"items": [bare(BAD)], "kind": "PodList"}, GOOD, BAD],
        [{"items": [], "metadata": {"continue": "", "remainingItemCount": 0}}, GOOD, BAD],
        [GOOD, {"kind": "IPAllowList", "metadata": {"name": "x"}, "items": [GOOD]}, BAD],
    ],
    ids=range(13),
)
@pytest.mark.parametrize("size", [16, 100_000])
def test_lists_in_lists_and_bare_lists(document: Json, size: int) -> None:
    """What `jq -s . a.json b.json` makes is judged as if it were one list."""
    with chunks_of(size):
        result = run_main(encoded(document))
    assert (result.code, result.lines, result.err) == (1, ["MISMATCH=bad"], "")


def test_an_empty_bare_list_is_an_empty_list() -> None:
    assert run_main(b"[]").out == run_main(b" [ ] ").out == "OK=0\n"


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        (PAGE, "12 more items are missing"),
        ({"remainingItemCount": 7}, "7 more"),
        ({"remainingItemCount": "7"}, "7 more"),
        ({"continue": "x"}, "an unknown number of more"),
    ],
    ids=range(4),
)
def test_a_page_of_a_longer_list_gets_no_verdict(metadata: Json, words: str) -> None:
    page = {"kind": "NodeList", "metadata": metadata, "items": [BAD]}
    behind = {"items": [BAD], "metadata": metadata}
    for document in (page, behind, [GOOD, page], {"items": [GOOD, page]}, [[behind]]):
        result = run_main(encoded(document))
        assert (result.code, result.out) == (2, "")
        assert words in result.err
        assert result.err.endswith("; get all with: kubectl get nodes -o json > nodes.json\n")


def test_strings_that_look_like_structure() -> None:
    text = '"]},{\\" [}{ \\\\'
    item = GOOD | {text: [text, {text: text}], "images": [text] * 50}
    for size in (16, 17, 64, 100_000):
        with chunks_of(size):
            assert run_main(dump(item, item, BAD)).lines == ["MISMATCH=bad"]


def test_every_way_to_cut_a_small_dump_into_chunks() -> None:
    numbers = {"a": -1.5e-7, "b": 0, "c": [1234567890123456789, True, False, None, "\ud83d\ude00"]}
    data = dump(GOOD | {"x": numbers}, BAD, n=12345678901, resourceVersion=0)
    expected = run_main(data)
    assert expected.lines == ["MISMATCH=bad"]
    for size in range(4, 200):
        with chunks_of(size):
            assert run_main(data) == expected


def test_one_node_larger_than_many_chunks() -> None:
    images = [{"names": ["x" * 100], "sizeBytes": n} for n in range(20_000)]
    item = GOOD | {"spec": {"images": images}}
    with chunks_of(1024):
        assert run_main(dump(item, BAD)).lines == ["MISMATCH=bad"]
        assert run_main(encoded(item)).out == "OK=1\n"


def test_numbers_of_any_size() -> None:
    huge = b"1" * 20_000
    for amount in (huge, b"1e999", b"0.5e-400", b"-" + huge):
        item = encoded(GOOD).replace(b'"4"', amount)
        assert run_main(b'{"items":[' + item + b"]}").out == "OK=1\n"
    for nothing in (b"0", b"0.0", b"-0", b"0e999999999", b"0E5"):
        item = encoded(GOOD).replace(b'"4"', nothing)
        assert run_main(b'{"items":[' + item + b"]}").code == 1
