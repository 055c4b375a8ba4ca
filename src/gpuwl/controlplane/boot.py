"""The components of one start, watched: one that dies or hangs ends the start."""

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

from gpuwl.controlplane import process, state
from gpuwl.errors import SetupError
from gpuwl.system import waiting

STALL_SECONDS = 30.0
"""How long nothing may move before a start is given up."""
LONGEST_SECONDS = 300.0
"""How long a start may go on moving without getting there."""
LAST_LINES = 5
TAIL_BYTES = 65536
ROOM = 64_000_000
"""Bytes of disk that etcd takes at once for a file of its log, of which it makes two."""
PANICS = ("panic: ", "fatal error: ")
"""How Go's runtime begins its last words."""


class PortTakenError(Exception):
    """Somebody else took the port between our choice and the API server's bind."""


class ComponentError(SetupError):
    """A component died or hangs; its log is kept for people to read."""


class Boot:
    """The components that one start has spawned so far, out of one folder of binaries."""

    def __init__(
        self, folder: Path, programs: Path, environment: Mapping[str, str], *, tied: bool = False
    ) -> None:
        self.folder = folder
        self._tied = tied
        self._environment = environment
        self._programs = programs
        self._children: dict[str, process.Child] = {}
        self._began = self._moved = time.monotonic()
        self._written = 0

    def spawn(self, name: str, arguments: list[str]) -> None:
        """Start one component."""
        launch = process.Launch(
            name=name,
            program=self._programs / name,
            arguments=arguments,
            folder=self.folder,
            environment=self._environment,
            gate=state.GATE,
            tied=self._tied,
        )
        self._children[name] = process.spawn(launch)
        self._moved = time.monotonic()

    def wait(self, probe: Callable[[], bool | None], what: str) -> None:
        """Wait until the probe succeeds, as long as everything lives and something moves."""

        def look() -> bool | None:
            self.check()
            self._check_progress(what)
            return probe()

        waiting.until(look, seconds=float("inf"), every=0.01)
        self._moved = time.monotonic()

    def check(self) -> None:
        """Raise ComponentError for a component that died, PortTakenError where that was why."""
        for name, child in self._children.items():
            if child.poll() is not None:
                self._report_death(name, child.returncode)

    def settle(self) -> None:
        """Wait until every child is on record as what it is."""
        for name, child in self._children.items():
            process.settle(child, process.record_path(self.folder, name))

    def _report_death(self, name: str, code: int) -> NoReturn:
        log = process.log_path(self.folder, name)
        lines = last_lines(log)
        if name == "kube-apiserver" and any("address already in use" in line for line in lines):
            raise PortTakenError
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        raise ComponentError(
            f"{name} ended while the local control plane started ({how})",
            details=[*(lines or ["it wrote nothing"]), *_little_room(self.folder)],
            hint=f"its whole log: {log}",
        )

    def _check_progress(self, what: str) -> None:
        now, written = time.monotonic(), self._log_bytes()
        if written != self._written:
            self._written, self._moved = written, now
        if now - self._moved >= STALL_SECONDS:
            self._report_hang(f"nothing moved for {now - self._moved:.0f} s", what)
        if now - self._began >= LONGEST_SECONDS:
            self._report_hang(f"still not there after {now - self._began:.0f} s", what)

    def _report_hang(self, how: str, what: str) -> NoReturn:
        ends = {name: last_lines(process.log_path(self.folder, name), 2) for name in self._children}
        raise ComponentError(
            f"the local control plane does not come up: {how}, waiting {what}",
            details=[f"{name}: {line}" for name, lines in ends.items() for line in lines],
            hint=f"its logs: {self.folder}",
        )

    def _log_bytes(self) -> int:
        return sum(process.log_path(self.folder, name).stat().st_size for name in self._children)


def _little_room(folder: Path) -> list[str]:
    """Return a line about a disk that is full: what dies of that often cannot write why."""
    free = shutil.disk_usage(folder).free
    if free >= ROOM:
        return []
    return [
        f"{folder} has {free / 1e6:.0f} MB of disk left, and a start takes {2 * ROOM / 1e6:.0f}"
    ]


def last_lines(log: Path, count: int = LAST_LINES) -> list[str]:
    """Return the last lines of a log that say something, oldest first; empty without a log.

    Where a Go program panicked, these are the lines that say why, and not the stack below them.
    """
    try:
        with log.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, 2) - TAIL_BYTES))
            text = stream.read().decode(errors="replace")
    except OSError:
        return []
    lines = [line for line in text.splitlines() if line.strip()]
    panics = [place for place, line in enumerate(lines) if line.startswith(PANICS)]
    return lines[panics[-1] :][:count] if panics else lines[-count:]
