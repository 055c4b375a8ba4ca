"""The node dump (step 8): the nodes that the cluster has, in whatever form a person's tool wrote them.

As kubectl prints it, as `kubectl get --raw` and `jq` do, with managedFields or without. A node that has
not changed since (same resourceVersion) must be told in full. Of one that has, only what matters to the
lab (labels, capacity, allocatable) and what tells another cluster's nodes of the same name from these
(uid) is compared: heartbeats and the like move on without anybody's doing. The lab's own nodes are
compared with what the lab makes of them, not with what the cluster holds.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from gpuwl.findings import Finding, shown
from gpuwl.k8s import objects
from gpuwl.k8s.objects import Object
from gpuwl.lab.names import LABEL_KEY, PREFIX, LabNode
from gpuwl.steps import s8_consistency
from gpuwl.texts import text
from gpuwl.verification import files
from gpuwl.verification.attempt import Attempt
from gpuwl.verification.nodes import label_in_words
from gpuwl.verification.outcome import Findings, Moot, amounts, brief, first_few

DUMP = s8_consistency.DUMP
HOLDS, LAB = "consistency.dump", "consistency.lab"
Parts = dict[tuple[str, str], Any]

LAB_PARTS = (("metadata", "labels"), ("status", "capacity"), ("status", "allocatable"))
"""What the lab is about in a node: compared even where the node has changed since."""
BY_TOOL = {("metadata", "managedFields"), ("apiVersion", ""), ("kind", "")}
"""What some tools print and others do not."""


def matches(attempt: Attempt) -> Findings:
    """Check that the dump is one of this cluster, and that the lab's three nodes stand in it."""
    data = files.read(attempt.artifacts, DUMP)
    if data is None:
        yield files.missing(HOLDS, DUMP)
        yield Moot((LAB,))
        return
    document = decoded(data)
    if document is None or not isinstance(document.get("items"), list):
        yield Finding(HOLDS, DUMP, text("verify.no_node_list"), file=DUMP, found=_kind(data))
        yield Moot((LAB,))
        return
    yield from first_few(differences(document, attempt.node_list, attempt.nodes))
    yield from lab_nodes(document, attempt.nodes, f"{DUMP}, ")
    yield from lab_nodes(attempt.node_list, attempt.nodes, "")


def differences(
    document: Object, node_list: Object, lab: tuple[LabNode, ...] = ()
) -> Iterator[Finding]:
    """Yield what a dump says otherwise than the List that kubectl would print now."""
    nodes = nodes_of(document)
    if others := len(document["items"]) - sum(item.get("kind") in (None, "Node") for item in nodes):
        yield _finding(DUMP, text("verify.other_items"), None, str(others))
    there = {node["metadata"]["name"]: node for node in node_list["items"]}
    found = {str(_part(node, "name")): node for node in nodes}
    twice = Counter(str(_part(node, "name")) for node in nodes)
    for name in sorted(there.keys() | found.keys()):
        where = f"node {shown(name)}"
        if name not in found:
            yield _finding(where, text("verify.not_in_dump"))
        elif name not in there:
            yield _finding(where, text("verify.not_in_cluster"))
        elif twice[name] > 1:
            yield _finding(where, text("verify.in_dump_twice"), "1", str(twice[name]))
        else:
            yield from _node(where, there[name], found[name], ours=name in {n.name for n in lab})


def decoded(data: bytes) -> Object | None:
    """Return a JSON object in UTF-8, None where the data is something else."""
    try:
        document = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def nodes_of(document: Object) -> list[Object]:
    """Return those of the items that are objects with a name."""
    items = document.get("items") or ()
    return [i for i in items if isinstance(i, dict) and isinstance(_part(i, "name"), str)]


def lab_nodes(listing: Object, lab: tuple[LabNode, ...], place: str) -> Iterator[Finding]:
    """Yield what is wrong with the lab's nodes in a list; a bare cluster shows nothing."""
    found = {node["metadata"]["name"]: node for node in nodes_of(listing)}
    for lab_node in lab:
        if lab_node.name in found:
            yield from _lab_node(f"{place}node {lab_node.name}", lab_node, found[lab_node.name])


