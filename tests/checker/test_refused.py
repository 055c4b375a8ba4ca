"""Everything that is not a dump of nodes: exit 2, one line that says what it is, no verdict."""

import bz2
import gzip
import json
import lzma
import os
import stat
import subprocess
from pathlib import Path

import pytest
from tests.checker.support import (
    ENVIRONMENT,
    SCRIPT,
    Json,
    dump,
    gpus,
    node,
    run_main,
    run_script,
)

GOOD = node("good", "container", gpus(gpu="4"))
BAD = node("bad", "vm-vgpu", gpus(gpu="4"))
SIZE, LINES = len(dump(BAD)), dump(BAD).count(b"\n") + 1
YAML = "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Object\n  x: |\n{\n"
FORBIDDEN = 'nodes is forbidden: User "bob" cannot list resource "nodes"'
KLOG = b"E0216 12:00:00.0 410 memcache.go:287] not available\n"


def assert_refused(data: bytes, *words: str) -> None:
    result = run_main(data)
    assert (result.code, result.out) == (2, "")
    assert result.err.count("\n") == 1
    assert result.err.isascii()
    for word in words:
        assert word in result.err


def encoded(document: Json) -> bytes:
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty; make it with: kubectl get nodes -o json"),
        (b" \r\n\t\n", "nothing but white space"),
        (b"\xef\xbb\xbf", "nothing but white space"),
        (YAML.encode(), "is YAML"),
        (b"---\n" + YAML.encode(), "is YAML"),
        (b"Name:    gpu-07\nRoles: worker\n", "`kubectl describe` text"),
        (b"NAME    STATUS   ROLES\nn1 Ready worker\n", "table of `kubectl get nodes`"),
        (b"<!DOCTYPE html><html>{}</html>", "HTML"),
        (b"No resources found\n", "found nothing"),
        (b"error: You must be logged in to the server (Unauthorized)\n", "logged in to the server"),
        (f"Error from server (Forbidden): {FORBIDDEN}\n".encode(), FORBIDDEN),
        (KLOG * 2 + dump(BAD), "has 2 lines before the JSON, the first: E0216 12:00:00.0 410"),
        (b"[WARN] slow\n" + dump(BAD), "has 1 line before the JSON, the first: [WARN] slow"),
        (b"2026-01-01 10:00 warming up\n" + dump(BAD), "has 1 line before the JSON"),
        (b"$ kubectl get nodes -o json\n" + dump(BAD), "2>errors.txt"),
        (b"true story\n", "begins with: true story"),
        (b"hello\n", "begins with: hello"),
        (b"\x0c" + dump(BAD), r"begins with: \x0c{"),
        (b"\xc2\xa0" + dump(BAD), r"begins with: \xa0{"),
        (b"\xef\xbb\xbf" * 2 + dump(BAD), r"begins with: \ufeff{"),
        (b"\xc2\x85", r"begins with: \x85"),
        (gzip.compress(dump(BAD)), "is gzip-compressed; gunzip -c FILE | check-config.sh -"),
        (bz2.compress(dump(BAD)), "is bzip2-compressed"),
        (lzma.compress(dump(BAD)), "is xz-compressed"),
        (b"k8s\0\n\x0c\n\x02v1", "protobuf"),
        (b"PK\x03\x04....", "zip archive"),
        (b"\0" * 5000, "binary"),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\x03\0\xff", "binary"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x03", "binary"),
        (dump(GOOD | {"x": "caf@"}).replace(b"@", b"\xe9"), "is not valid UTF-8"),
        (b"[1]", "is JSON, but a list and not nodes"),
        (b"[{}, 1]", "has an item [0] that has no metadata.name"),
        (encoded([BAD, {"kind": "Status", "message": FORBIDDEN}]), "item [1] that is a Status"),
        (encoded([{"kind": "Pod"}]), "is a list without nodes: 1 of kind Pod"),
        (encoded([BAD, {"kind": "List"}]), "has an item [1] that is a List without items"),
        (b'"nodes"', "a string and not nodes"),
        (b"12", "a number and not nodes"),
        (b"true", "true or false and not nodes"),
        (b"null", "null and not nodes"),
        (b"{}", "without kind and without items"),
        (b'{"metadata": {"name": "n"}}', "without kind and without items"),
        (encoded({"kind": "Status", "message": FORBIDDEN}), f"request: {FORBIDDEN}"),
        (encoded({"kind": "Status"}), "is a Status object"),
        (encoded({"kind": "EventList", "items": [BAD]}), "is an EventList object"),
        (encoded({"items": [BAD], "kind": "PodList"}), "is a PodList object"),
        (encoded({"items": [{}], "kind": "PodList"}), "is a PodList object"),
        (encoded({"kind": "Pod"}), "is a Pod object"),
        (encoded({"kind": 5, "items": []}), "kind that is a number; make it with"),
        (encoded({"kind": ["List"], "items": []}), "kind that is a list"),
        (encoded({"kind": "Node", "apiVersion": "longhorn.io/v1"}), "is a Node object"),
        (dump({"kind": "Pod"}, {"kind": "NodeClaim"}), "without nodes: 2 of kind Pod"),
        (dump(BAD | {"apiVersion": "longhorn.io/v1"}), "without nodes"),
        (encoded({"kind": "List"}), "is a List without items; make it with"),
        (encoded({"items": None}), "items that are null"),
        (encoded({"items": {"a": BAD}}), "items that are an object"),
        (encoded({"items": "x", "kind": "List"}), "items that are a string"),
    ],
)
def test_says_what_it_is(data: bytes, words: str) -> None:
    assert_refused(data, words)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            dump(BAD) + dump(BAD),
            f"several JSON documents, the second at byte {SIZE + 1} (line {LINES})",
        ),
        (
            encoded(BAD) + b"\n" + encoded(BAD),
            f"several JSON documents, the second at byte {len(encoded(BAD)) + 2} (line 2)",
        ),
        (
            dump(BAD) + b"\nW0216 12:00 warning\n",
            f"text behind the JSON at byte {SIZE + 2} (line {LINES + 1}): W0216 12:00 warning; remove it",
        ),
        (dump(BAD) + b"\0", rf"text behind the JSON at byte {SIZE + 1} (line {LINES}): \x00"),
        (b'{"items": [], }', "byte 15 (line 1)"),
        (b'{"items": [],\n x}', "byte 16 (line 2)"),
        (b'{"items": [] "kind": "List"}', "expecting ',' or '}'"),
        (b'{"items": [1 2]}', "expecting ',' or ']'"),
        (b'{"items": [,]}', "expecting value"),
        (b'{"items": [{}, ]}', "expecting value"),
        (b'{"items" []}', "expecting ':'"),
        (b"{'items': []}", """expecting '"'"""),
        (b'{"a": NaN, "items": []}', "the constant NaN is not JSON"),
        (b'{"a": [-Infinity], "items": []}', "the constant -Infinity is not JSON"),
        (b'{"a": 01, "items": []}', "expecting ',' or '}'"),
        (b'{"a": +1, "items": []}', "expecting value"),
        (b'{"a": .5, "items": []}', "expecting value"),
        (b'{"a": tru, "items": []}', "expecting value"),
        (b'{"a": "\x01", "items": []}', "invalid control character"),
        (b'{"a": "two\nlines", "items": []}', "invalid control character"),
        (b'{"a": "\\x", "items": []}', "invalid \\escape, found"),
        (b'{"a": "\\u12g4", "items": []}', "invalid \\uxxxx escape"),
        (b'{"a": 1, "items": [] // none\n}', "expecting ',' or '}'"),
        (b'{"items": [\xc2\xa0]}', "expecting value"),
        ('{"items": [\n"\ub178\ub4dc" x]}'.encode(), "byte 22 (line 2)"),
    ],
)
def test_says_where_it_is_not_json(data: bytes, words: str) -> None:
    result = run_main(data)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert words.lower() in result.err.lower()


