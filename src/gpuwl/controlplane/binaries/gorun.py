"""Running one go command: its lines as they come, a log of all of them, and never an orphan."""

import os
import queue
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gpuwl.errors import SetupError

_HEAD = "$ go "  # what each run's part of the log starts with


@dataclass(frozen=True)
class GoCommand:
    """The go command in one folder and environment, with a log that several runs share."""

    go: Path
    cwd: Path
    environment: Mapping[str, str]
    log: Path

    def run(self, *arguments: str) -> Iterator[str | None]:
        """Yield the lines that go prints, and None for each second without one.

        go and the compilers that it starts are a process group of their own, which dies with
        whatever ends this generator early, a SIGKILL of gpuwl too. Killing go is harmless, its
        caches are written so that a half-written entry does not count
        (https://pkg.go.dev/cmd/go#hdr-Build_and_test_caching). Raises SetupError where go fails.
        """
        with self.log.open("a", buffering=1, encoding="utf-8") as log:
            log.write(f"{_HEAD}{' '.join(arguments)}\n")
            tail: deque[str] = deque(maxlen=12)
            with _group() as group:
                process = self._start(arguments, group)
                try:
                    for line in _lines(process):
                        if line is not None:
                            log.write(line + "\n")
                            if " " in line and not line.startswith("go: downloading"):
                                tail.append(line)  # a word, and no mere name of a package
                        yield line
                    code = process.wait()
                finally:
                    _reap(process, group)
        if code:
            raise SetupError(
                f"go {arguments[0]} failed",
                details=[*tail, f"log: {self.log}"],
                hint="what was done is kept: the next try goes on from there",
            )

    def logged(self, command: str) -> set[str]:
        """Return all lines that `go <command>` ever printed, in broken-off runs too."""
        lines: set[str] = set()
        wanted = False
        try:
            text = self.log.read_text("utf-8", errors="replace")
        except OSError:
            return lines
        for line in text.splitlines():
            if line.startswith(_HEAD):
                wanted = line.startswith(f"{_HEAD}{command} ")
            elif wanted:
                lines.add(line)
        return lines

    def _start(self, arguments: tuple[str, ...], group: int) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                [self.go, *arguments],
                cwd=self.cwd,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                process_group=group,
            )
        except OSError as error:
            raise SetupError(f"{self.go} cannot be started", details=[str(error)]) from error


@contextmanager
def _group() -> Iterator[int]:
    """Yield a process group that a Ctrl-C of the terminal does not reach, and kill it at the end.

    Its first member reads a pipe that only this process holds open: however this process ends, the
    read ends too, and the group is killed by its own member.
    """
    watch = subprocess.Popen(
        ["/bin/sh", "-c", "read -r line; kill -KILL 0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        process_group=0,
    )
    try:
        yield watch.pid
    finally:
        os.killpg(watch.pid, signal.SIGKILL)  # not reaped yet, so the number is still its own
        watch.wait()
        if watch.stdin:
            watch.stdin.close()


def _reap(process: subprocess.Popen[bytes], group: int) -> None:
    os.killpg(group, signal.SIGKILL)
    process.wait()
    if process.stdout:
        process.stdout.close()


def _lines(process: subprocess.Popen[bytes]) -> Iterator[str | None]:
    lines: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_pump, args=(process, lines), daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=1)
        except queue.Empty:
            yield None
            continue
        if line is None:
            return
        yield line


def _pump(process: subprocess.Popen[bytes], lines: "queue.Queue[str | None]") -> None:
    """Hand on every line, then None: the end of go's output, or its pipe closed under us."""
    with suppress(OSError, ValueError):
        for raw in process.stdout or ():
            lines.put(raw.decode("utf-8", errors="replace").rstrip("\r\n"))
    lines.put(None)
