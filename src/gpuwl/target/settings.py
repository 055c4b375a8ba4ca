"""The shared options, once parsed."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

DEFAULT_TIMEOUT = 30.0


def default_root() -> Path:
    """Return /root/gpuwl for root, ~/gpuwl for others."""
    return Path("/root/gpuwl") if os.geteuid() == 0 else Path.home() / "gpuwl"


@dataclass(frozen=True)
class Settings:
    """What a person asked for. `timeout` is the limit of one wait in seconds.

    `lab_nodes` are the nodes for container, vm-passthrough and vm-vgpu, None for the lab's own. `yes` goes on where gpuwl
    would stop because a cluster is in real use.
    """

    root: Path = field(default_factory=default_root)
    kubeconfig: Path | None = None
    context: str | None = None
    local: bool = False
    timeout: float = DEFAULT_TIMEOUT
    output: Literal["text", "json", "junit"] = "text"
    quiet: bool = False
    verbose: bool = False
    lab_nodes: tuple[str, str, str] | None = None
    yes: bool = False
