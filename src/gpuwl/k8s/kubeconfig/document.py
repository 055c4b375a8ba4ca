"""The first YAML or JSON document of a file, as kubectl reads it.

kubectl takes YAML 1.1 as go-yaml v2 resolves it, which is not what PyYAML makes of it: `y` is true,
`1:30` and dates are texts, the last of several equal keys counts, a merge key acts where it stands.
Source: go.yaml.in/yaml/v2, resolve.go and decode.go; sigs.k8s.io/yaml, yaml.go.
"""

import base64
import binascii
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import yaml

from gpuwl.k8s.kubeconfig.problem import Problem

# libyaml is what go-yaml was made from: it takes tabs where kubectl does
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"
_MOST_NODES = 1_000_000
"""About where kubectl gives up, counted after each alias was replaced."""

_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(
        ["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"], True
    ),
    **dict.fromkeys(
        ["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"], False
    ),
    **dict.fromkeys(["", "~", "null", "Null", "NULL"], None),
    **dict.fromkeys([".nan", ".NaN", ".NAN"], math.nan),
    **{sign + word: math.inf for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
}
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SIZES = range(-(2**63), 2**64)
_MERGE = object()


def first(data: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Return the first document: objects, lists, texts, numbers, booleans or None.

    Raises Problem where kubectl cannot read it; the words quote nothing of the file.
    """
    try:
        return _Builder().build(yaml.parse(data, Loader=_LOADER))
    except yaml.YAMLError as error:
        raise Problem(f"not YAML or JSON{_place(error)}") from None
    except (RecursionError, ValueError):
        raise Problem("not YAML or JSON") from None


def _place(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return f": a mistake in line {mark.line + 1}" if mark else ""


@dataclass
class _Open:
    """A list or an object that has not ended yet; `size` counts nodes, aliases replaced."""

    value: Any
    anchor: str | None
    size: int = 1
    keys: list[Any] = field(default_factory=list)


class _Builder:
    """Makes values of events, without recursion: a file's depth is not ours."""

    def __init__(self) -> None:
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}

    def build(self, events: Iterable[yaml.Event]) -> Any:  # noqa: ANN401
        for event in events:
            if isinstance(event, yaml.DocumentEndEvent):
                break
            self._take(event)
        return self._anchors.get("", (None, 0))[0]

    def _take(self, event: yaml.Event) -> None:
        match event:
            case yaml.DocumentStartEvent(version=version) if version not in {None, (1, 1)}:
                raise Problem("it says that it is of another YAML than 1.1")
            case yaml.CollectionStartEvent():
                self._start(event)
            case yaml.CollectionEndEvent():
                done = self._open.pop()
                self._keep(done.anchor, done.value, done.size)
                self._put(done.value, done.size)
            case yaml.AliasEvent():
                self._put(*self._alias(event))
            case yaml.ScalarEvent():
                value = _scalar(event)
                self._keep(event.anchor, value, 1)
                self._put(value, 1)
            case _:  # a stream or a document begins
                pass

    def _start(self, event: yaml.CollectionStartEvent) -> None:
        value: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        self._anchors.pop(event.anchor or "", None)
        self._open.append(_Open(value, event.anchor))

    def _keep(self, anchor: str | None, value: object, size: int) -> None:
        if anchor:
            self._anchors[anchor] = (value, size)
        if not self._open:
            self._anchors[""] = (value, size)  # the document itself

    def _alias(self, event: yaml.AliasEvent) -> tuple[Any, int]:
        if event.anchor not in self._anchors:
            raise Problem("an alias in it leads nowhere, or to itself")
        return self._anchors[event.anchor]

    def _put(self, value: Any, size: int) -> None:  # noqa: ANN401
        if not self._open:
            return
        parent = self._open[-1]
        parent.size += size
        if parent.size > _MOST_NODES:
            raise Problem("its aliases make too much of it")
        if isinstance(parent.value, list):
            parent.value.append(None if value is _MERGE else value)
        elif not parent.keys:
            parent.keys.append(value if value is _MERGE else _key(value))
        elif (key := parent.keys.pop()) is _MERGE:
            _merge(parent.value, value)
        else:
            parent.value[key] = "<<" if value is _MERGE else value


def _merge(target: dict[str, Any], source: object) -> None:
    for part in reversed(source) if isinstance(source, list) else [source]:
        if not isinstance(part, dict):
            raise Problem("a merge key in it leads to something that is no object")
        target.update(part)


def _key(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise Problem("it has a key that is no text")


def _scalar(event: yaml.ScalarEvent) -> Any:  # noqa: ANN401
    text: str = event.value
    tag: str = event.tag or ""
    if not tag or tag == "!":
        if event.style or tag:
            return text
        return _MERGE if text == "<<" else _finite(_resolved(text))
    if tag == f"{_TAG}binary":
        return _binary(text)
    if tag == f"{_TAG}merge":
        return _MERGE
    if not tag.startswith(_TAG) or tag == f"{_TAG}str":
        return text
    return _tagged(tag.removeprefix(_TAG), text)


_KINDS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "null": (type(None),),
}


def _tagged(kind: str, text: str) -> Any:  # noqa: ANN401
    value = _finite(_resolved(text))
    if kind not in _KINDS:
        return text
    if type(value) not in _KINDS[kind]:
        raise Problem(f"it calls a value !!{kind} that is none")
    return value


def _finite(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, float) and not math.isfinite(value):
        raise Problem("it has a number that is not finite")
    return value


def _resolved(text: str) -> str | float | bool | None:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    plain = text.replace("_", "")
    if text[0] != "." and _INTEGER.fullmatch(plain) and (number := _integer(plain)) in _SIZES:
        return number
    if _FLOAT.fullmatch(text if text[0] == "." else plain):
        fraction = float(plain)
        return fraction if math.isfinite(fraction) else text
    return text


def _integer(plain: str) -> int:
    digits = plain.lstrip("+-")
    old_octal = digits.startswith("0") and digits[1:].isdecimal()
    number = int(digits, 8) if old_octal else int(digits, 0)
    return -number if plain.startswith("-") else number


def _binary(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode(errors="replace")
    except binascii.Error:
        raise Problem("it calls a value !!binary that is none") from None
