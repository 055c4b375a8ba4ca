"""Completion in a real bash, by the script that gpuwl prints."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import Run

ASK = """
eval "$(gpuwl completion bash)"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_gpuwl_completion gpuwl
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completed(*words: str) -> list[str]:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [shutil.which("bash") or "bash", "-c", ASK, "bash", *words],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("gpuwl", "ver"), ["verify", "version"]),
        (("gpuwl", "explain", ""), list("12345678")),
        (("gpuwl", "local", "logs", "kube-s"), ["kube-scheduler"]),
        (("gpuwl", "run", "--lab"), ["--lab-nodes"]),
    ],
    ids=["command", "step", "component", "option"],
)
def test_bash_completes(words: tuple[str, ...], expected: list[str]) -> None:
    assert completed(*words) == expected


@pytest.mark.cluster
@pytest.mark.usefixtures("control_plane")
def test_names_of_local_control_planes_are_completed() -> None:
    assert "tests" in completed("gpuwl", "local", "down", "--name", "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_a_script(gpuwl: Run, shell: str) -> None:
    assert f"_GPUWL_COMPLETE={shell}_complete" in gpuwl("completion", shell).stdout
