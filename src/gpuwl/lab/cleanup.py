"""Removing the files that gpuwl wrote below a root, and no others."""

from collections.abc import Collection
from dataclasses import dataclass, field

from gpuwl.lab import runfile
from gpuwl.lab.artifacts import Artifacts


@dataclass
class Cleaned:
    """What was removed and, with the reason, what was left; paths below the root."""

    removed: list[str] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)


def remove_files(
    artifacts: Artifacts, promised: Collection[str], *, pretend: bool = False
) -> Cleaned:
    """Remove the promised files that out/run.json knows as written, unless edited since.

    Then out/run.json itself, and the folders that gpuwl made, where they are empty. The root stays
    while its lock is in it: `claimed` removes it at the end. Raises SetupError where a file cannot
    be removed. With `pretend` nothing is removed.
    """
    cleaned = Cleaned()
    document = runfile.read(artifacts)
    if document is None:
        return cleaned
    recorded = {
        path: digest
        for step in runfile.steps_of(document)
        for path, digest in runfile.files_of(step).items()
    }
    for relative in sorted(set(promised) & set(recorded)):
        _consider(artifacts, relative, recorded[relative], cleaned)
    cleaned.removed.append(runfile.PATH)
    if not pretend:
        for relative in cleaned.removed:
            artifacts.remove(relative)
        cleaned.removed += artifacts.remove_folders(runfile.made_of(document))
    return cleaned


def _consider(artifacts: Artifacts, relative: str, digest: str, cleaned: Cleaned) -> None:
    path = artifacts.path(relative)
    if path.is_symlink():
        cleaned.left[relative] = "is a symbolic link, which gpuwl never makes"
    elif not path.is_file():
        return
    elif artifacts.digest(relative) != digest:
        cleaned.left[relative] = "was changed since gpuwl wrote it"
    else:
        cleaned.removed.append(relative)
