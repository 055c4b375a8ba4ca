"""Other names for the nodes of a dump, wherever the old ones stand."""

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from gpuwl.k8s.objects import Object

HOSTNAME = "kubernetes.io/hostname"

_WORD = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.:-]*[A-Za-z0-9])?")
_SEPARATOR = re.compile(r"([.:-])")
_SHORTEST_TRACE = 6  # characters; shorter ids, such as `0`, are words that mean other things too
# Keys below these domains have a meaning to Kubernetes: node-role.kubernetes.io/control-plane.
_KUBERNETES_KEY = re.compile(r"(?:[a-z0-9.-]+\.)?(?:kubernetes|k8s)\.io/")

_MACHINE_IDS = ("machineID", "systemUUID", "bootID")

Rename = Callable[[str], str]


def traces(node: Mapping[str, Any]) -> set[str]:
    """Return the addresses and ids of a node of a dump, which tell as much as its name.

    Of a provider's id that is the last part: `i-0a1b2c3d` of `aws:///eu-west-1a/i-0a1b2c3d`.
    """
    metadata, spec, status = (_mapping(node.get(part)) for part in ("metadata", "spec", "status"))
    addresses = status.get("addresses")
    listed = addresses if isinstance(addresses, list) else []
    found = [_mapping(one).get("address") for one in listed]
    found += [_mapping(status.get("nodeInfo")).get(field) for field in _MACHINE_IDS]
    found += [metadata.get("uid"), str(spec.get("providerID") or "").rpartition("/")[2]]
    return {text for text in found if isinstance(text, str) and len(text) >= _SHORTEST_TRACE}


def anonymise(nodes: list[Object], known: Sequence[Iterable[str]]) -> list[Object]:
    """Return the nodes as node-00000, node-00001, … in their order.

    `known` are the traces of each node. Replaced in the labels, taints and conditions of every node
    are the old names, these traces, the first part of a name with digits that is a domain name, and
    the old values of the hostname label: in messages wherever they stand as a word, in labels and
    taints also as a part of a longer value or key. A name that is one ordinary word (`worker`) is
    replaced there only where it is the whole value: else keys such as
    `node-role.kubernetes.io/worker` would change their meaning.
    """
    new = _new_names(nodes, known)
    renaming = _Renaming(new)
    return [_renamed(node, new[_name(node)], renaming) for node in nodes]


def _new_names(nodes: list[Object], known: Sequence[Iterable[str]]) -> dict[str, str]:
    names = {_name(node): f"node-{i:05d}" for i, node in enumerate(nodes)}
    hosts = {name.split(".", 1)[0]: new for name, new in names.items()}
    hostnames = {_hostname(node): names[_name(node)] for node in nodes}
    left = {trace: new for new, own in zip(names.values(), known, strict=True) for trace in own}
    found = left | _only(hosts, _has_digit) | hostnames | names
    found.pop("", None)
    return found


class _Renaming:
    """How each kind of text is renamed; most texts of a large dump occur on every node."""

    def __init__(self, new: Mapping[str, str]) -> None:
        self._in_kubernetes_keys = _replacing(_only(new, _has_digit))
        self._in_parts = _replacing(_only(new, lambda old: "-" in old or _has_digit(old)))
        self._whole = new
        self.message = _replacing(new)

    def key(self, text: str) -> str:
        """Rename in the key of a label or taint."""
        return (self._in_kubernetes_keys if _KUBERNETES_KEY.match(text) else self._in_parts)(text)

    def value(self, text: str) -> str:
        """Rename in the value of a label or taint."""
        return self._whole.get(text) or self._in_parts(text)


def _only(new: Mapping[str, str], holds: Callable[[str], bool]) -> dict[str, str]:
    return {old: name for old, name in new.items() if holds(old)}


def _has_digit(name: str) -> bool:
    return any(character.isdigit() for character in name)


def _replacing(new: Mapping[str, str]) -> Rename:
    """Return what replaces names in a text: not within a longer word or number (`a1` in `aa12`)."""

    def replace(parts: list[str]) -> str:
        for length in range(len(parts), 0, -2):  # the longest name first; separators lie between
            for start in range(0, len(parts) - length + 1, 2):
                end = start + length
                if name := new.get("".join(parts[start:end])):
                    return replace(parts[:start]) + name + replace(parts[end:])
        return "".join(parts)

    @functools.cache
    def rename(text: str) -> str:
        return _WORD.sub(lambda found: replace(_SEPARATOR.split(found[0])), text)

    return rename


def _renamed(node: Object, new: str, renaming: _Renaming) -> Object:
    labels = {renaming.key(k): renaming.value(str(v)) for k, v in _labels(node).items()}
    if HOSTNAME in labels:
        labels[HOSTNAME] = new
    renames = {
        "key": renaming.key,
        "value": renaming.value,
        "message": renaming.message,
        "reason": renaming.message,
    }
    spec, status = dict(node["spec"]), dict(node["status"])
    for part, field in ((spec, "taints"), (status, "conditions")):
        if isinstance(part.get(field), list):
            part[field] = [_renamed_texts(entry, renames) for entry in part[field]]
    return {**node, "metadata": {"name": new, "labels": labels}, "spec": spec, "status": status}


def _renamed_texts(entry: object, renames: Mapping[str, Rename]) -> object:
    """Rename in a taint or condition; its times, effect, type and status hold no names."""
    if not isinstance(entry, dict):
        return entry
    return {
        field: renames[field](text) if field in renames and isinstance(text, str) else text
        for field, text in entry.items()
    }


def _name(node: Object) -> str:
    return str(node["metadata"]["name"])


def _hostname(node: Object) -> str:
    return str(_labels(node).get(HOSTNAME) or "")


def _labels(node: Object) -> dict[str, Any]:
    return _mapping(node["metadata"].get("labels"))


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
