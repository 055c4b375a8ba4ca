"""Changing the cache of binaries: one writer at a time, whole folders only, and emptying it."""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

from gpuwl.controlplane.binaries import cache, inspection
from gpuwl.controlplane.binaries.cache import NAMES
from gpuwl.errors import SetupError
from gpuwl.system import folders, locking, oserrors
from gpuwl.system.progress import Listener, Progress

LOCK = "lock"
SCRATCH = "unfinished"  # partial downloads and the build's own caches, which survive a break
_HINT = "set XDG_CACHE_HOME to another folder, or GPUWL_ASSETS to one with binaries"


def scratch() -> Path:
    """Return the folder for what an interrupted download or build goes on from; not created."""
    return cache.store() / SCRATCH


@contextmanager
def writing(doing: str, listener: Listener) -> Iterator[Listener]:
    """Hold the cache's one lock, and yield a listener that whoever waits for it hears as well.

    `doing` is what the holder does (`building Kubernetes 1.37.2`). Raises SetupError where the cache
    cannot be written, in the body too.
    """

    def waits(holder: str) -> None:
        listener.progress(Progress("waiting for another gpuwl", detail=holder))

    store = cache.store()
    with _explained(store):
        folders.make(store)
        cache.check_may_run(store)
        with locking.waited(store / LOCK, waits) as lock:
            yield _Announcer(lock, doing, listener)


def _explained(store: Path) -> AbstractContextManager[None]:
    return oserrors.explained("cannot write the cache folder", store, _HINT)


class _Announcer:
    """Passes on what is said, and writes it down for those who wait, a few times a second."""

    def __init__(self, lock: locking.Lock, doing: str, listener: Listener) -> None:
        self._lock = lock
        self._doing = doing
        self._listener = listener
        self._next = 0.0
        self.progress(Progress(doing))

    def progress(self, now: Progress) -> None:
        """Pass it on."""
        self._listener.progress(now)
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + 0.25
            self._lock.tell(f"{self._doing}: {now}")

    def warn(self, text: str) -> None:
        """Pass it on."""
        self._listener.warn(text)


@contextmanager
def staging() -> Iterator[Path]:
    """Yield an empty folder beside the final places, which is gone afterwards unless published."""
    with _explained(cache.store()):
        folder = Path(tempfile.mkdtemp(prefix="staging-", dir=cache.store()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(folder: Path, version: str, origin: str) -> Path:
    """Make three staged binaries count: check what they say they are, write the manifest, rename.

    Everything is on the disk before the rename, so that not even a power cut leaves a folder that
    looks whole and is not. Returns the final folder. Raises SetupError where a binary cannot be
    started or is of another version than `version`.
    """
    for name in NAMES:
        (folder / name).chmod(0o755)
    manifest = inspection.measure(folder, origin=origin)
    if manifest.version != version:
        raise SetupError(f"Kubernetes {version} was asked for, and {manifest.version} came")
    (folder / cache.MANIFEST).write_text(manifest.to_json(), encoding="utf-8")
    for path in [*folder.iterdir(), folder]:
        _sync(path)
    final = cache.place(version, origin)
    folders.make(final.parent)
    shutil.rmtree(final, ignore_errors=True)  # only ever a damaged one: whole ones are used
    folder.rename(final)
    _sync(final.parent)
    return final


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def discard_leftovers() -> None:
    """Remove what killed writers left half-staged. Only for the lock's holder."""
    for folder in cache.store().glob("staging-*"):
        shutil.rmtree(folder, ignore_errors=True)


class Kept(NamedTuple):
    """Something in the cache: what it is, and how many bytes of disk it takes."""

    what: str
    size: int


def contents() -> list[Kept]:
    """Return what `clean` would remove: each version by where it came from, and unfinished work."""
    store = cache.store()
    entries = (
        [entry for entry in sorted(store.iterdir()) if _is_kept(entry)] if store.exists() else []
    )
    return [kept for entry in entries for kept in _described(entry)]


def _is_kept(entry: Path) -> bool:
    return entry.name != LOCK and (not entry.is_dir() or any(entry.iterdir()))


def _described(entry: Path) -> list[Kept]:
    origins = [path for path in sorted(entry.glob("*")) if path.name in cache.ORIGINS]
    if not origins:
        return [Kept(f"unfinished work, {entry.name}", size_of(entry))]
    return [Kept(f"Kubernetes {entry.name}, {one.name}", size_of(one)) for one in origins]


def clean(listener: Listener) -> int:
    """Empty the cache, unfinished downloads and builds too; return how many bytes were freed.

    Raises SetupError at once while another gpuwl is writing to it.
    """
    store = cache.store()
    if not store.exists():
        return 0
    with _explained(store), locking.held(store / LOCK, f"the cache {store}"):
        return _empty(store, listener)


def _empty(store: Path, listener: Listener) -> int:
    freed = 0
    for entry in sorted(store.iterdir()):
        if entry.name == LOCK:
            continue
        listener.progress(Progress("removing", detail=entry.name))
        freed += size_of(entry)
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    return freed


def size_of(path: Path) -> int:
    """Return how many bytes of disk a file or a whole folder takes."""
    total = path.lstat().st_blocks * 512
    if path.is_dir() and not path.is_symlink():
        for folder, folders, files in os.walk(path):
            total += sum((Path(folder) / name).lstat().st_blocks * 512 for name in folders + files)
    return total
