"""The node dump (step 8): what kubectl prints, of the nodes that the cluster has.

kubectl's form is compared to the byte. A node that has not changed since (same resourceVersion) must be
told in full. Of one that has, only what matters to the lab (names, labels, capacity, allocatable) and
what tells another cluster's nodes of the same name from these (uid) is compared: heartbeats, resource
versions and the like move on without anybody's doing.
"""

import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from gpuwl.k8s import dump as k8s_dump
from gpuwl.k8s.objects import Object
from gpuwl.steps import s8_consistency
from gpuwl.verification import files
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.findings import Difference, Findings, amounts, brief, first_few, shown

DUMP = s8_consistency.DUMP
Parts = dict[tuple[str, str], Any]

LAB_PARTS = (("metadata", "labels"), ("status", "capacity"), ("status", "allocatable"))
"""What the lab is about in a node: compared even where the node has changed since."""


def matches(attempt: Attempt) -> Findings:
    """Check that the dump is one of this cluster, in kubectl's form."""
    data = files.read(attempt.artifacts, DUMP)
    if data is None:
        yield files.missing(DUMP)
    else:
        yield from differences(data, attempt.node_list)


def differences(data: bytes, node_list: Object) -> Iterator[Difference]:
    """Yield what a dump says otherwise than the List that kubectl would print now."""
    document = decoded(data)
    if document is None or not isinstance(document.get("items"), list):
        yield Difference(
            DUMP, "a List in JSON, as kubectl get nodes -o json prints it", _kind(data)
        )
        return
    yield from _head(document, node_list)
    yield from _form(document, data)
    yield from first_few(_nodes(document, node_list), DUMP)


def decoded(data: bytes) -> Object | None:
    """Return a JSON object in UTF-8, None where the data is something else."""
    try:
        document = json.loads(data.decode())
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def nodes_of(document: Object) -> list[Object]:
    """Return those of the items that are nodes with a name."""
    items = document.get("items") or ()
    return [i for i in items if isinstance(i, dict) and isinstance(_part(i, "name"), str)]


def _kind(data: bytes) -> str:
    document = decoded(data)
    if document is None:
        return f"{len(data)} bytes that are no JSON object"
    return f"kind {shown(document.get('kind'))} without a list of items"


def _head(document: Object, node_list: Object) -> Iterator[Difference]:
    """Compare what stands around the items."""
    for key in sorted((document.keys() | node_list.keys()) - {"items"}):
        if document.get(key) != node_list.get(key):
            yield _differs(shown(key), node_list.get(key), document.get(key))


def _form(document: Object, data: bytes) -> Iterator[Difference]:
    kinds = [(item.get("apiVersion"), item.get("kind")) for item in nodes_of(document)]
    others = len(document["items"]) - kinds.count(("v1", "Node"))
    if others:
        found = f"{others} items without a name, or of another kind or version"
        yield Difference(f"{DUMP}, items", "Nodes, each with its apiVersion and kind", found)
    if any(_part(node, "managedFields") for node in nodes_of(document)):
        yield Difference(f"{DUMP}, items", "no managedFields", "managedFields")
    if _printed(document) != data:
        expected = "the bytes of kubectl: four-space indent, sorted keys, Go's escapes"
        yield Difference(f"{DUMP}, form", expected, "another rendering of the same document")


def _printed(document: Object) -> bytes | None:
    with contextlib.suppress(RecursionError):
        return k8s_dump.go_json(document).encode(errors="surrogatepass")
    return None


def _nodes(document: Object, node_list: Object) -> Iterator[Difference]:
    there = {node["metadata"]["name"]: node for node in node_list["items"]}
    found = {str(_part(node, "name")): node for node in nodes_of(document)}
    twice = Counter(str(_part(node, "name")) for node in nodes_of(document))
    for name in sorted(there.keys() | found.keys()):
        if name not in found:
            yield Difference(f"{DUMP}, node {name}", "in the dump", "not there")
        elif name not in there:
            yield Difference(f"{DUMP}, node {shown(name)}", "no such node in the cluster", "a node")
        elif twice[name] > 1:
            yield Difference(f"{DUMP}, node {name}", "once", f"{twice[name]} times")
        else:
            yield from _node(name, there[name], found[name])
    if there.keys() == found.keys() and list(there) != list(found):
        yield Difference(f"{DUMP}, order of the nodes", ", ".join(there), shown(", ".join(found)))


def _node(name: str, there: Object, found: Object) -> Iterator[Difference]:
    if _part(there, "uid") != _part(found, "uid"):
        yield _differs(f"node {name}, metadata.uid", _part(there, "uid"), _part(found, "uid"))
    for group, part in LAB_PARTS:
        want, have = _part(there, part, group) or {}, _part(found, part, group) or {}
        if want != have:
            what = f"{DUMP}, node {name}, {group}.{part}"
            yield Difference(what, *_apart(want, have))
    if _part(there, "resourceVersion") == _part(found, "resourceVersion"):
        yield from _other_parts(name, _by_part(there), _by_part(found))


def _other_parts(name: str, there: Parts, found: Parts) -> Iterator[Difference]:
    compared = {*LAB_PARTS, ("metadata", "uid")}
    for key in sorted((there.keys() | found.keys()) - compared):
        if there.get(key) != found.get(key):
            where = f"node {name}, {shown('.'.join(filter(None, key)))}"
            yield _differs(where, there.get(key), found.get(key))


def _by_part(node: Object) -> Parts:
    """Return a node by field and subfield; the second is empty where the first has none."""
    parts = {(key, ""): value for key, value in node.items() if not isinstance(value, dict)}
    for key, value in node.items():
        if isinstance(value, dict):
            parts |= {(key, inner): one for inner, one in value.items()}
    return parts


def _differs(what: str, want: object, have: object) -> Difference:
    expected, found = ("not set" if one is None else brief(one) for one in (want, have))
    return Difference(f"{DUMP}, {what}", expected, found)


def _apart(want: Object, have: object) -> tuple[str, str]:
    """Return both tables in words, without the entries that agree."""
    if not isinstance(have, dict):
        return amounts(want), shown(have)
    apart = {key for key in want.keys() | have.keys() if want.get(key) != have.get(key)}
    only_want = {key: value for key, value in want.items() if key in apart}
    return amounts(only_want), amounts({key: have[key] for key in have if key in apart})


def _part(node: Object, key: str, group: str = "metadata") -> Any:  # noqa: ANN401 - JSON
    parent = node.get(group)
    return parent.get(key) if isinstance(parent, dict) else None
