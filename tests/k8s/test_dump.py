"""Streaming a dump of any kind: every form that people have, flat memory, errors in plain words."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpuwl.errors import InputError
from gpuwl.k8s import dump
from gpuwl.k8s.objects import Object

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {}, "status": {}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}
SLICE = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}}


def bare(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key not in ("kind", "apiVersion")}


def streamed(path: Path, document: object, *kinds: str) -> tuple[list[tuple[str, str]], Any]:
    path.write_text(json.dumps(document))
    found: list[tuple[str, str]] = []
    seen = dump.stream(path, lambda item, at: found.append((dump.full_kind(item), at)), kinds)
    return found, seen


@pytest.mark.parametrize(
    ("document", "found"),
    [
        ({"items": [POD, NODE], "kind": "List"}, [("Pod", ".items[0]"), ("Node", ".items[1]")]),
        ({"kind": "PodList", "apiVersion": "v1", "items": [bare(POD)]}, [("Pod", ".items[0]")]),
        ({"items": [bare(POD)], "kind": "PodList"}, [("Pod", ".items[0]")]),
        ({"items": [bare(NODE), bare(POD)]}, [("Node", ".items[0]"), ("Pod", ".items[1]")]),
        ([{"items": [POD]}, NODE], [("Pod", "[0].items[0]"), ("Node", "[1]")]),
        ({"items": [{"items": [NODE], "kind": "List"}]}, [("Node", ".items[0].items[0]")]),
        (POD, [("Pod", "")]),
        (SLICE, [("ResourceSlice.resource.k8s.io", "")]),
        (
            {"kind": "ResourceSliceList", "apiVersion": "resource.k8s.io/v1", "items": [bare(SLICE)]},
            [("ResourceSlice.resource.k8s.io", ".items[0]")],
        ),
        ({"items": [], "kind": "PodList"}, []),
        ([], []),
    ],
    ids=range(11),
)  # fmt: skip
def test_every_form_is_read(tmp_path: Path, document: object, found: list[tuple[str, str]]) -> None:
    assert streamed(tmp_path / "dump.json", document)[0] == found


def test_other_kinds_are_passed_over_and_counted(tmp_path: Path) -> None:
    other = NODE | {"apiVersion": "longhorn.io/v1beta2"}
    found, seen = streamed(tmp_path / "d", {"items": [POD, other, NODE, POD]}, "Node")
    assert found == [("Node", ".items[2]")]
    assert seen == {"Pod": 2, "Node": 1, "Node.longhorn.io": 1}


def test_numbers_come_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(POD).replace('"containers": []', '"priority": 1e400, "n": 20'))
    taken: list[Object] = []
    dump.stream(path, lambda item, _: taken.append(item))
    assert taken[0]["spec"] == {"priority": "1e400", "n": "20"}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"items": [POD]}, "is a dump of Pod, not of Node"),
        ({"items": [], "kind": "PodList"}, "is a dump of Pod, not of Node"),
        ({"items": [bare(NODE)], "kind": "PodList"}, "is a PodList that says so only behind"),
        ({"kind": "Node", "items": [], "metadata": {"name": "n"}}, "in an object that is no list"),
        ({"kind": "Status", "message": "no"}, "is a Status object"),
        ({"items": [NODE], "metadata": {"continue": "x", "remainingItemCount": 3}}, "3 more items"),
        ({"items": [NODE, {"metadata": {}}]}, "has an item .items[1] that has no metadata.name"),
        ({"items": [NODE | {"spec": []}]}, "has a field spec that is a list"),
        (
            {"items": [NODE | {"metadata": {"name": "n", "labels": 5}}]},
            "labels that is a number",
        ),
        ({"items": [NODE | {"status": {"capacity": "x"}}]}, "capacity that is a string"),
        ({"items": [5]}, "is a number and not an object"),
        ({"a": 1}, "without kind and without items"),
    ],
    ids=range(12),
)
def test_what_is_refused(tmp_path: Path, document: object, words: str) -> None:
    with pytest.raises(InputError) as refused:
        streamed(tmp_path / "dump.json", document, "Node")
    assert words in refused.value.message


def test_a_list_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_text('{"items": [], "items": []}')
    with pytest.raises(InputError, match="key items twice"):
        dump.stream(path, lambda item, place: None)


def test_the_hint_makes_the_file_that_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "pods.json"
    path.write_text("kind: List\n")
    with pytest.raises(InputError) as refused:
        dump.stream(path, lambda item, place: None, make_it="kubectl get pods -A -o json > p.json")
    assert refused.value.hint == "make it with: kubectl get pods -A -o json > p.json"


def test_standard_input_is_read_and_memory_stays_flat(tmp_path: Path) -> None:
    """Sixty megabytes of Pods through a process of its own; it tells its peak."""
    program = (
        "import resource, sys\n"
        "from gpuwl.k8s import dump\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "seen = dump.stream(dump.STANDARD_INPUT, lambda item, place: None, ['Pod'])\n"
        "print(seen['Pod'], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    item = json.dumps(POD | {"status": {"message": "x" * 6000}})
    path = tmp_path / "pods.json"
    path.write_text('{"items": [' + ",".join([item] * 10_000) + '], "kind": "List"}')
    with path.open("rb") as stdin:
        printed = subprocess.check_output(
            [sys.executable, "-c", program], stdin=stdin, env=os.environ
        )
    count, growth = map(int, printed.split())
    assert count == 10_000
    assert growth < 8 << 10  # KiB
