"""Files, folders and standard input that may hold manifests: found, opened and cut into texts.

Nothing is followed twice or blocks: a loop of links ends, a pipe or a device is refused, and no
piece of text is larger than LARGEST.
"""

import codecs
import io
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from gpuwl.errors import InputError

LARGEST = 32 * 1024 * 1024
"""Characters of one document; 5,000 Pods are about as many."""

STANDARD_INPUT = "-"
SUFFIXES = (".yaml", ".yml", ".json")
KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
CHART = "Chart.yaml"
_MARKERS = ("---", "...")
"""What begins and ends a YAML document at the start of a line, followed by a blank or nothing."""
_ALREADY_OPEN = ("/dev/fd/", "/proc/self/fd/", "/dev/stdin")
"""What a shell's <(command) and /dev/stdin are: open already, so that nothing waits for a writer."""


@dataclass(frozen=True)
class Unrendered:
    """A source of manifests that has to be rendered first, and the command that does it."""

    file: str
    command: str


@dataclass(frozen=True)
class Piece:
    """One document's text; its first line is line `line` of the file, counted from 1."""

    file: str
    line: int
    text: str


def files(paths: Iterable[Path | str]) -> Iterator[Path | str | Unrendered]:
    """Return the files that paths name, `-` as it is; folders give theirs, sorted by name.

    Raises InputError for a path that is not there or cannot be listed.
    """
    seen: set[tuple[int, int]] = set()
    for path in paths:
        if path == STANDARD_INPUT or str(path) == STANDARD_INPUT:
            yield STANDARD_INPUT
            continue
        place = Path(path)
        if _is_new(place, seen):
            yield from _folder(place, seen) if place.is_dir() else _file(place)


def _is_new(path: Path, seen: set[tuple[int, int]]) -> bool:
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {_why(error)}") from None
    identity = (status.st_dev, status.st_ino)
    if identity in seen:
        return False
    seen.add(identity)
    return True


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or "not a path"


def _file(path: Path) -> Iterator[Path | Unrendered]:
    if path.name in KUSTOMIZATIONS:
        yield Unrendered(str(path), f"kubectl kustomize {path.parent}")
    elif path.name == CHART:
        yield Unrendered(str(path), f"helm template {path.parent}")
    else:
        yield path


def _folder(folder: Path, seen: set[tuple[int, int]]) -> Iterator[Path | Unrendered]:
    entries = _entries(folder)
    names = {entry.name for entry in entries}
    if CHART in names:
        yield Unrendered(str(folder), f"helm template {folder}")
        return
    kustomization = next((name for name in KUSTOMIZATIONS if name in names), None)
    if kustomization:
        yield Unrendered(str(folder / kustomization), f"kubectl kustomize {folder}")
    for entry in entries:
        if entry.name == kustomization:
            continue
        if entry.is_dir():
            yield from _folder(entry, seen) if _is_new(entry, seen) else ()
        elif entry.suffix in SUFFIXES and _is_new(entry, seen):
            yield entry


def _entries(folder: Path) -> list[Path]:
    """Return what a folder holds, sorted; git's own folder and links to nowhere are left out."""
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise InputError(f"cannot read {folder}: {error.strerror}") from None
    return [entry for entry in entries if entry.name != ".git" and _is_there(entry)]


def _is_there(path: Path) -> bool:
    return path.exists() or not path.is_symlink()


def pieces(path: Path | str) -> Iterator[Piece]:
    """Return the documents of a file as texts, cut where a YAML document begins or ends.

    Raises InputError where it cannot be opened, is no plain file, is not UTF-8 or UTF-16, or holds
    a document larger than LARGEST.
    """
    name = "standard input" if path == STANDARD_INPUT else str(path)
    with _opened(path) as stream:
        yield from _cut(name, stream)


def _opened(path: Path | str) -> BufferedReader:
    if path == STANDARD_INPUT:
        if sys.stdin is None:
            raise InputError("standard input is closed")
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    name = str(path)
    try:
        if name.startswith(_ALREADY_OPEN):
            return Path(path).open("rb")
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {name}: {_why(error)}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InputError(
            f"{name} is a pipe or a device, not a file", hint="use - for standard input"
        )
    return os.fdopen(descriptor, "rb")


def _cut(name: str, stream: BufferedReader) -> Iterator[Piece]:
    lines: list[str] = []
    size, first, number = 0, 1, 0
    for number, line in enumerate(_lines(name, stream), start=1):
        if line.startswith(_MARKERS) and not line[3:4].strip():
            yield from _piece(name, first, lines)
            lines, size, first = [], 0, number
        lines.append("   " + line[3:] if size == 0 and line.startswith(_MARKERS) else line)
        size += len(line)
        if size > LARGEST:
            raise InputError(
                f"{name}:{first}: a document of more than {LARGEST >> 20} MiB",
                hint="give dumps of a cluster with --nodes and --pods; they are read as streams",
            )
    yield from _piece(name, first, lines)


def _piece(name: str, first: int, lines: list[str]) -> Iterator[Piece]:
    for line in lines:
        start = line.strip()
        if start and start[0] not in "#%":
            yield Piece(name, first, "".join(lines))
            return


def _lines(name: str, stream: BufferedReader) -> Iterator[str]:
    """Return the lines, each ended by a line feed; one longer than LARGEST comes cut."""
    number = 0
    try:
        with io.TextIOWrapper(stream, encoding=_encoding(stream.peek(4))) as text:
            while line := text.readline(LARGEST + 1):
                number += 1
                yield line
    except UnicodeError:
        raise InputError(f"{name}:{number + 1}: neither UTF-8 nor UTF-16 text") from None
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from None


def _encoding(head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if head[:1] == b"\0":
        return "utf-16-be"
    return "utf-16-le" if head[1:2] == b"\0" else "utf-8-sig"