@pytest.mark.parametrize("indent", [None, 4])
def test_cut_off_anywhere_gives_no_verdict(indent: int | None) -> None:
    document = {"items": [BAD, GOOD | {"n": [-1.5e3, True, None, "\u00e9\n"]}], "kind": "List"}
    data = json.dumps(document, indent=indent).encode()
    for end in range(1, len(data)):
        result = run_main(data[:end])
        assert (result.code, result.out) == (2, "")
        assert f"cut off: it ends at byte {end} " in result.err, data[:end][-30:]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_cut_off_within_a_character(encoding: str) -> None:
    text = json.dumps({"items": [BAD], "note": "\U0001f600"}, ensure_ascii=False)
    data = text.encode(encoding)
    for back in range(1, 12):
        assert_refused(data[:-back], f"cut off: it ends at byte {len(data) - back} ")


@pytest.mark.parametrize(
    ("item", "words"),
    [
        ({}, "has no metadata.name"),
        ({"metadata": None}, "has no metadata.name"),
        ({"metadata": {"name": ""}}, "has no metadata.name"),
        ({"metadata": {"name": None}}, "has no metadata.name"),
        ({"metadata": {"name": 5}}, "has no metadata.name"),
        ({"metadata": {"name": ["n"]}}, "has no metadata.name"),
        ({"metadata": []}, "has a field metadata that is a list"),
        ({"metadata": {"name": "n", "labels": ["x"]}}, "has a field labels that is a list"),
        (BAD | {"status": "fine"}, "has a field status that is a string"),
        (BAD | {"status": {"allocatable": 5}}, "has a field allocatable that is a number"),
        (BAD | {"status": {"allocatable": []}}, "has a field allocatable that is a list"),
        (BAD | {"status": {"capacity": True}}, "has a field capacity that is true or false"),
        (BAD | {"kind": 7}, "has a kind that is a number"),
        (BAD | {"kind": {}}, "has a kind that is an object"),
        (None, "is null and not a node"),
        (5, "is a number and not a node"),
        ("n", "is a string and not a node"),
        (False, "is true or false and not a node"),
    ],
)
def test_what_is_no_node_is_named_with_its_place(item: Json, words: str) -> None:
    assert_refused(dump(BAD, GOOD, item, BAD, {}), f"has an item .items[2] that {words}")


