"""Manifests: every object in files, folders and standard input, with the lines its fields stand on.

A List gives its items, each as a document of its own. What has to be rendered first (a
kustomization, a chart, a template) is named, never rendered.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuwl.errors import InputError
from gpuwl.k8s import yamltext
from gpuwl.k8s.objects import Object
from gpuwl.k8s.positions import JsonSource, Place, Source, YamlSource, blanks_end
from gpuwl.k8s.sources import CHART, STANDARD_INPUT, Piece, Unrendered, files, pieces
from gpuwl.k8s.yamlevents import YamlError

__all__ = ["Document", "Unrendered", "read"]

_HELM = re.compile(
    r"\{\{-?\s*(\$?\.(Values|Release|Chart|Capabilities|Files|Template)\b|(include|template|define)\s)"
)
"""What only a chart's templates hold; Argo and Prometheus have braces of their own in plain YAML."""


@dataclass(frozen=True)
class Document:
    """One object. `file` is as it was named; `object` is plain data with strings as keys."""

    file: str
    object: Object
    _source: Source
    _place: Place = ()

    @property
    def line(self) -> int:
        """The line of the file, from 1, where the object begins."""
        return self.line_of(())

    def line_of(self, path: Sequence[str | int]) -> int:
        """Return the line of a field's key, or a list's element: of the deepest that is there."""
        return self._source.line_of(self._place, tuple(path))

    def text_of(self, line: int) -> str:
        """Return a line of the file as it stands there, empty where it is not the document's."""
        return self._source.text_of(line)


def read(paths: Iterable[Path | str]) -> Iterator[Document | Unrendered]:
    """Return the objects of files, folders (recursively, sorted) and `-`, standard input, in order.

    In folders .yaml, .yml and .json count, and documents that are no objects are passed over; a file
    that was named must hold one. Raises InputError with file and line for what cannot be read.
    """
    paths = list(dict.fromkeys(str(path) for path in paths))
    for source in files(paths):
        if isinstance(source, Unrendered):
            yield source
        else:
            yield from _read_file(source, is_named=str(source) in paths)


def _read_file(source: Path | str, *, is_named: bool) -> Iterator[Document | Unrendered]:
    found = False
    for piece in pieces(source):
        try:
            for document in _documents(piece):
                found = True
                yield document
        except _TemplateError:
            yield Unrendered(piece.file, _helm_command(piece.file))
            return
    if is_named and not found:
        name = "standard input" if source == STANDARD_INPUT else source
        raise InputError(f"{name} holds no Kubernetes object")


class _TemplateError(Exception):
    """The text is a template, not a manifest."""


def _helm_command(file: str) -> str:
    """Return the command that renders a template: with the chart's folder where one is above it."""
    for folder in Path(file).parents:
        if (folder / CHART).is_file():
            return f"helm template {folder}"
    return "helm template CHART"


def _documents(piece: Piece) -> Iterator[Document]:
    if "{{" in piece.text and _HELM.search(piece.text):
        raise _TemplateError
    values = _json_values(piece) if piece.text.lstrip()[:1] in ("{", "[") else None
    if values is None:
        values = [(_yaml_value(piece), YamlSource(piece))]
    for value, source in values:
        yield from _objects(piece.file, value, source)


def _json_values(piece: Piece) -> list[tuple[Any, Source]] | None:
    """Return the JSON values of a text, one behind another, or None where it is not JSON."""
    text, decoder, position = piece.text, json.JSONDecoder(), 0
    found: list[tuple[Any, Source]] = []
    try:
        while (position := blanks_end(text, position)) < len(text):
            value, end = decoder.raw_decode(text, position)
            found.append((value, JsonSource(piece, position)))
            position = end
    except RecursionError:
        raise InputError(f"{piece.file}:{piece.line}: nested too deep") from None
    except ValueError:
        return None
    return found


def _yaml_value(piece: Piece) -> object:
    try:
        return yamltext.load(piece.text)
    except YamlError as error:
        if "{{" in piece.text:
            raise _TemplateError from None
        raise InputError(f"{piece.file}:{piece.line + error.line}: {error}") from None


def _objects(file: str, value: object, source: Source) -> Iterator[Document]:
    """Return the objects of a value: itself, or the items of a List, of lists in lists too."""
    waiting: list[tuple[object, Place]] = [(value, ())]
    while waiting:
        item, place = waiting.pop()
        if isinstance(item, list):
            waiting += [(item[index], (*place, index)) for index in reversed(range(len(item)))]
        elif isinstance(item, dict) and isinstance(kind := item.get("kind"), str):
            items = item.get("items")
            if kind.endswith("List") and isinstance(items, list):
                _name_items(kind, item, items)
                waiting.append((items, (*place, "items")))
            else:
                yield Document(file, item, source, place)


def _name_items(kind: str, holder: Object, items: list[Any]) -> None:
    """Give the items of a PodList or the like, which the raw API leaves bare, what they are."""
    if kind == "List":
        return
    for item in items:
        if isinstance(item, dict):
            item.setdefault("kind", kind.removesuffix("List"))
            item.setdefault("apiVersion", holder.get("apiVersion"))
