"""What a log shows of progress, where no terminal shows a moving line."""

from types import SimpleNamespace

import pytest

from gpuwl.cli import console


def test_a_stage_is_told_at_once_and_its_numbers_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([100.0, 101.0, 102.0, 116.0, 117.0, 118.0, 119.0])
    ticking = SimpleNamespace(monotonic=lambda: next(clock))
    monkeypatch.setattr(console, "time", ticking)
    reporter = console.Reporter()
    for line in (
        "compiling: 1 of 9 packages, 1 s",
        "compiling: 2 of 9 packages, 2 s",
        "compiling: 3 of 9 packages, 3 s",
        "compiling: 4 of 9 packages, 17 s",
        "linking: 9 of 9 packages, 18 s",
        "linking: 9 of 9 packages, 19 s",
        "removing the build's caches",
    ):
        reporter.progress(line)
    assert capsys.readouterr().err.splitlines() == [
        "compiling: 1 of 9 packages, 1 s",
        "compiling: 4 of 9 packages, 17 s",
        "linking: 9 of 9 packages, 18 s",
        "removing the build's caches",
    ]
