"""Building dumps and running the checker, in process and as the script."""

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from gpuwl import checker

REPOSITORY = Path(__file__).parents[2]
SCRIPT = REPOSITORY / "scripts" / "check-config.sh"
CHECKER = REPOSITORY / "src" / "gpuwl" / "checker.py"
CASES = sorted((Path(__file__).parent / "cases").glob("*.json"))

Json = object  # whatever json.dumps writes

# A python3 that is a wrapper script, as version managers put it on PATH, would cost 0.1 s a run.
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
ENVIRONMENT = os.environ | {"PATH": PATH}


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Stdout with each MISMATCH line cut down to its node."""
        return [line.split(" ")[0] for line in self.out.splitlines()]


def node(
    name: Json = "n", label: Json = None, allocatable: Json = None, capacity: Json = None
) -> dict[str, Json]:
    labels: dict[str, Json] = {"kubernetes.io/os": "linux"}
    if label is not None:
        labels[checker.LABEL_KEY] = label
    status: dict[str, Json] = {}
    if allocatable is not None:
        status["allocatable"] = allocatable
    if capacity is not None:
        status["capacity"] = capacity
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": status,
    }


def gpus(**amounts: Json) -> dict[str, Json]:
    """`gpus(gpu="4")`: what a node has, with the prefix put before each name."""
    return {f"nvidia.com/{name}": amount for name, amount in amounts.items()}


def dump(*nodes: Json, **fields: Json) -> bytes:
    document: dict[str, Json] = {"apiVersion": "v1", "items": list(nodes), "kind": "List"}
    return json.dumps(document | fields, indent=4).encode()


def run_main(data: bytes, *arguments: str) -> Result:
    """Run the checker in this process on standard input."""
    out, err = io.StringIO(), io.StringIO()
    with (
        patch("sys.stdin", io.TextIOWrapper(io.BytesIO(data))),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = checker.main([*arguments, "-"])
    return Result(code, out.getvalue(), err.getvalue())


def run_script(
    *arguments: str | Path,
    data: bytes = b"",
    command: tuple[str | Path, ...] = (SCRIPT,),
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Result:
    """Run check-config.sh, or what `command` says, on its own, with this test's own Python."""
    done = subprocess.run(
        [*command, *arguments],
        input=data,
        capture_output=True,
        env=ENVIRONMENT if env is None else env,
        cwd=cwd,
        check=False,
    )
    # Strict: all that the checker writes is ASCII.
    return Result(done.returncode, done.stdout.decode("ascii"), done.stderr.decode("ascii"))


@contextlib.contextmanager
def chunks_of(size: int) -> Iterator[None]:
    """Let the checker read so little at a time that every token is cut somewhere."""
    with patch.object(checker, "CHUNK", size):
        yield
