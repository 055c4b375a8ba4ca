"""Where a field stands in a YAML document: read from its events, up to the field and no further."""

from collections.abc import Iterator, Sequence

import yaml

from gpuwl.k8s.yamlevents import Event, events, key

Path = Sequence[str | int]
Mark = tuple[int, int, int]
"""Line, column and index in the text, all from 0."""


def line_of(text: str, path: Path) -> int:
    """Return the line, from 0, of a field's key or a list's element: of the deepest that is there."""
    content = _Content(events(text))
    event = next(content)
    place = _mark(event)
    for step in path:
        found = _enter(content, event, step)
        if found is None:
            break
        place, event = found
    return place[0]


def elements(text: str, path: Path) -> list[Mark]:
    """Return where each element of the list at a path begins."""
    content = _Content(events(text))
    event = next(content)
    for step in path:
        found = _enter(content, event, step)
        if found is None:
            return []
        event = found[1]
    if not isinstance(event, yaml.SequenceStartEvent):
        return []
    places = []
    while not isinstance(element := next(content), yaml.SequenceEndEvent):
        places.append(_mark(element))
        content.skip(element)
    return places


def _mark(event: Event) -> Mark:
    mark = event.start_mark
    return mark.line, mark.column, mark.index


class _Content:
    """The events that stand for values; those of stream and document are left out."""

    _FRAME = (
        yaml.StreamStartEvent,
        yaml.StreamEndEvent,
        yaml.DocumentStartEvent,
        yaml.DocumentEndEvent,
    )

    def __init__(self, events: Iterator[Event]) -> None:
        self._events = events

    def __iter__(self) -> "_Content":
        return self

    def __next__(self) -> Event:
        for event in self._events:
            if not isinstance(event, self._FRAME):
                return event
        raise StopIteration

    def skip(self, event: Event) -> None:
        """Read past the value that an event began."""
        depth = int(isinstance(event, yaml.CollectionStartEvent))
        while depth > 0:
            event = next(self)
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1


def _enter(content: _Content, event: Event, step: str | int) -> tuple[Mark, Event] | None:
    """Return the place of a member of the value that an event began, and its own first event."""
    if isinstance(event, yaml.MappingStartEvent) and isinstance(step, str):
        while not isinstance(name := next(content), yaml.MappingEndEvent):
            value = next(content) if isinstance(name, yaml.ScalarEvent) else None
            if value is None:
                return None
            if key(name) == step:
                return _mark(name), value
            content.skip(value)
    elif isinstance(event, yaml.SequenceStartEvent) and isinstance(step, int):
        while not isinstance(element := next(content), yaml.SequenceEndEvent):
            if step == 0:
                return _mark(element), element
            step -= 1
            content.skip(element)
    return None
