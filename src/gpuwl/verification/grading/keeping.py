"""Keeps the dumps that a checker judged wrong, so that a person can try again.

Each part of the rule has a folder: the dump, the expected answer, what came on standard output and on
standard error. The next grading of the same root replaces all of it.
"""

import contextlib
import hashlib
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

from gpuwl.errors import SetupError
from gpuwl.lab.verdict import Verdict
from gpuwl.system import folders
from gpuwl.texts import text

MARK = ".gpuwl-verify"
"""Says that a folder is ours to replace."""


def of_root(root: Path) -> Path:
    """Return where the dumps of a root are kept unless somebody names a folder."""
    digest = hashlib.sha256(str(root).encode()).hexdigest()[:8]
    return folders.state() / "verify" / f"{root.name or 'root'}-{digest}"


class Keeper:
    """A folder for what one grading keeps; made when there is something to keep."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def clear(self) -> None:
        """Remove what an earlier grading kept; SetupError where that was somebody else's."""
        with _explained(self.folder):
            if (self.folder / MARK).is_file():
                shutil.rmtree(self.folder)
            elif self.folder.exists() and any(self.folder.iterdir()):
                raise FileExistsError(0, text("verify.keep_not_ours"), str(self.folder))

    def put(self, part: str, content: bytes | None, expected: str, run: Verdict) -> Path:
        """Keep one case and return the path of its dump, which is not there where none was given."""
        folder = self.folder / part
        with _explained(self.folder):
            folders.make(folder)
            (self.folder / MARK).touch()
            if content is not None:
                (folder / "nodes.json").write_bytes(content)
            (folder / "expected.txt").write_text(expected + "\n", encoding="utf-8")
            (folder / "stdout.txt").write_text(run.output, encoding="utf-8")
            (folder / "stderr.txt").write_text(run.errors, encoding="utf-8")
        return folder / "nodes.json"


def command(script: Path, dump: Path) -> str:
    """Return the command that tries again, as a shell reads it."""
    return f'{shlex.quote(str(script))} {shlex.quote(str(dump))}; echo "exit $?"'


@contextlib.contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SetupError(
            text("verify.keep_failed", folder=folder, words=error.strerror),
            hint=text("verify.keep_hint"),
        ) from None
