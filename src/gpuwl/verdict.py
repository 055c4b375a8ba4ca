"""Running an installed checker on a dump, as a program of its own."""

import errno
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpuwl.errors import SetupError

LONGEST_RUN = 300.0


@dataclass(frozen=True)
class Verdict:
    """Exit code, standard output and standard error of one run of the checker."""

    code: int
    output: str
    errors: str


def of(
    script: Path,
    dump: Path,
    *,
    limit: float = LONGEST_RUN,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Verdict:
    """Run `script dump` and return what it said; `limit` is in seconds.

    `folder` is where it runs and `environment` what it sees, both the caller's where not given.
    Raises SetupError where the script cannot be started, or does not end, and then kills it and
    what it started.
    """
    command = [str(script.resolve()), str(dump.resolve())]
    try:
        return _finished(_start(command, folder, environment), limit)
    except (OSError, subprocess.TimeoutExpired) as error:
        words = error.strerror if isinstance(error, OSError) else f"no answer within {limit:g} s"
        raise SetupError(f"cannot run {script}: {words}", hint=f"ls -l {script}") from None


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


def _finished(process: "subprocess.Popen[bytes]", limit: float) -> Verdict:
    with process:
        try:
            output, errors = process.communicate(timeout=limit)
        finally:
            if process.returncode is None:  # not reaped, so its group's number is still its own
                os.killpg(process.pid, signal.SIGKILL)
    return Verdict(
        process.returncode, output.decode(errors="replace"), errors.decode(errors="replace")
    )
