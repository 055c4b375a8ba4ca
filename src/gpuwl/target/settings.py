"""The options of one call, once parsed: the one store that every command reads."""

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from gpuwl.system import folders

DEFAULT_TIMEOUT = 30.0

Source = Literal["download", "build"]


def default_root() -> Path:
    """Return /root/gpuwl for root, ~/gpuwl for others. Raises SetupError without a home folder."""
    return Path("/root/gpuwl") if os.geteuid() == 0 else folders.home("GPUWL_ROOT") / "gpuwl"


@dataclass(frozen=True)
class Settings:
    """What a person asked for; each field is an option of that name, and `chosen_root` is `--root`.

    `timeout` is the limit of one wait in seconds. `lab_nodes` are the nodes for container,
    vm-passthrough and vm-vgpu, None for the lab's own. `yes` continues where gpuwl would stop to ask.
    `name`, `kubernetes_version` and `source` are about the local control plane; None leaves them to it.
    `typed` are the words of the command line that chose target and root.
    """

    chosen_root: Path | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    local: bool = False
    name: str | None = None
    kubernetes_version: str | None = None
    source: Source | None = None
    lab_nodes: tuple[str, str, str] | None = None
    timeout: float = DEFAULT_TIMEOUT
    yes: bool = False
    output: str = "text"
    lang: str | None = None
    quiet: bool = False
    verbose: bool = False
    typed: tuple[str, ...] = ()

    @property
    def root(self) -> Path:
        """Where the files go. Raises SetupError where nobody chose that and no home folder is known."""
        return self.chosen_root or default_root()

    def again(self, command: str) -> str:
        """Return a gpuwl command on the same target and root, as a shell reads it.

        `command` is what stands behind `gpuwl`, such as `run --from 1 --to 3`.
        """
        return " ".join(["gpuwl", command, *map(shlex.quote, self.typed)])
