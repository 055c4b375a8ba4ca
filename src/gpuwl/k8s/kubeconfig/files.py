"""Several kubeconfigs as one: which files count, and which entry of several.

Source: k8s.io/client-go, tools/clientcmd/loader.go.
"""

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from gpuwl.k8s.kubeconfig import document, records
from gpuwl.k8s.kubeconfig.problem import Problem
from gpuwl.k8s.kubeconfig.records import Kubeconfig
from gpuwl.system import waiting

Item = TypeVar("Item")
_TRIES = 20
_PAUSE = 0.02
"""How often, and after how many seconds, a file that is being written is read again."""
_YOUNG = 200_000_000
"""Nanoseconds after its last change in which a file may still be in the making."""


def paths(named: str) -> list[Path]:
    """Return the paths that KUBECONFIG names; the path of one existing file is just that."""
    if os.path.exists(named):  # noqa: PTH110 - never raises
        return [Path(named)]
    return [Path(name) for name in dict.fromkeys(named.split(os.pathsep)) if name]


def merged(named: str) -> Kubeconfig:
    """Read every file that is there; of two entries of one name the earlier file's counts.

    Raises Problem, with the path in it where there are several, for a file that cannot be read.
    """
    listed = paths(named)
    found = [config for path in listed if (config := _read(path, alone=len(listed) == 1))]
    return Kubeconfig(
        clusters=_first_of(config.clusters for config in found),
        users=_first_of(config.users for config in found),
        contexts=_first_of(config.contexts for config in found),
        current=next((config.current for config in found if config.current), ""),
    )


def _first_of(parts: Iterable[Mapping[str, Item]]) -> dict[str, Item]:
    total: dict[str, Item] = {}
    for part in parts:
        total |= {name: item for name, item in part.items() if name not in total}
    return total


def _read(path: Path, *, alone: bool) -> Kubeconfig | None:
    try:
        return _settled(path)
    except FileNotFoundError:
        return None
    except (Problem, OSError) as error:
        words = error.words if isinstance(error, Problem) else str(error.strerror)
        raise Problem(words if alone else f"{path}: {words}") from None


def _settled(path: Path) -> Kubeconfig:
    """Read a file, again where it changes meanwhile: not everybody replaces a file at once."""
    for left in reversed(range(_TRIES)):
        before = _stamp(path)
        found = _decoded(path)
        if path.is_file() and time.time_ns() - before[0] < _YOUNG:
            waiting.pause(_PAUSE)
        if path.is_file() and left and _stamp(path) != before:  # a pipe is read once
            continue
        if isinstance(found, Problem):
            raise found
        return found
    raise AssertionError("unreachable")


def _decoded(path: Path) -> Kubeconfig | Problem:
    data = path.read_bytes()
    try:
        return records.decoded(document.first(data) if data else None, path.absolute().parent)
    except Problem as problem:
        return problem


def _stamp(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino
