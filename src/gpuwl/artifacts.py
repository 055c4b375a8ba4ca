"""Files below one root, each written whole or not at all."""

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from gpuwl.errors import SetupError

FOLDERS = ("out", "bin", "k8s")
_UNFINISHED = ".gpuwl-unfinished"


class Artifacts:
    """The files of one lab below `root`; relative paths use `/`.

    Raises SetupError where a file cannot be written, naming what is in the way.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, relative: str) -> Path:
        """Return the absolute path of an artifact."""
        return self.root / relative

    def missing(self, relatives: Iterable[str]) -> list[str]:
        """Return those of the artifacts that are not there."""
        return [relative for relative in relatives if not self.path(relative).is_file()]

    def prepare(self) -> None:
        """Make the folders and take away what a killed run left unfinished."""
        for folder in (self.root, *(self.root / name for name in FOLDERS)):
            with _explained(folder):
                folder.mkdir(parents=True, exist_ok=True)
                for leftover in folder.glob(f"*{_UNFINISHED}"):
                    leftover.unlink()
                _try_to_write(folder)

    def write(self, relative: str, content: str | bytes, *, mode: int = 0o644) -> Path:
        """Write an artifact atomically and durably, and return its path.

        A reader sees the old content or the new, never a part; a file that is read-only or a
        symbolic link is replaced by a file of this mode.
        """
        target = self.path(relative)
        data = content.encode() if isinstance(content, str) else content
        with _explained(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            replace_file(target, data, mode)
        return target

    def digest(self, relative: str) -> str:
        """Return `sha256:` and the hexadecimal digest of an artifact."""
        with _explained(self.path(relative)), self.path(relative).open("rb") as file:
            return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"

    def check(self) -> None:
        """Tell whether the root can be written, without making anything.

        Raises SetupError where something is in the way.
        """
        with _explained(self.root):
            existing = next(p for p in (self.root, *self.root.absolute().parents) if p.exists())
            if not existing.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(existing))
            if not os.access(existing, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, "not writable", str(existing))

    def remove(self, relative: str) -> None:
        """Remove an artifact if it is there."""
        with _explained(self.path(relative)):
            self.path(relative).unlink(missing_ok=True)


def replace_file(target: Path, data: bytes, mode: int) -> None:
    """Put `data` at `target` in one move; raises OSError, and leaves no temporary file then."""
    unfinished = target.with_name(f".{target.name}{_UNFINISHED}")
    unfinished.unlink(missing_ok=True)
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)  # the umask does not decide whether a script runs
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _try_to_write(folder: Path) -> None:
    probe = folder / f".probe{_UNFINISHED}"
    probe.touch()
    probe.unlink()


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename or path
        raise SetupError(
            f"cannot write {path}: {error.strerror} ({where})",
            hint="free that path, or choose another folder with --root",
        ) from None
