"""Where gpuwl keeps what outlives a command: the XDG cache and state folders."""

from pathlib import Path

import platformdirs


def cache() -> Path:
    """Return the folder for what can be made again (`~/.cache/gpuwl`); not created here."""
    return platformdirs.user_cache_path("gpuwl")


def state() -> Path:
    """Return the folder for what describes running things (`~/.local/state/gpuwl`); not created."""
    return platformdirs.user_state_path("gpuwl")
