"""What a log shows of progress, where no terminal shows a moving line."""

from types import SimpleNamespace

import pytest

from gpuwl.cli import console
from gpuwl.system.progress import Progress


def test_a_stage_is_told_at_once_and_its_numbers_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([100.0, 101.0, 102.0, 116.0, 117.0, 118.0, 119.0])
    ticking = SimpleNamespace(monotonic=lambda: next(clock))
    monkeypatch.setattr(console, "time", ticking)
    reporter = console.Reporter()
    for now in (
        *(Progress("compiling", done, 9, "packages") for done in (1, 2, 3, 4)),
        *(Progress("linking", 9, 9, "packages") for _ in range(2)),
        Progress("removing the build's caches"),
    ):
        reporter.progress(now)
    assert capsys.readouterr().err.splitlines() == [
        "compiling: 1 of 9 packages, 0 s",
        "compiling: 4 of 9 packages, 16 s",
        "linking: 9 of 9 packages, 0 s",
        "removing the build's caches",
    ]