def _lab_node(where: str, lab_node: LabNode, node: Object) -> Iterator[Finding]:
    label = _table(node, "metadata", "labels").get(LABEL_KEY)
    if label != lab_node.value:
        what = text("verify.label_differs", key=LABEL_KEY)
        yield _finding(where, what, lab_node.value, label_in_words(label), LAB)
    expected = {lab_node.resource: lab_node.amount}
    for field in objects.AMOUNTS:
        advertised = _gpus(_table(node, "status", field))
        if advertised != expected:
            what = text("verify.resources_differ", field=f"status.{field}")
            yield _finding(where, what, amounts(expected), amounts(advertised), LAB)


def _node(where: str, there: Object, found: Object, *, ours: bool) -> Iterator[Finding]:
    if _part(there, "uid") != _part(found, "uid"):
        yield _field(where, "metadata.uid", _part(there, "uid"), _part(found, "uid"))
    for group, part in LAB_PARTS:
        want, have = _table(there, group, part), _table(found, group, part)
        if ours:
            want, have = _without_lab(want, part), _without_lab(have, part)
        if want != have:
            field = text("verify.field_differs", field=f"{group}.{part}")
            yield _finding(where, field, *_apart(want, have))
    if _part(there, "resourceVersion") == _part(found, "resourceVersion"):
        yield from _other_parts(where, _by_part(there), _by_part(found))


def _other_parts(where: str, there: Parts, found: Parts) -> Iterator[Finding]:
    compared = {*LAB_PARTS, *BY_TOOL, ("metadata", "uid")}
    for key in sorted((there.keys() | found.keys()) - compared):
        if there.get(key) != found.get(key):
            field = shown(".".join(filter(None, key)))
            yield _field(where, field, there.get(key), found.get(key))


def _by_part(node: Object) -> Parts:
    """Return a node by field and subfield; the second is empty where the first has none."""
    parts = {(key, ""): value for key, value in node.items() if not isinstance(value, dict)}
    for key, value in node.items():
        if isinstance(value, dict):
            parts |= {(key, inner): one for inner, one in value.items()}
    return parts


def _finding(
    where: str, what: str, expected: str | None = None, found: str | None = None, of: str = HOLDS
) -> Finding:
    return Finding(of, where, what, file=DUMP, expected=expected, found=found)


def _field(where: str, field: str, want: object, have: object) -> Finding:
    sides = [text("verify.not_set") if one is None else brief(one) for one in (want, have)]
    return _finding(where, text("verify.field_differs", field=field), *sides)


def _apart(want: Object, have: Object) -> tuple[str, str]:
    """Return both tables in words, without the entries that agree."""
    apart = {key for key in want.keys() | have.keys() if want.get(key) != have.get(key)}
    only_want = {key: value for key, value in want.items() if key in apart}
    return amounts(only_want), amounts({key: have[key] for key in have if key in apart})


def _without_lab(table: Object, part: str) -> Object:
    """Leave out what the lab sets in a node, which is judged by itself."""
    lab = {LABEL_KEY} if part == "labels" else _gpus(table).keys()
    return {key: one for key, one in table.items() if key not in lab}


def _gpus(table: Object) -> Object:
    return {key: one for key, one in table.items() if key.startswith(PREFIX)}


def _kind(data: bytes) -> str:
    document = decoded(data)
    if document is None:
        return text("verify.bytes_no_json", count=len(data))
    return f"kind {shown(document.get('kind'))}"


def _table(node: Object, group: str, part: str) -> Object:
    found = _part(node, part, group)
    return found if isinstance(found, dict) else {}


def _part(node: Object, key: str, group: str = "metadata") -> Any:  # noqa: ANN401 - JSON
    parent = node.get(group)
    return parent.get(key) if isinstance(parent, dict) else None
