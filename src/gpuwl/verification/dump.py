"""The node dump (step 8): what kubectl prints, of the nodes that the cluster has.

kubectl's form is compared to the byte. What the nodes say is compared where it matters to the lab
(names, labels, capacity, allocatable) and where it tells another cluster's nodes of the same name from
these (uid): heartbeats, resource versions and the like move on without anybody's doing.
"""

import contextlib
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from gpuwl import report
from gpuwl.steps import s8_consistency
from gpuwl.verification import files
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.findings import Difference, Findings, amounts, first_few, shown

DUMP = s8_consistency.DUMP
Object = dict[str, Any]


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


def _form(document: Object, data: bytes) -> Iterator[Difference]:
    if document.get("kind") != "List":
        yield Difference(f"{DUMP}, kind", "List", shown(document.get("kind")))
    others = len(document["items"]) - sum(i.get("kind") == "Node" for i in nodes_of(document))
    if others:
        found = f"{others} items without a name or of another kind"
        yield Difference(f"{DUMP}, items", "Nodes, each with its kind", found)
    if any(_part(node, "managedFields") for node in nodes_of(document)):
        yield Difference(f"{DUMP}, items", "no managedFields", "managedFields")
    if _printed(document) != data:
        expected = "the bytes of kubectl: four-space indent, sorted keys, Go's escapes"
        yield Difference(f"{DUMP}, form", expected, "another rendering of the same document")


def _printed(document: Object) -> bytes | None:
    with contextlib.suppress(RecursionError):
        return report.go_json(document).encode(errors="surrogatepass")
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


def _node(name: str, there: Object, found: Object) -> Iterator[Difference]:
    if _part(there, "uid") != _part(found, "uid"):
        what = f"{DUMP}, node {name}, metadata.uid"
        yield Difference(what, shown(_part(there, "uid")), shown(_part(found, "uid")))
    for group, part in (("metadata", "labels"), ("status", "capacity"), ("status", "allocatable")):
        want, have = _part(there, part, group) or {}, _part(found, part, group) or {}
        if want != have:
            what = f"{DUMP}, node {name}, {group}.{part}"
            yield Difference(what, *_apart(want, have))


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
