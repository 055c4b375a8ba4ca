"""Where gpuwl keeps what outlives a command: the XDG cache and state folders."""

from pathlib import Path

import platformdirs


def cache() -> Path:
    """Return the folder for what can be made again (`~/.cache/gpuwl`); not created here."""
    return platformdirs.user_cache_path("gpuwl")


def state() -> Path:
    """Return the folder for what describes running things (`~/.local/state/gpuwl`); not created."""
    return platformdirs.user_state_path("gpuwl")


def make(folder: Path) -> None:
    """Make a folder of our own, and the parents that it lacks, closed to others.

    Whatever the umask is: who may write to a parent may put another folder in the place of ours.
    Raises OSError where it cannot be made, or where something else has its name.
    """
    try:
        folder.mkdir(mode=0o700)
    except FileNotFoundError:
        make(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        if not folder.is_dir():
            raise
