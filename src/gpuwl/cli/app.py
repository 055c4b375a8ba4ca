"""What one call of the command line knows: its options and its one output document."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuwl.errors import GpuwlError
from gpuwl.target.settings import Settings

DOCUMENT_VERSION = 1
TARGETING = ("kubeconfig", "context", "local", "name", "lab_nodes")
"""The options that decide which cluster, and what of it, a command works on."""


@dataclass
class App:
    """Collects options as they are parsed, before or after the command, and what to print.

    `options` maps a name to its value and its rank (1 from a variable, 2 from the command line).
    """

    options: dict[str, tuple[Any, int]] = field(default_factory=dict)
    command: str = ""
    payload: dict[str, Any] = field(default_factory=dict)
    document_done: bool = False
    _error: GpuwlError | None = None
    _reporter: Any = None

    def remember(self, name: str, value: object, rank: int) -> None:
        """Keep an option's value unless a stronger one is known."""
        if rank >= self.options.get(name, (None, 0))[1]:
            self.options[name] = (value, rank)

    @property
    def settings(self) -> Settings:
        """The shared options, with defaults for those not given."""
        given = {name: value for name, (value, _) in self._coherent().items()}
        known = {name: given[name] for name in Settings.__dataclass_fields__ if name in given}
        if "root" in known:
            known["root"] = Path(known["root"]).expanduser().absolute()
        return Settings(**known)

    @property
    def reporter(self) -> Any:  # noqa: ANN401 - console is imported late, for the speed of --help
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
        if error.hint and error.hint.startswith(("gpuwl run ", "gpuwl step ")):
            error.hint += self._repeated()
        self._error = error
        self.reporter.error(error)

    def print_document(self, code: int) -> None:
        """Print the JSON document, once, where --output json asks for it."""
        nothing_ran = not self.command and self._error is None  # --help, --version
        if self.settings.output != "json" or self.document_done or nothing_ran:
            return
        head = {"version": DOCUMENT_VERSION, "command": self.command, "exitCode": code}
        self.reporter.document({**head, **self.payload, "error": _as_data(self._error)})

    def _repeated(self) -> str:
        """Return what to add to a command so that it works on the same target and root as this."""
        given = (*TARGETING, "root")
        typed = [name for name in given if self._rank(name) == 2 and name in self._coherent()]
        options = ", ".join(f"--{name.replace('_', '-')}" for name in typed)
        return f", with the same {options}" if options else ""

    def _coherent(self) -> dict[str, tuple[Any, int]]:
        """Drop what a variable says where the command line names the other kind of target."""
        local = self._rank("local")
        cluster = max(self._rank("kubeconfig"), self._rank("context"))
        dropped: set[str] = set()
        if local > cluster:
            dropped = {"kubeconfig", "context"}
        elif cluster > local:
            dropped = {"local"}
        return {name: kept for name, kept in self.options.items() if name not in dropped}

    def _rank(self, name: str) -> int:
        value, rank = self.options.get(name, (None, 0))
        return rank if value else 0


def _as_data(error: GpuwlError | None) -> dict[str, Any] | None:
    if error is None:
        return None
    return {"message": error.message, "details": list(error.details), "hint": error.hint}
