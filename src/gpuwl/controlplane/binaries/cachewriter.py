"""Changing the cache of binaries: one writer at a time, whole folders only, and emptying it."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

import filelock

from gpuwl.controlplane.binaries import cache, inspection
from gpuwl.controlplane.binaries.cache import NAMES
from gpuwl.errors import SetupError
from gpuwl.system import folders

Say = Callable[[str], None]

LOCK = "lock"
HOLDER = "holder"  # what the lock's holder is doing, for those who wait: a line of text
SCRATCH = "unfinished"  # partial downloads and the build's own caches, which survive a break


def scratch() -> Path:
    """Return the folder for what an interrupted download or build goes on from; not created."""
    return cache.store() / SCRATCH


@contextmanager
def writing(doing: str, say: Say) -> Iterator[Say]:
    """Hold the cache's one lock, and yield a `say` that whoever waits for it hears as well.

    `doing` is what the holder does (`building Kubernetes 1.37.2`). The lock is the kernel's and
    goes with its process, however that ends. Raises SetupError where the cache cannot be written,
    in the body too.
    """
    store = cache.store()
    with _explained(store):
        folders.make(store)
        lock = filelock.FileLock(store / LOCK)
        _wait(lock, store / HOLDER, say)
    try:
        with _explained(store):
            yield _announcer(store / HOLDER, doing, say)
    finally:
        with suppress(OSError):
            (store / HOLDER).unlink()
        lock.release()


@contextmanager
def _explained(store: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SetupError(
            f"the cache folder {store} cannot be written",
            details=[str(error)],
            hint="set XDG_CACHE_HOME to a folder that can, or GPUWL_ASSETS to one with binaries",
        ) from error


def _wait(lock: filelock.BaseFileLock, holder: Path, say: Say) -> None:
    while True:
        try:
            lock.acquire(timeout=1)
        except filelock.Timeout:
            say(f"waiting for {_holder(holder)}")
        else:
            return


def _holder(holder: Path) -> str:
    try:
        return holder.read_text(encoding="utf-8").strip() or "another gpuwl"
    except OSError:
        return "another gpuwl"


def _announcer(holder: Path, doing: str, say: Say) -> Say:
    since = datetime.now().astimezone().strftime("%H:%M:%S")

    def announce(line: str) -> None:
        with suppress(OSError):  # only a courtesy to those who wait
            holder.write_text(f"process {os.getpid()}, {doing} since {since}: {line}\n", "utf-8")
        say(line)

    announce(doing)
    return announce


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


def clean(say: Say) -> int:
    """Empty the cache, unfinished downloads and builds too; return how many bytes were freed.

    Raises SetupError at once while another gpuwl is writing to it.
    """
    store = cache.store()
    if not store.exists():
        say("the cache is empty")
        return 0
    lock = filelock.FileLock(store / LOCK)
    with _explained(store):
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout as error:
            raise SetupError(
                f"the cache is in use by {_holder(store / HOLDER)}",
                hint="wait until it is done, or stop it, and clean again",
            ) from error
    try:
        return _empty(store, say)
    finally:
        lock.release()


def _empty(store: Path, say: Say) -> int:
    freed = 0
    for entry in sorted(store.iterdir()):
        if entry.name == LOCK:
            continue
        say(f"removing {entry.name}")
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


class Ticker:
    """Passes a line of progress on, but not more than a few times a second."""

    def __init__(self, say: Say, *, every: float = 0.25) -> None:
        self._say = say
        self._every = every
        self._next = 0.0
        self._started = time.monotonic()

    def __call__(self, line: str) -> None:
        """Say `line` with the time so far, unless another line was said a moment ago."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self._every
            self._say(f"{line}, {clock(now - self._started)}")


def clock(seconds: float) -> str:
    """Render a duration as a person reads it (`7 s`, `6 min 40 s`)."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
