"""Objects of a document, field by field, each of the one type that kubectl takes.

null is as good as absent for every field; unknown fields are passed over; names are case-sensitive.
An error names the field and never its value.
"""

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gpuwl.k8s.kubeconfig.problem import Problem

_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
}
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


class Fields:
    """One object, whose place in the file is `where` (empty for the file itself)."""

    def __init__(self, value: object, where: str = "") -> None:
        self._where = where
        self._value: Mapping[str, Any] = _typed(value, dict, where or "the file") or {}

    def at(self, name: str) -> str:
        """Return the place of a field."""
        return f"{self._where}.{name}" if self._where else name

    def given(self, name: str) -> bool:
        """Tell whether a field is there, and not null."""
        return self._value.get(name) is not None

    def text(self, name: str) -> str:
        """Return a text, empty where there is none."""
        return _typed(self._value.get(name), str, self.at(name)) or ""

    def flag(self, name: str) -> bool:
        """Return a boolean, false where there is none."""
        return bool(_typed(self._value.get(name), bool, self.at(name)))

    def data(self, name: str) -> bytes:
        """Return what a text in base64 stands for, which may be broken into lines."""
        value = self._value.get(name)
        if value == []:
            return b""
        text = re.sub(r"[\r\n]", "", _typed(value, str, self.at(name)) or "")
        if not _BASE64.fullmatch(text):
            raise Problem(f"{self.at(name)} is not base64")
        return base64.b64decode(text)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts."""
        return tuple(_typed(item, str, place) or "" for item, place in self._items(name))

    def within(self, name: str) -> "Fields":
        """Return the object that a field holds, an empty one where there is none."""
        return Fields(self._value.get(name), self.at(name))

    def entries(self, name: str) -> list["Fields"]:
        """Return a list of objects."""
        return [Fields(item, place) for item, place in self._items(name)]

    def anything(self, name: str) -> Any:  # noqa: ANN401 - an extension is any JSON value
        """Return a field's value, whatever it is."""
        return self._value.get(name)

    def names(self) -> list[str]:
        """Return the names of all fields."""
        return list(self._value)

    def _items(self, name: str) -> Iterator[tuple[Any, str]]:
        items = _typed(self._value.get(name), list, self.at(name)) or []
        return ((item, f"{self.at(name)}[{number}]") for number, item in enumerate(items))


def _typed(value: object, kind: type, place: str) -> Any:  # noqa: ANN401
    if value is None or type(value) is kind:
        return value
    advice = "; write it in quotes" if kind is str and isinstance(value, int | float) else ""
    raise Problem(f"{place} is {_KINDS[type(value)]}, not {_KINDS[kind]}{advice}")
