"""YAML as Kubernetes reads it: plain data from one document's text.

Depth, size and repetition are bounded here; nothing calls itself for a level of nesting.
"""

from typing import Any

import yaml

from gpuwl.k8s.yamlevents import TAG, Event, YamlError, events, key_text, scalar

DEEPEST = 500
"""Levels of nesting; no object of Kubernetes comes near it."""
MOST_REPEATED = 200_000
"""Values that the aliases of one document may repeat."""

_MERGE = "<<"


def load(text: str) -> Any:  # noqa: ANN401 - whatever the text holds
    """Return the value of a text's document: dictionaries with strings as keys, lists, scalars.

    Raises YamlError for what is not YAML, for tags beyond YAML's own, recursion, nesting below
    DEEPEST and aliases that repeat more than MOST_REPEATED values.
    """
    builder = _Builder()
    for event in events(text):
        builder.take(event)
    return builder.value


class _Open:
    """A collection whose end has not been read yet."""

    __slots__ = ("anchor", "key", "merged", "size", "value")

    def __init__(self, value: dict[str, Any] | list[Any], anchor: str | None) -> None:
        self.value = value
        self.anchor = anchor
        self.key: str | None = None
        self.merged: list[dict[str, Any]] | None = None
        self.size = 1


class _Builder:
    """Builds a document's value from events, without recursion."""

    def __init__(self) -> None:
        self.value: Any = None
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int] | None] = {}
        self._repeated = 0

    def take(self, event: Event) -> None:
        kind = type(event)
        if kind is yaml.ScalarEvent:
            self._take_scalar(event)
        elif kind is yaml.MappingStartEvent:
            self._begin({}, event)
        elif kind is yaml.SequenceStartEvent:
            self._begin([], event)
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            self._end(event)
        elif kind is yaml.AliasEvent:
            self._take_alias(event)

    def _take_scalar(self, event: Event) -> None:
        value = scalar(event)
        holder = self._open[-1] if self._open else None
        if holder is not None and holder.key is None and type(holder.value) is dict:
            if value == _MERGE and not event.style:
                holder.merged = holder.merged or []
            holder.key = value if type(value) is str else key_text(value)
            return
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        self._add(value, 1, event)

    def _begin(self, value: dict[str, Any] | list[Any], event: Event) -> None:
        line = event.start_mark.line
        if event.tag and event.tag not in ("!", f"{TAG}map", f"{TAG}seq"):
            raise YamlError(f"the tag {event.tag} is none that data has", line)
        if len(self._open) >= DEEPEST:
            raise YamlError(f"nested deeper than {DEEPEST} levels", line)
        holder = self._open[-1] if self._open else None
        if holder is not None and holder.key is None and type(holder.value) is dict:
            raise YamlError("a mapping's key is not a string", line)
        if event.anchor:
            self._anchors[event.anchor] = None
        self._open.append(_Open(value, event.anchor))

    def _end(self, event: Event) -> None:
        done = self._open.pop()
        if done.merged:
            for other in done.merged:
                for key, value in other.items():
                    done.value.setdefault(key, value)  # type: ignore[union-attr] # a mapping merges
        if done.anchor:
            self._anchors[done.anchor] = (done.value, done.size)
        self._add(done.value, done.size, event)

    def _take_alias(self, event: Event) -> None:
        line = event.start_mark.line
        found = self._anchors.get(event.anchor)
        if found is None:
            why = "contains itself" if event.anchor in self._anchors else "is not defined"
            raise YamlError(f"the anchor {event.anchor} {why}", line)
        value, size = found
        self._repeated += size
        if self._repeated > MOST_REPEATED:
            raise YamlError(f"aliases repeat more than {MOST_REPEATED} values", line)
        holder = self._open[-1] if self._open else None
        if holder is not None and holder.key is None and type(holder.value) is dict:
            if isinstance(value, (dict, list)):
                raise YamlError("a mapping's key is not a string", line)
            holder.key = key_text(value)
            return
        self._add(value, size, event)

    def _add(self, value: object, size: int, event: Event) -> None:
        if not self._open:
            self.value = value
            return
        holder = self._open[-1]
        holder.size += size
        if isinstance(holder.value, list):
            holder.value.append(value)
        elif holder.key == _MERGE and holder.merged is not None:
            _merge(holder, value, event)
        else:
            holder.value[holder.key or ""] = value
        holder.key = None


def _merge(holder: _Open, value: object, event: Event) -> None:
    for other in value if isinstance(value, list) else [value]:
        if not isinstance(other, dict):
            raise YamlError("<< merges something that is not a mapping", event.start_mark.line)
        if holder.merged is not None:
            holder.merged.append(other)
