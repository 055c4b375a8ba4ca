"""Where gpuwl keeps what outlives a command: the XDG cache and state folders. And paths made whole."""

import os
from collections.abc import Callable
from pathlib import Path

import platformdirs

from gpuwl.errors import InputError, SetupError


def cache() -> Path:
    """Return the folder for what can be made again (`~/.cache/gpuwl`); not created here.

    Raises SetupError without a home folder, as `state` does.
    """
    return _known(lambda: platformdirs.user_cache_path("gpuwl"), "XDG_CACHE_HOME")


def state() -> Path:
    """Return the folder for what describes running things (`~/.local/state/gpuwl`); not created."""
    return _known(lambda: platformdirs.user_state_path("gpuwl"), "XDG_STATE_HOME")


def home(variable: str) -> Path:
    """Return the home folder. Raises SetupError where there is none; `variable` does without."""
    return _known(Path.home, variable)


def _known(find: Callable[[], Path], variable: str) -> Path:
    """Return what `find` finds, unless it raises for a user without a home, or leaves `~` as it was."""
    try:
        path = find()
    except RuntimeError:
        raise _homeless(variable) from None
    if not path.is_absolute():
        raise _homeless(variable)
    return path


def _homeless(variable: str) -> SetupError:
    return SetupError(
        f"no home folder is known: HOME is not set, or no whole path, and user id {os.geteuid()} has none",
        hint=f"set {variable} or HOME to a folder",
    )


def whole(path: Path) -> Path:
    """Return the whole path to what a person named.

    Raises InputError for `~nobody`, SetupError for a relative path where the working directory is gone.
    """
    try:
        return path.expanduser().absolute()
    except RuntimeError:
        raise InputError(
            f"{path}: there is no home folder of that user", hint="give a whole path"
        ) from None
    except FileNotFoundError:
        raise SetupError(
            f"{path} leads nowhere: the working directory has been deleted",
            hint="cd somewhere else",
        ) from None


def expanded(path: str) -> Path:
    """Return a path with `~` put in; as it is where nobody knows what that would be."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


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
