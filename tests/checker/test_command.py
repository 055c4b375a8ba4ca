"""`gpuwl check`: the same answers as the script, and the options passed on."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.checker.support import ENVIRONMENT, dump, gpus, node, run_main

GPUWL = Path(sys.executable).with_name("gpuwl")
MIXED = dump(
    node("a", "container", gpus(gpu="4", hostdev="1")),
    node("b", "vm-vgpu", gpus(gpu="4")),
    node("c", None, gpus(gpu="4")),
)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--output", "json", "--ignore", "nvidia.com/hostdev"),
        ("--accept", "vm-vgpu=nvidia.com/gpu", "--ignore=*hostdev", "--require", "2"),
        ("--require", "3"),
    ],
    ids=" ".join,
)
def test_answers_as_the_script(arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [GPUWL, "check", *arguments, "-"],
        input=MIXED,
        capture_output=True,
        env=ENVIRONMENT,
        check=False,
    )
    found = (done.returncode, done.stdout.decode(), done.stderr.decode())
    assert found == run_main(MIXED, *arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("check", "--require", "many", "-"), "--require"), (("local", "up", "--map", "x"), "--anonymise")],
    ids=["require", "map"],
)  # fmt: skip
def test_usage_errors(arguments: tuple[str, ...], words: str) -> None:
    done = subprocess.run(
        [GPUWL, *arguments], capture_output=True, env=ENVIRONMENT, input=MIXED, check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert words in done.stderr.decode()
