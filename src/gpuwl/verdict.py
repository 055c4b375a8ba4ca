"""Running an installed checker on a dump, as a program of its own."""

import subprocess
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


def of(script: Path, dump: Path) -> Verdict:
    """Run `script dump` and return what it said.

    Raises SetupError where the script cannot be started or does not end.
    """
    command = [str(script.resolve()), str(dump.resolve())]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=LONGEST_RUN, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SetupError(f"cannot run {script}: {error}", hint=f"ls -l {script}") from None
    return Verdict(
        done.returncode,
        done.stdout.decode(errors="replace"),
        done.stderr.decode(errors="replace"),
    )
