"""Waiting with a deadline. The only module that may sleep."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(probe: Callable[[], T | None], *, seconds: float, every: float = 0.05) -> T | None:
    """Call `probe` until it returns something other than None, and return that.

    Returns None once `seconds` have passed; `probe` is called at least once, and once more at the
    deadline. `every` is the pause between two calls, in seconds.
    """
    deadline = time.monotonic() + seconds
    while True:
        found = probe()
        left = deadline - time.monotonic()
        if found is not None or left <= 0:
            return found
        time.sleep(min(every, left))


def pause(seconds: float) -> None:
    """Sleep between two tries whose spacing the caller decides."""
    time.sleep(seconds)
