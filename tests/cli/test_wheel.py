"""The wheel in an empty environment, without the repository; and a run in which warnings are errors."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.conftest import program

from gpuwl import __version__
from gpuwl.controlplane import plane

REPOSITORY = Path(__file__).parents[2]
CASE = REPOSITORY / "tests/checker/cases/001-three-modes.json"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    subprocess.run([*pip, "-w", str(folder), str(REPOSITORY)], check=True)
    return next(folder.glob("*.whl"))


def test_what_the_wheel_brings(wheel: Path) -> None:
    assert wheel.name == f"gpuwl-{__version__}-py3-none-any.whl"
    names = set(zipfile.ZipFile(wheel).namelist())
    data = f"gpuwl-{__version__}.data/data/share/man/man1"
    assert {"gpuwl/py.typed", "gpuwl/texts/ko/help.toml", f"{data}/gpuwl-run.1"} <= names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not [name for name in names if name.startswith("tests/")]


def test_it_works_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    pip = [str(environment / "bin/pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, str(wheel)], check=True)
    outside = {**os.environ, "HOME": str(tmp_path), "PYTHONWARNINGS": "error"}

    def said(*words: str, name: str = "gpuwl") -> str:
        done = subprocess.run(
            [environment / "bin" / name, *words],
            env=outside,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stderr == ""
        return done.stdout

    assert said("--version") == f"gpuwl {__version__}\n"
    assert said("version", name="kubectl-gpuwl") == f"gpuwl {__version__}\n"
    assert said("check", str(CASE)) == "OK=3\n"
    assert "7단계" in said("explain", "7", "--lang", "ko")
    assert said("check", "--print-script") == (REPOSITORY / "scripts/check-config.sh").read_text()


@pytest.mark.cluster
def test_a_run_in_which_warnings_are_errors(control_plane: plane.Plane, tmp_path: Path) -> None:
    gpuwl = program("gpuwl", PYTHONWARNINGS="error", KUBECONFIG=str(control_plane.kubeconfig))
    for words in (("run", "--all"), ("verify",), ("reset", "--files")):
        done = gpuwl(*words, "--root", str(tmp_path / "root"))
        assert done.returncode == 0, done.stderr
        assert "Warning" not in done.stderr
