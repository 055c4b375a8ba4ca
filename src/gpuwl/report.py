"""Pure rendering: plain data in, the text of an artifact out."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

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


def rows(table: Iterable[tuple[str, ...]]) -> str:
    """Return one line a row, words joined by a blank, sorted by the first word."""
    return lines(" ".join(row) for row in sorted(table))


def pairs(values: Mapping[str, str]) -> str:
    """Return `KEY=value` lines in the given order."""
    return lines(f"{key}={value}" for key, value in values.items())


def lines(texts: Iterable[str]) -> str:
    """Join lines so that the text ends in exactly one newline and no line in a blank."""
    return "".join(f"{text.rstrip()}\n" for text in texts)


def one_line(text: str) -> str:
    """Return a text with each line break replaced by one blank."""
    return " ".join(text.splitlines()).strip()


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
