"""Grading: right checkers are accepted, wrong ones refused for what they lack, whatever the seed."""

import contextlib
import io
import json
import sys
from importlib import resources
from pathlib import Path

import pytest
from tests.checker import second_opinion
from tests.verification import checkers

from gpuwl.lab.artifacts import Artifacts
from gpuwl.lab.verdict import Verdict
from gpuwl.verification.grading import cases
from gpuwl.verification.grading.grade import ALL_PARTS, grade
from gpuwl.verification.grading.running import Sealed

SEEDS = range(3)


class InProcess:
    """Runs a checker in Python within the tests: a corpus in processes would take minutes."""

    def __init__(self, source: str, folder: Path) -> None:
        self._code = compile(source, "checker", "exec")
        self._dump = folder / "nodes.json"

    def __call__(self, content: bytes | None) -> Verdict:
        self._dump.unlink(missing_ok=True)
        if content is not None:
            self._dump.write_bytes(content)
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
            patch.setattr(sys, "argv", ["check-config.sh", str(self._dump)])
            with contextlib.redirect_stderr(err):
                return Verdict(self._exit_code(), out.getvalue(), err.getvalue())

    def _exit_code(self) -> int:
        try:
            exec(self._code, {"__name__": "__main__"})  # noqa: S102 - our own corpus
        except SystemExit as ended:
            return int(ended.code or 0)
        except Exception as error:  # noqa: BLE001 - as Python itself ends then
            print(repr(error), file=sys.stderr)
            return 1
        return 0

    def stop(self) -> None:
        """Nothing runs elsewhere."""


def lacking(source: str, folder: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    # sys.argv is one for all threads
    monkeypatch.setattr("gpuwl.verification.grading.grade.AT_ONCE", 1)
    run = InProcess(source, folder)
    return {one.fault.part for one in grade(run, cases.cases(seed))}


def changed(old: str, new: str) -> str:
    assert old in checkers.PLAIN, old
    return checkers.PLAIN.replace(old, new) if old else checkers.PLAIN


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("name", checkers.WRONG)
def test_a_wrong_checker_is_refused_for_what_it_lacks(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new, parts = checkers.WRONG[name]
    for seed in SEEDS:
        assert parts <= lacking(changed(old, new), tmp_path, seed, monkeypatch), seed


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("name", checkers.RIGHT_PYTHON)
def test_a_right_checker_is_accepted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in SEEDS:
        source = changed(*checkers.RIGHT_PYTHON[name])
        assert lacking(source, tmp_path, seed, monkeypatch) == set(), seed


def in_a_shell(text: str, folder: Path) -> set[str]:
    artifacts = Artifacts(folder)
    path = artifacts.write("bin/check-config.sh", text, mode=0o755)
    with Sealed(path, artifacts, 30) as run:
        return {one.fault.part for one in grade(run, cases.cases(1))}


def test_a_right_checker_in_bash_and_jq_is_accepted(tmp_path: Path) -> None:
    assert in_a_shell(checkers.JQ, tmp_path) == set()


@pytest.mark.parametrize("example", ["checker.jq.txt", "checker.py.txt"])
def test_what_explain_teaches_is_right(example: str, tmp_path: Path) -> None:
    text = resources.files("gpuwl.lab").joinpath("examples", example).read_text(encoding="utf-8")
    assert in_a_shell(text, tmp_path) == set()


@pytest.mark.parametrize("name", checkers.WRONG_SHELL)
def test_a_wrong_checker_in_a_shell_is_refused(name: str, tmp_path: Path) -> None:
    text, parts = checkers.WRONG_SHELL[name]
    assert parts <= in_a_shell(text, tmp_path)


def test_the_answers_are_those_of_an_independent_implementation() -> None:
    for seed in range(30):
        for case in cases.cases(seed):
            if case.is_dump:
                assert case.content is not None
                _, lines = second_opinion.verdict(json.loads(case.content))
                expected = [f"MISMATCH={name}" for name in case.bad] or [f"OK={case.judged}"]
                assert sorted(lines) == sorted(expected), (seed, case.part)


def test_a_seed_makes_the_same_dumps_and_another_one_others() -> None:
    assert cases.cases(7) == cases.cases(7)
    of_one, of_other = ({one.content for one in cases.cases(seed)} for seed in (7, 8))
    assert len(of_one & of_other) <= 2  # no file, and the empty one
    assert {one.part for one in cases.cases(7)} < set(ALL_PARTS)
