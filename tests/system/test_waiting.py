"""Waiting ends when it should: at once, in time, and not before the deadline."""

import time

from gpuwl.system import waiting


def test_what_is_there_is_returned_without_a_pause() -> None:
    began = time.monotonic()
    assert waiting.until(lambda: "there", seconds=10, every=5) == "there"
    assert time.monotonic() - began < 1


def test_false_and_zero_are_answers() -> None:
    assert waiting.until(lambda: False, seconds=10, every=5) is False
    assert waiting.until(lambda: 0, seconds=10, every=5) == 0


def test_it_asks_once_even_without_time() -> None:
    asked: list[int] = []
    assert waiting.until(lambda: asked.append(1), seconds=0) is None
    assert waiting.until(lambda: asked.append(1), seconds=-1) is None
    assert len(asked) == 2


def test_it_asks_once_more_at_the_deadline() -> None:
    began = time.monotonic()
    late = waiting.until(lambda: (time.monotonic() - began >= 0.2) or None, seconds=0.2, every=10)
    assert late is True


def test_it_does_not_give_up_early() -> None:
    began = time.monotonic()
    assert waiting.until(lambda: None, seconds=0.1, every=0.01) is None
    assert 0.1 <= time.monotonic() - began < 5


def test_it_pauses_between_two_questions() -> None:
    asked: list[int] = []
    waiting.until(lambda: asked.append(1), seconds=0.2, every=0.05)
    assert 2 <= len(asked) <= 6
