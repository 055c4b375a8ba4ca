"""Other names for the nodes of a dump, wherever the old ones stand."""

import re
from collections.abc import Callable
from typing import Any

from gpuwl.controlplane.nodes import Node

HOSTNAME = "kubernetes.io/hostname"

_WORD = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?")

Rename = Callable[[str], str]


def anonymise(nodes: list[Node]) -> list[Node]:
    """Return the nodes as node-00000, node-00001, … in their order.

    The old name, and the old value of the hostname label, are replaced in the labels, taints and
    conditions of every node: as whole words anywhere, and within longer words of the node itself.
    A name without a digit (`worker`) is an ordinary word, so only a value that is equal to it is
    replaced: else label keys such as `node-role.kubernetes.io/worker` would change their meaning.
    """
    new = {_name(node): f"node-{i:05d}" for i, node in enumerate(nodes)}
    old = {_hostname(node): new[_name(node)] for node in nodes} | new
    old.pop("", None)
    return [
        _renamed(node, new[_name(node)], _renaming(node, new[_name(node)], old)) for node in nodes
    ]


def _renaming(node: Node, new: str, everywhere: dict[str, str]) -> Rename:
    own = [re.escape(old) for old in (_name(node), _hostname(node)) if _is_distinct(old)]
    # not within a longer word or number: the node `a1` does not rename `aa12`
    within = re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(own)})(?![A-Za-z0-9])") if own else None

    def replacement(found: re.Match[str]) -> str:
        word = found[0]
        if word in everywhere and _is_distinct(word):
            return everywhere[word]
        return within.sub(new, word) if within else word

    def rename(text: str) -> str:
        return everywhere[text] if text in everywhere else _WORD.sub(replacement, text)

    return rename


def _renamed(node: Node, new: str, rename: Rename) -> Node:
    labels = {rename(key): rename(str(value)) for key, value in _labels(node).items()}
    if HOSTNAME in labels:
        labels[HOSTNAME] = new
    spec, status = dict(node["spec"]), dict(node["status"])
    for part, field in ((spec, "taints"), (status, "conditions")):
        if isinstance(part.get(field), list):
            part[field] = [_renamed_texts(entry, rename) for entry in part[field]]
    return {**node, "metadata": {"name": new, "labels": labels}, "spec": spec, "status": status}


def _renamed_texts(entry: object, rename: Rename) -> object:
    """Rename in a taint or condition; its times, effect, type and status hold no names."""
    if not isinstance(entry, dict):
        return entry
    texts = {"key", "value", "message", "reason"}
    return {
        field: rename(text) if field in texts and isinstance(text, str) else text
        for field, text in entry.items()
    }


def _is_distinct(name: str) -> bool:
    return any(character.isdigit() for character in name)


def _name(node: Node) -> str:
    return str(node["metadata"]["name"])


def _hostname(node: Node) -> str:
    return str(_labels(node).get(HOSTNAME) or "")


def _labels(node: Node) -> dict[str, Any]:
    labels = node["metadata"].get("labels")
    return labels if isinstance(labels, dict) else {}
