"""Listeners of the tests: one that keeps what it hears, one that must hear nothing."""

import pytest

from gpuwl.system.progress import Progress


class Heard(list[str]):
    """The lines of progress that were heard, in order, and the warnings."""

    def __init__(self) -> None:
        super().__init__()
        self.warned: list[str] = []

    def progress(self, now: Progress) -> None:
        """Keep the line."""
        self.append(str(now))

    def warn(self, text: str) -> None:
        """Keep the warning."""
        self.warned.append(text)


class Deaf:
    """Fails the test that says anything."""

    def progress(self, now: Progress) -> None:
        """Fail."""
        pytest.fail(str(now))

    def warn(self, text: str) -> None:
        """Fail."""
        pytest.fail(text)


DEAF = Deaf()
