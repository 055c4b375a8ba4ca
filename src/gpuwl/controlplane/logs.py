"""The logs of a local control plane: where they are, and what is added to them."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from gpuwl.controlplane import components, process, state
from gpuwl.errors import InputError, SetupError
from gpuwl.system import waiting

POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Line:
    """One line of a component's log, without its line break."""

    component: str
    text: str


def paths(name: str, component: str | None = None) -> list[Path]:
    """Return the logs of a name, all or that of one component, in the order of start.

    Raises InputError for an unknown component, SetupError where there are no logs: `down` removes
    them.
    """
    if component not in {None, *components.NAMES}:
        raise InputError(
            f"there is no component {component!r}", hint=f"one of {', '.join(components.NAMES)}"
        )
    wanted = components.NAMES if component is None else (component,)
    found = [process.log_path(state.folder(name), part) for part in wanted]
    there = [path for path in found if path.exists()]
    if not there:
        raise SetupError(
            f"the local control plane {name!r} has no logs: it is down",
            hint=f"start it: gpuwl local up --name {name}",
        )
    return there


def read(logs: Sequence[Path]) -> Iterator[Line]:
    """Return the lines that are there, one log after the other."""
    for log in logs:
        with log.open(errors="replace") as stream:
            for text in stream:
                yield Line(log.stem, text.rstrip("\n"))


def follow(logs: Sequence[Path], on_idle: Callable[[], None] = lambda: None) -> Generator[Line]:
    """Return the lines that are there and then those that are added, until the logs are removed.

    `on_idle` is called several times a second while there are none, and may raise to end it.
    """
    streams = {log: log.open(errors="replace") for log in logs}
    try:
        while True:
            lines = [Line(log.stem, text) for log in logs for text in _whole_lines(streams[log])]
            yield from lines
            if not lines:
                if not any(log.exists() for log in logs):
                    return
                on_idle()
                waiting.pause(POLL_SECONDS)
    finally:
        for stream in streams.values():
            stream.close()


def _whole_lines(stream: TextIO) -> Iterator[str]:
    """Return what was added; a line that is not finished is left for the next time."""
    while True:
        place = stream.tell()
        text = stream.readline()
        if not text.endswith("\n"):
            stream.seek(place)
            return
        yield text[:-1]
