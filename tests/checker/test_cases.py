"""Every dump from the field, through the script as step 8 installs it."""

from pathlib import Path

import pytest
from tests.checker.support import CASES, Result, run_main, run_script

from gpuwl.lab import check_script
from gpuwl.lab.artifacts import Artifacts


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return check_script.install(Artifacts(tmp_path_factory.mktemp("lab")))


def assert_as_expected(case: Path, result: Result) -> None:
    code, *lines = case.with_suffix(".expect").read_text().splitlines()
    assert (result.code, result.lines) == (int(code), lines)
    assert "Traceback" not in result.err
    said = result.err.splitlines()
    if result.code == 2:
        assert len(said) == 1
    else:
        assert all(line.startswith("check-config: warning: ") for line in said)


def test_all_cases_are_here() -> None:
    assert len(CASES) == 20


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_case(case: Path, installed: Path) -> None:
    assert_as_expected(case, run_script(case, command=(installed,)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_case_in_process(case: Path) -> None:
    assert_as_expected(case, run_main(case.read_bytes()))
