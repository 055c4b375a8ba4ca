"""How far something is, as data: who works says it, who shows it decides how."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Progress:
    """A stage of some work, such as `compiling`, and how far it is.

    `done` of `total` are counted in `unit` (`packages`, `MB`). `total` is None where nobody knows it,
    and `unit` empty for a stage that is not counted. `detail` says more of what goes on.
    """

    stage: str
    done: int = 0
    total: int | None = None
    unit: str = ""
    detail: str = ""

    def __str__(self) -> str:
        """Say it in one line, such as `compiling: 300 of 1,500 packages`."""
        of = "" if self.total is None else f" of {self.total:,}"
        amount = f"{self.done:,}{of} {self.unit}" if self.unit else ""
        return ": ".join(part for part in (self.stage, amount, self.detail) if part)


class Listener(Protocol):
    """Hears what a long piece of work has to say; both may be called many times a second."""

    def progress(self, now: Progress) -> None:
        """Hear how far it is."""

    def warn(self, text: str) -> None:
        """Hear what must not be lost among the progress, such as that a download failed."""


class Silence:
    """A listener that nobody hears."""

    def progress(self, now: Progress) -> None:
        """Drop it."""

    def warn(self, text: str) -> None:
        """Drop it."""


SILENCE = Silence()
