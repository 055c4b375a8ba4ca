"""Files below one root, each written whole or not at all."""

import contextlib
import errno
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from gpuwl.system import locking, oserrors
from gpuwl.system.files import UNFINISHED, open_regular, replace_file

FOLDERS = ("out", "bin", "k8s")
ROOT = "."
LOCK = ".gpuwl.lock"


class Artifacts:
    """The files of one lab below `root`; relative paths use `/`.

    `made` are the folders that had to be made so far, the root itself as `.`. `before_write` is told
    the relative path and the digest of each file before it is written. Raises SetupError where a
    file cannot be written, naming what is in the way.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.made: list[str] = []
        self._obsolete: list[Path] = []
        self.before_write: Callable[[str, str], None] = lambda _relative, _digest: None

    @contextlib.contextmanager
    def claimed(self) -> Iterator[None]:
        """Hold the root for this process, by a lock in it that is gone afterwards.

        The lock is in the root, so it also keeps out another user, another machine on a shared
        disk, and a gpuwl with another state folder. A root that had to be made for it goes again if
        it is still empty at the end. Raises SetupError where another process holds the root.
        """
        with contextlib.ExitStack() as stack:
            with _explained(self.root):
                stack.callback(lambda: _remove_empty(self._obsolete))
                self._obsolete += self._make_root()
                stack.enter_context(locking.held(self.root / LOCK, f"root {self.root}"))
            yield

    def _make_root(self) -> list[Path]:
        missing = [p for p in (self.root, *self.root.absolute().parents) if not p.exists()]
        self.root.mkdir(parents=True, exist_ok=True)
        self.made += [ROOT] if missing else []
        return missing

    def path(self, relative: str) -> Path:
        """Return the absolute path of an artifact."""
        return self.root / relative

    def missing(self, relatives: Iterable[str]) -> list[str]:
        """Return those of the artifacts that are not there."""
        return [relative for relative in relatives if not self.path(relative).is_file()]

    def prepare(self) -> None:
        """Make the folders and take away what a killed run left unfinished."""
        for name in (ROOT, *FOLDERS):
            folder = self.path(name)
            with _explained(folder):
                if not folder.is_dir():
                    folder.mkdir(parents=True)
                    self.made.append(name)
                    self._obsolete.insert(0, folder)
                self._sweep(name)
                _try_to_write(folder)

    def made_is_recorded(self) -> None:
        """Take note that a file tells of the folders in `made`: only then they stay while empty."""
        kept = [self.path(name) for name in FOLDERS]
        self._obsolete = [folder for folder in self._obsolete if folder not in kept]

    def _sweep(self, name: str) -> None:
        for leftover in self.path(name).glob(f"*{UNFINISHED}"):
            leftover.unlink()

    def write(
        self, relative: str, content: str | bytes, *, mode: int = 0o644, durable: bool = True
    ) -> Path:
        """Write an artifact atomically and return its path; `durable`: it outlives a power cut.

        A reader sees the old content or the new, never a part; a file that is read-only or a
        symbolic link is replaced by a file of this mode.
        """
        target = self.path(relative)
        data = content.encode() if isinstance(content, str) else content
        self.before_write(relative, f"sha256:{hashlib.sha256(data).hexdigest()}")
        with _explained(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            replace_file(target, data, mode, durable=durable)
        return target

    def digest(self, relative: str) -> str:
        """Return `sha256:` and the hexadecimal digest of an artifact.

        Raises SetupError where it cannot be read, or is no regular file: a device has no end.
        """
        with _explained(self.path(relative)), open_regular(self.path(relative)) as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"

    def check(self, relatives: Iterable[str] = ()) -> None:
        """Tell whether the root and these files in it can be written, without making anything.

        Raises SetupError where something is in the way.
        """
        with _explained(self.root):
            existing = next(p for p in (self.root, *self.root.absolute().parents) if p.exists())
            if not existing.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(existing))
            if not os.access(existing, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, "not writable", str(existing))
        for relative in relatives:
            target = self.path(relative)
            with _explained(target):
                if target.is_dir() and not target.is_symlink():
                    raise IsADirectoryError(errno.EISDIR, "a folder is there", str(target))

    def remove(self, relative: str) -> None:
        """Remove an artifact if it is there."""
        with _explained(self.path(relative)):
            self.path(relative).unlink(missing_ok=True)

    def remove_folders(self, made: Iterable[str]) -> list[str]:
        """Remove those of the folders that are empty, and return which went.

        What a killed run left in them goes too. The root waits for the end of `claimed`.
        """
        ours = [name for name in (*FOLDERS, ROOT) if name in set(made) and self.path(name).is_dir()]
        for name in ours:
            with _explained(self.path(name)):
                self._sweep(name)
        self._obsolete += [self.root] if ROOT in ours else []
        _remove_empty(self.path(name) for name in ours)
        return [name for name in ours if not self.path(name).exists()]


def _try_to_write(folder: Path) -> None:
    probe = folder / f".probe{UNFINISHED}"
    probe.touch()
    probe.unlink()


def _remove_empty(folders: Iterable[Path]) -> None:
    """Remove those of the folders, innermost first, that are empty."""
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _explained(path: Path) -> contextlib.AbstractContextManager[None]:
    hint = "free that path, or choose another folder with --root"
    return oserrors.explained("cannot write", path, hint)
