"""What one call of the command line knows: its options and its one output document."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from gpuwl.errors import GpuwlError
from gpuwl.target.settings import Settings

if TYPE_CHECKING:
    from gpuwl.cli.console import Reporter

DOCUMENT_VERSION = 1
TARGETING = ("root", "kubeconfig", "context", "local", "name", "lab_nodes")
"""The options that decide what a command works on."""


class Given(NamedTuple):
    """An option's value and its rank: 1 from a variable, 2 from the command line."""

    value: object
    rank: int


@dataclass
class App:
    """Collects options as they are parsed, before or after the command, and what to print."""

    command: str = ""
    payload: dict[str, Any] = field(default_factory=dict)
    document_done: bool = False
    _given: dict[str, Given] = field(default_factory=dict)
    _error: GpuwlError | None = None
    _reporter: "Reporter | None" = None

    def remember(self, name: str, value: object, rank: int) -> None:
        """Keep an option's value unless a stronger one is known."""
        if rank >= self._rank(name):
            self._given[name] = Given(value, rank)

    def typed(self) -> set[str]:
        """Return the names of the options that stand on the command line."""
        return {name for name, given in self._given.items() if given.rank == 2}

    @property
    def settings(self) -> Settings:
        """The options, with defaults for those not given."""
        known = {name: given.value for name, given in self._coherent().items()}
        if "root" in known:
            known["chosen_root"] = known.pop("root")
        known["typed"] = self._words()
        return Settings(**cast("dict[str, Any]", known))  # click made each value of its type

    @property
    def reporter(self) -> "Reporter":
        """Where to write; made at the first use, once the options are known."""
        if self._reporter is None:
            from gpuwl.cli.console import Reporter

            settings = self.settings
            self._reporter = Reporter(
                output=settings.output, quiet=settings.quiet, verbose=settings.verbose
            )
        return self._reporter

    def fail(self, error: GpuwlError) -> None:
        """Print an error, and keep it for the document."""
        if error.command:
            error.hint = self.settings.again(error.command)
        self._error = error
        self.reporter.error(error)

    def print_document(self, code: int) -> None:
        """Print the JSON document, once, where --output json asks for it."""
        nothing_ran = not self.command and self._error is None  # --help, --version
        if self.settings.output != "json" or self.document_done or nothing_ran:
            return
        head = {"version": DOCUMENT_VERSION, "command": self.command, "exitCode": code}
        self.reporter.document({**head, **self.payload, "error": _as_data(self._error)})

    def _words(self) -> tuple[str, ...]:
        """Return what to add to a command so that it works on the same target and root as this."""
        coherent = self._coherent()
        given = [(name, coherent[name]) for name in TARGETING if name in coherent]
        words: list[str] = []
        for name, (value, rank) in given:
            if rank == 2 and value:
                words += [f"--{name.replace('_', '-')}", *_values(value)]
        return tuple(words)

    def _coherent(self) -> Mapping[str, Given]:
        """Drop what a variable says where the command line names the other kind of target."""
        local = self._rank("local", truly=True)
        cluster = max(self._rank("kubeconfig"), self._rank("context"))
        dropped: set[str] = set()
        if local > cluster:
            dropped = {"kubeconfig", "context"}
        elif cluster > local:
            dropped = {"local"}
        return {name: kept for name, kept in self._given.items() if name not in dropped}

    def _rank(self, name: str, *, truly: bool = False) -> int:
        value, rank = self._given.get(name, Given(None, 0))
        return 0 if truly and not value else rank


def _values(value: object) -> list[str]:
    if value is True:
        return []
    return [",".join(value) if isinstance(value, tuple) else str(value)]


def _as_data(error: GpuwlError | None) -> dict[str, Any] | None:
    if error is None:
        return None
    return {"message": error.message, "details": list(error.details), "hint": error.hint}
