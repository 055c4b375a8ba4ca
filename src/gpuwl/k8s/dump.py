"""Dumps: what `kubectl get … -o json` prints. The one reader, and the one writer.

`stream` reads any dump, `read` takes the nodes of one for a local control plane, `kubectl_json` writes one.
"""

import contextlib
import dataclasses
import gc
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from gpuwl import checker
from gpuwl.checker import NotNodesError
from gpuwl.errors import InputError
from gpuwl.k8s.anonymise import anonymise as anonymised
from gpuwl.k8s.objects import AMOUNTS, Object
from gpuwl.system.files import replace_file

STANDARD_INPUT = 0
MAKE_NODES = "kubectl get nodes -o json > nodes.json"

_GO_ESCAPES = str.maketrans(
    {
        "<": "\\u003c",
        ">": "\\u003e",
        "&": "\\u0026",
        "\u2028": "\\u2028",
        "\u2029": "\\u2029",
    }
)
"""What Go's encoding/json escapes beyond what JSON asks for
(https://pkg.go.dev/encoding/json#HTMLEscape); in JSON these stand in strings only."""

SPEC = ("taints", "unschedulable")
STATUS = ("capacity", "allocatable", "conditions")


def stream(
    source: Path | int,
    take: Callable[[Object, str], None],
    kinds: Collection[str] = (),
    *,
    make_it: str = MAKE_NODES,
) -> Counter[str]:
    """Hand each object of a dump to `take`, with its place (`.items[2]`; empty for the only one).

    `source` is a path, or STANDARD_INPUT. `kinds` are the kinds wanted, like `Pod` or
    `ResourceSlice.resource.k8s.io`, all if empty. Returns how many of each kind the dump holds, those
    that were passed over too; an empty PodList is 0 of Pod. Memory stays flat: one object is held at a time, and `take` may stop it
    all by raising.

    Takes what the checker takes: a List, NodeList, PodList …, one object, a bare list of these, lists
    in lists; UTF-8 with or without BOM, UTF-16. Each object has a `kind` (what the list says where it has
    none itself, else Pod or Node by its shape) and a `metadata.name`; its `metadata`, labels,
    annotations, `spec`, `status`, capacity and allocatable are objects, null or absent. Numbers come as
    text, as they were written: `quantity` and `int` read them.

    Raises InputError where the source cannot be read, is no such dump, not whole, or holds only
    other kinds; `make_it` is the command that makes the right file. Objects before that place were
    handed on already.
    """
    sink = _Objects(take, kinds)
    name = "standard input" if source == STANDARD_INPUT else str(source)
    try:
        with open(source, "rb", closefd=source != STANDARD_INPUT) as file, _no_cycles():
            _read(file, sink)
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}", hint=make_it) from None
    except NotNodesError as error:
        hint = error.todo.replace(MAKE_NODES, make_it)
        raise InputError(f"{name} {error.what}", hint=hint) from None
    except MemoryError:
        raise InputError(f"{name} holds a single value that does not fit into memory") from None
    return sink.seen


def _read(file: BinaryIO, sink: checker.Sink) -> None:
    checker.read_document(checker.Source(file.read), sink)