def test_a_single_node_without_a_name() -> None:
    assert_refused(encoded(GOOD | {"metadata": {}}), "standard input has no metadata.name")


@pytest.mark.parametrize("levels", [20_000, 200_000])
def test_nesting_deeper_than_any_node(levels: int) -> None:
    words = "nested deeper than Python reads; no node is that deep"
    assert_refused(b'{"items":' + b"[" * levels, words)
    assert_refused(b'{"a":' * levels, words)
    assert_refused(b"[" * levels, words)
    assert_refused(b"[" * levels + b"]" * levels, words)
    assert_refused(b'{"items":[' + b'{"a":' * levels + b"1" + b"}" * levels + b"]}", words)


class TestFiles:
    """Paths that cannot be read, through the script."""

    def assert_refused(self, path: Path | str, *words: str) -> None:
        result = run_script(path)
        assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
        for word in words:
            assert word in result.err

    def test_missing(self, tmp_path: Path) -> None:
        words = ("nodes.json cannot be read: No such file", "make it with: kubectl get nodes")
        self.assert_refused(tmp_path / "nodes.json", *words)

    def test_directory(self, tmp_path: Path) -> None:
        self.assert_refused(tmp_path, "Is a directory")

    def test_empty_name(self) -> None:
        self.assert_refused("", 'check-config: "" cannot be read: No such file')

    def test_unreadable(self, tmp_path: Path) -> None:
        path = tmp_path / "nodes.json"
        path.write_bytes(dump(GOOD))
        path.chmod(0)
        if not path.stat().st_mode & stat.S_IRUSR and _may_read(path):
            pytest.skip("this user may read everything")
        self.assert_refused(path, "Permission denied")

    def test_pipe_that_does_not_wait(self) -> None:
        """An empty read would be the end; one that would have to wait is not."""
        reader, writer = os.pipe()
        os.set_blocking(reader, False)
        with os.fdopen(reader) as stdin, os.fdopen(writer, "w"):
            done = subprocess.run(
                [SCRIPT, "-"],
                stdin=stdin,
                capture_output=True,
                text=True,
                env=ENVIRONMENT,
                check=False,
            )
        assert (done.returncode, done.stdout) == (2, "")
        assert "standard input does not wait for its data; pipe it: cat |" in done.stderr

    def test_read_error_in_the_middle(self) -> None:
        self.assert_refused("/proc/self/mem", "cannot be read: Input/output error")

    def test_name_that_would_forge_a_line(self, tmp_path: Path) -> None:
        self.assert_refused(tmp_path / "a\nOK=1\u202e", r"a\x0aOK=1")


def _may_read(path: Path) -> bool:
    try:
        path.read_bytes()
    except PermissionError:
        return False
    return True
