"""Where the fields of a document stand in its file, found when somebody asks and not before."""

import functools
import json
import re

from gpuwl.k8s import yamlplaces
from gpuwl.k8s.sources import Piece

Place = tuple[str | int, ...]
"""The keys and indexes that lead from a document's top to a value."""

_BLANKS = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class Source:
    """The text of a document; `line_of` is what YAML and JSON find in ways of their own."""

    def __init__(self, piece: Piece) -> None:
        self._piece = piece

    def text_of(self, line: int) -> str:
        """Return the line with this number in the file, empty where it is not the document's."""
        lines = self._lines
        index = line - self._piece.line
        return lines[index] if 0 <= index < len(lines) else ""

    @functools.cached_property
    def _lines(self) -> list[str]:
        return self._piece.text.split("\n")

    def line_of(self, item: Place, field: Place) -> int:
        """Return the line, from 1, of a field of the object at `item`: () or a List's element."""
        raise NotImplementedError


class YamlSource(Source):
    """A document in YAML."""

    def __init__(self, piece: Piece) -> None:
        super().__init__(piece)
        self._elements: dict[Place, list[yamlplaces.Mark]] = {}

    def line_of(self, item: Place, field: Place) -> int:
        """Return the line; an item is read from where it begins, not from the top of its List."""
        text, first = self._piece.text, self._piece.line
        if not item:
            return first + yamlplaces.line_of(text, field)
        holder, index = item[:-1], int(item[-1])
        if holder not in self._elements:
            self._elements[holder] = yamlplaces.elements(text, holder)
        line, column, start = self._elements[holder][index]
        return first + line + yamlplaces.line_of(" " * column + text[start:], field)


class JsonSource(Source):
    """A document in JSON that begins at a position of the text."""

    def __init__(self, piece: Piece, start: int) -> None:
        super().__init__(piece)
        self._start = start

    def line_of(self, item: Place, field: Place) -> int:
        """Return the line of the deepest part that is there."""
        text, position, value = self._piece.text, self._start, self._start
        for step in (*item, *field):
            found = _member(text, value, step)
            if found is None:
                break
            position, value = found
        return self._piece.line + text.count("\n", 0, position)


def _member(text: str, position: int, step: str | int) -> tuple[int, int] | None:
    """Return the positions of key and value of an object's member, of a list's element twice."""
    is_object = text[position] == "{"
    if text[position] not in "{[" or is_object != isinstance(step, str):
        return None
    index = 0
    position = blanks_end(text, position + 1)
    while text[position] not in "}]":
        start, key = position, index
        if is_object:
            key, end = _DECODER.raw_decode(text, position)
            position = blanks_end(text, blanks_end(text, end) + 1)
        if key == step:
            return start, position
        position = blanks_end(text, _DECODER.raw_decode(text, position)[1])
        position = blanks_end(text, position + 1) if text[position] == "," else position
        index += 1
    return None


def blanks_end(text: str, position: int) -> int:
    """Return the position of what follows the blanks at a position."""
    match = _BLANKS.match(text, position)
    return match.end() if match else position