@contextlib.contextmanager
def _no_cycles() -> Iterator[None]:
    """Keep Python from looking for cycles in what JSON decodes to: a third of the time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


class _Objects(checker.Sink):
    """Hands the objects of a dump to a function, once their shape is known to be right."""

    def __init__(self, take: Callable[[Object, str], None], kinds: Collection[str]) -> None:
        self._take = take
        self._kinds = kinds
        self._guessed: list[set[str]] = [
            set()
        ]  # of each open list, the kinds that shape alone tells
        self.seen: Counter[str] = Counter()

    def add(self, item: object, place: str) -> None:
        """Hand on one object, if its kind is wanted."""
        try:
            self._hand_on(item, place)
        except checker.ItemError as error:
            raise NotNodesError(checker.within(place, str(error))) from None

    def _hand_on(self, item: object, place: str) -> None:
        if not isinstance(item, dict):
            raise checker.ItemError(f"is {checker.json_type(item)} and not an object")
        if not checker.kind_of_object(item):
            item["kind"] = _kind_by_shape(item)
            self._guessed[-1].add(item["kind"])
        kind = full_kind(item)
        self.seen[kind] += 1
        if not self._kinds or kind in self._kinds:
            _check_shape(item)
            self._take(item, place)

    def begin(self) -> None:
        """Begin a list."""
        self._guessed.append(set())

    def forget(self) -> None:
        """Refuse: what was handed on cannot be taken back."""
        raise NotNodesError("has the key items twice, or in an object that is no list")

    def end(self, kind: str, place: str) -> None:
        """Refuse a list whose kind, behind the items, is not what the items looked like."""
        guessed = self._guessed.pop()
        if kind not in ("", "List") and guessed - {kind.removesuffix("List")}:
            text = f"is a {kind} that says so only behind its items, which tell no kind themselves"
            raise NotNodesError(checker.within(place, text))
        if kind not in ("", "List"):
            self.seen[kind.removesuffix("List")] += 0

    def finish(self) -> None:
        """Refuse a dump of other kinds alone."""
        if self._kinds and self.seen and not any(kind in self.seen for kind in self._kinds):
            found = ", ".join(checker.shown(kind) for kind, _ in self.seen.most_common(3))
            raise NotNodesError(f"is a dump of {found}, not of {' or '.join(self._kinds)}")


def full_kind(item: Object) -> str:
    """Return the kind of an object, of a named API group as `ResourceSlice.resource.k8s.io`."""
    group, slash, _ = str(item.get("apiVersion") or "").rpartition("/")
    return f"{item['kind']}.{group}" if slash else str(item["kind"])


def _kind_by_shape(item: Object) -> str:
    spec = item.get("spec")
    return "Pod" if isinstance(spec, dict) and "containers" in spec else "Node"


def _check_shape(item: Object) -> None:
    """Raise ItemError where an object has no name, or where an object belongs and is none."""
    metadata, status = checker.mapping(item, "metadata"), checker.mapping(item, "status")
    checker.name_of(metadata)
    checker.mapping(item, "spec")
    for holder, fields in ((metadata, ("labels", "annotations")), (status, AMOUNTS)):
        for field in fields:
            checker.mapping(holder, field)


def read(path: Path, *, anonymise: bool) -> list[Object]:
    """Return the nodes of a dump, ready to be created; without their owner's words if `anonymise`.

    Kept is what a scheduler decides by: name, labels, taints, unschedulable, capacity, allocatable,
    conditions. Dropped is what belongs to the machines or their owner: managed fields, annotations,
    images, addresses, ids. Raises InputError where the dump cannot be read, holds no nodes, or one twice.
    """
    nodes: list[Object] = []
    stream(path, lambda node, _place: nodes.append(essence(node)), ["Node"])
    if not nodes:
        raise InputError(f"{path} holds no node", hint=MAKE_NODES)
    _refuse_duplicates(path, nodes)
    return anonymised(nodes)[0] if anonymise else nodes


def write_map(path: Path, target: Path) -> None:
    """Write, for this user alone, what `read` calls the words of a dump that it hides.

    Raises InputError where the dump cannot be read or the file not be written.
    """
    _, hidden = anonymised(read(path, anonymise=False))
    text = json.dumps(dataclasses.asdict(hidden), indent=2) + "\n"
    try:
        replace_file(target, text.encode(errors="surrogatepass"), 0o600)
    except OSError as error:
        raise InputError(f"cannot write {target}: {error.strerror}") from None


def _refuse_duplicates(path: Path, nodes: list[Object]) -> None:
    seen: set[str] = set()
    for node in nodes:
        name = node["metadata"]["name"]
        if name in seen:
            raise InputError(f"{path} holds the node {name} twice")
        seen.add(name)


def essence(node: dict[str, Any]) -> Object:
    """Return what is kept of a node."""
    metadata = _kept(node.get("metadata"), ("name", "labels"))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": _kept(node.get("spec"), SPEC),
        "status": _kept(node.get("status"), STATUS),
    }


def _kept(part: object, fields: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(part, dict):
        return {}
    return {field: part[field] for field in fields if part.get(field) is not None}


def kubectl_json(node_list: bytes) -> str:
    """Return what `kubectl get nodes -o json` prints for the API server's NodeList.

    That is `kubectl_list` with sorted keys, four-space indent and Go's escapes. Raises ValueError
    where the input is not a NodeList in JSON.
    """
    return go_json(kubectl_list(node_list))


def kubectl_list(node_list: bytes) -> dict[str, Any]:
    """Return the API server's NodeList as the `List` that kubectl makes of it.

    That is without a resource version, its items with apiVersion and kind and without
    managedFields. Raises ValueError where the input is not a NodeList in JSON.
    """
    answer = json.loads(node_list)
    if not isinstance(answer, dict) or answer.get("kind") != "NodeList":
        raise ValueError("the API server's answer is not a NodeList")
    return {
        "apiVersion": "v1",
        "items": [_item(node) for node in answer.get("items") or ()],
        "kind": "List",
        "metadata": {"resourceVersion": ""},
    }


def go_json(value: object) -> str:
    """Return a value the way Go's MarshalIndent prints it with sorted keys and four blanks."""
    text = json.dumps(value, indent=4, sort_keys=True, ensure_ascii=False)
    return text.translate(_GO_ESCAPES) + "\n"


def _item(node: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in node["metadata"].items() if key != "managedFields"}
    return {**node, "apiVersion": "v1", "kind": "Node", "metadata": metadata}
