"""YAML's events, and what a scalar means to Kubernetes.

The parser's events are read, never its loaders: no tag makes an object. What a plain scalar means is
what goyaml.v2 makes of it, which kubectl and the API server read with (sigs.k8s.io/yaml): YAML 1.1's
booleans, Go's integers, and timestamps as strings.
"""

import re
from collections.abc import Iterator
from typing import Any

import yaml

Event = Any
"""One of PyYAML's events; their marks are optional to the types and always there."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDS: dict[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(
        ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True
    ),
    **dict.fromkeys(
        ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False
    ),
}
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]{0,18})\Z")
_OTHER_INTEGER = re.compile(r"[-+]?0(x[0-9a-fA-F]{1,16}|o?[0-7]{1,21}|b[01]{1,64})\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
TAG = "tag:yaml.org,2002:"
"""What the tags of YAML itself begin with; `!!str` is short for it."""


class YamlError(ValueError):
    """Text that cannot be read; `line` counts from 0 within the text."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(what)
        self.line = line


def events(text: str) -> Iterator[Event]:
    """Return the events of a text. Raises YamlError where it is not YAML."""
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = error.problem or error.context or "not YAML"
        raise YamlError(what, mark.line if mark else 0) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, max(error.position, 0))
        raise YamlError(str(error.reason), line) from None
    except (RecursionError, ValueError, IndexError) as error:
        # the parser in Python calls itself for each level, and takes any escape for a character
        raise YamlError(f"not YAML: {type(error).__name__}") from None


def key(event: Event) -> str:
    """Return a mapping's key, as `key_text`."""
    return key_text(scalar(event))


def key_text(value: object) -> str:
    """Return a mapping's key as JSON has it: always a string."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def scalar(event: Event) -> object:
    """Return what a scalar means; raises YamlError for tags beyond YAML's own."""
    if event.tag is None or event.tag == "!":
        return event.value if event.style or event.tag else plain(event.value)
    if not event.tag.startswith(TAG):
        raise YamlError(f"the tag {event.tag} is none of YAML's own", event.start_mark.line)
    kind = event.tag[len(TAG) :]
    if kind in ("str", "binary", "timestamp"):
        return event.value
    if kind in ("int", "float", "bool", "null", "merge"):
        return plain(event.value)
    raise YamlError(f"the tag !!{kind} is none that data has", event.start_mark.line)


def plain(text: str) -> object:
    """Return what a scalar without quotes means: None, a boolean, a number or the text itself."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    figures = text.replace("_", "")
    if _DECIMAL.match(figures):
        return int(figures)
    if _OTHER_INTEGER.match(figures):
        return _integer(figures)
    return float(figures) if _FLOAT.match(figures) else text


def _integer(figures: str) -> int:
    sign = -1 if figures[0] == "-" else 1
    body = figures.lstrip("+-")
    base = {"x": 16, "o": 8, "b": 2}.get(body[1], 8)
    return sign * int(body[1:] if body[1].isdigit() else body[2:], base)
