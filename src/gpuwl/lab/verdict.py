"""Running an installed checker on a dump, as a program of its own."""

import contextlib
import errno
import os
import resource
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpuwl.errors import SetupError

LONGEST_RUN = 300.0
LONGEST_OUTPUT = 64 << 20
"""Bytes: a quarter of a million bad nodes. Whoever says more is not judging nodes."""
CHUNK = 1 << 16


@dataclass(frozen=True)
class Verdict:
    """Exit code, standard output and standard error of one run of the checker."""

    code: int
    output: str
    errors: str


def search_path() -> str:
    """Return the PATH for a checker: `python3` is the interpreter that gpuwl runs on.

    So a checker in Python works, and works alike, wherever gpuwl runs it, whether the machine's own
    python3 is old or missing.
    """
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


def of(  # noqa: PLR0913 - each is a fact of the run
    script: Path,
    dump: Path,
    *,
    limit: float = LONGEST_RUN,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    limits: Mapping[int, int] | None = None,
    stop: int | None = None,
) -> Verdict:
    """Run `script dump` and return what it said; `limit` is in seconds.

    `folder` is where it runs and `environment` what it sees, both the caller's where not given;
    `limits` are those of setrlimit(2), by resource. What it started and left running is killed.
    Raises SetupError where the script cannot be started, does not end, or says more than
    LONGEST_OUTPUT, and once the descriptor `stop` can be read.
    """
    command = [str(script.resolve()), str(dump.resolve())]
    try:
        process = _start(command, folder, environment)
        _limit(process.pid, limits or {})
        return _finished(process, limit, stop)
    except OSError as error:
        words = str(error.strerror)
    except subprocess.TimeoutExpired:
        words = f"no answer within {limit:g} s"
    except OverflowError as error:
        words = str(error)
    raise SetupError(f"cannot run {script}: {words}", hint=f"ls -l {script}")


def _start(
    command: list[str], folder: Path | None, environment: Mapping[str, str] | None
) -> "subprocess.Popen[bytes]":
    def start(words: list[str]) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=environment,
            process_group=0,
        )

    try:
        return start(command)
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
        return start(["/bin/sh", *command])  # no #! line: what every shell does then


def _limit(pid: int, limits: Mapping[int, int]) -> None:
    """Limit a process that has just begun, and so whatever it starts from now on."""
    for kind, most in limits.items():
        with contextlib.suppress(OSError):  # it has ended, or somebody set less
            resource.prlimit(pid, kind, (most, most))


def _finished(process: "subprocess.Popen[bytes]", limit: float, stop: int | None) -> Verdict:
    with process:
        try:
            output, errors = _said(process, limit, stop)
        finally:  # not reaped yet, so its group's number is still its own; macOS has none of a zombie
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
    return Verdict(process.returncode, output, errors)


def _said(process: "subprocess.Popen[bytes]", limit: float, stop: int | None) -> tuple[str, str]:
    """Wait for the end of a process without reaping it, and return what it wrote until then."""
    streams = [stream.fileno() for stream in (process.stdout, process.stderr) if stream]
    said = {stream: bytearray() for stream in streams}
    deadline = time.monotonic() + limit
    with selectors.DefaultSelector() as selector, _end_of(process) as end:
        for source in (end, *streams):
            os.set_blocking(source, False)
            selector.register(source, selectors.EVENT_READ)
        if stop is not None:
            selector.register(stop, selectors.EVENT_READ)
        ended = False
        while not ended:
            ready = [key.fd for key, _ in selector.select(max(deadline - time.monotonic(), 0))]
            if not ready:
                raise subprocess.TimeoutExpired(process.args, limit)
            if stop in ready:
                raise InterruptedError(errno.EINTR, "stopped")
            ended = end in ready
            for stream in [one for one in streams if one in selector.get_map()]:
                if not _drain(stream, said[stream]):
                    selector.unregister(stream)
    output, errors = (text.decode(errors="replace") for text in said.values())
    return output, errors


@contextlib.contextmanager
def _end_of(process: "subprocess.Popen[bytes]") -> Iterator[int]:
    """Yield a descriptor that can be read once the process has ended: pidfd_open(2), or a pipe."""
    descriptor = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else _pipe_of(process)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _pipe_of(process: "subprocess.Popen[bytes]") -> int:
    """Return the end of a pipe that is closed once the process has ended, for macOS."""
    reader, writer = os.pipe()

    def wait() -> None:
        process.wait()
        os.close(writer)

    threading.Thread(target=wait, daemon=True).start()
    return reader


def _drain(stream: int, into: bytearray) -> bool:
    """Take what a pipe holds now, and return whether more may come."""
    while True:
        try:
            chunk = os.read(stream, CHUNK)
        except BlockingIOError:
            return True
        if not chunk:
            return False
        into += chunk
        if len(into) > LONGEST_OUTPUT:
            raise OverflowError(f"it says more than {LONGEST_OUTPUT >> 20} MiB")
