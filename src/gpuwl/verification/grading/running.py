"""Runs a stranger's checker where it can do little harm, and notices what it wrote.

It runs as the person who called gpuwl, in an empty folder, on a dump that is read-only, without the
person's home and kubeconfig, with limits on time, memory and what it writes. That is no jail: what
the person may do, the script may do.
"""

import os
import pwd
import resource
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from gpuwl.lab import verdict
from gpuwl.lab.artifacts import FOLDERS, Artifacts

MEMORY = 4 << 30
"""Bytes of address space: interpreters reserve far more than they use."""
LARGEST_FILE = 64 << 20
_KEPT = ("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "TZ")


def user() -> str:
    """Return the name of the user as whom a checker runs, or the number where there is no name."""
    number = os.geteuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


class Run(Protocol):
    """Runs a checker on a dump, None: on a file that is not there."""

    def __call__(self, content: bytes | None) -> verdict.Verdict:
        """Raise SetupError where it cannot be started or does not end."""

    def stop(self) -> None:
        """End what runs in other threads, and let nothing begin."""


class Sealed:
    """Runs the checker of an attempt; `wrote` tells, once it ran, what it wrote and where."""

    def __init__(self, script: Path, artifacts: Artifacts, limit: float) -> None:
        self.wrote: set[str] = set()
        self._script, self._artifacts, self._limit = script, artifacts, limit
        self._stop, self._stopper = os.pipe()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: object, trace: TracebackType | None
    ) -> None:
        """Let go of what stops a run."""
        os.close(self._stop)
        os.close(self._stopper)

    def stop(self) -> None:
        """End what runs in other threads, and let nothing begin."""
        os.write(self._stopper, b"x")

    def __call__(self, content: bytes | None) -> verdict.Verdict:
        """Run it on a dump, None: on a file that is not there.

        Raises SetupError where it cannot be started or does not end.
        """
        before = _stamps(self._artifacts)
        with tempfile.TemporaryDirectory(
            prefix="gpuwl-verify-", ignore_cleanup_errors=True
        ) as made:
            folder = _Folder(Path(made), content)
            try:
                return verdict.of(
                    self._script,
                    folder.dump,
                    limit=self._limit,
                    folder=folder.work,
                    environment=_environment(folder.home),
                    limits=_limits(self._limit),
                    stop=self._stop,
                )
            finally:
                self.wrote.update(folder.changes(), _changed(before, _stamps(self._artifacts)))


class _Folder:
    """A folder with an empty one to run in, a home, and the dump."""

    def __init__(self, base: Path, content: bytes | None) -> None:
        self.work, self.home = base / "work", base / "home"
        for folder in (self.work, self.home, base / "dump"):
            folder.mkdir(mode=0o700)
        self.dump = base / "dump" / "nodes.json"
        self._content = content
        if content is not None:
            self.dump.write_bytes(content)
            self.dump.chmod(0o400)
        self.dump.parent.chmod(0o500)

    def changes(self) -> Iterator[str]:
        """Yield what a run changed, by its name."""
        for folder in (self.work, self.home):
            folder.chmod(0o700)
            yield from (entry.name for entry in folder.iterdir())
        self.dump.parent.chmod(0o700)
        if _content(self.dump) != self._content:
            yield self.dump.name


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


Stamps = dict[str, tuple[int, int]]


def _changed(before: Stamps, after: Stamps) -> set[str]:
    return {path for path in before.keys() | after if before.get(path) != after.get(path)}


def _stamps(artifacts: Artifacts) -> Stamps:
    """Return size and time of change of each file of the lab."""
    found = {}
    for folder in FOLDERS:
        for path in artifacts.path(folder).glob("*"):
            status = path.lstat()
            found[f"{folder}/{path.name}"] = (status.st_size, status.st_mtime_ns)
    return found


def _environment(home: Path) -> dict[str, str]:
    """Return what the checker sees: its language and programs, and no cluster."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    own = {"HOME": str(home), "TMPDIR": str(home), "KUBECONFIG": os.devnull}
    return {**kept, **own, "PATH": verdict.search_path()}


def _limits(seconds: float) -> dict[int, int]:
    return {
        resource.RLIMIT_AS: MEMORY,
        resource.RLIMIT_CPU: int(seconds) + 1,
        resource.RLIMIT_FSIZE: LARGEST_FILE,
        resource.RLIMIT_CORE: 0,
    }
