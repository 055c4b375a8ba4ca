"""Getting binaries that are not there yet: the official download, else a build."""

from collections.abc import Callable
from pathlib import Path

from gpuwl.controlplane import binarycache, build, cachewriter, release
from gpuwl.controlplane.binaries import Binaries, Source
from gpuwl.controlplane.cachewriter import Say
from gpuwl.errors import SetupError

Fill = Callable[[str, Path, Say], None]  # puts the three binaries of a version into a folder


def acquire(version: str, source: Source | None, say: Say) -> Binaries:
    """Download or build the binaries of a version, or take them from whoever was quicker.

    `source` forces one way. Raises SetupError with the reason of each way that was tried.
    """
    if found := binarycache.find(version, source):
        return Binaries(version, "cache", found)
    ways: tuple[Source, ...] = (source,) if source else ("download", "build")
    with cachewriter.writing(f"getting Kubernetes {version}", say) as announce:
        if found := binarycache.find(version, source):
            return Binaries(version, "cache", found)
        cachewriter.discard_leftovers()
        return _first(version, ways, announce)


def _first(version: str, ways: tuple[Source, ...], say: Say) -> Binaries:
    failed: list[SetupError] = []
    for way in ways:
        try:
            folder = _get(version, way, say)
        except SetupError as error:
            failed.append(error)
            if way != ways[-1]:
                # a warning, since it means minutes instead of seconds, and nothing must bury it
                say(f"warning: no {way} ({error.message}), going on with a build")
        else:
            return Binaries(version, way, folder)
    raise _all_failed(version, failed)


def _get(version: str, way: Source, say: Say) -> Path:
    with cachewriter.staging() as folder:
        _FILL[way](version, folder, say)
        say("checking the binaries")
        published = cachewriter.publish(folder, version, way)
    if way == "build":
        build.discard_caches(say)
    return published


def _build(version: str, folder: Path, say: Say) -> None:
    build.build(build.recipe(version), folder, say)


_FILL: dict[Source, Fill] = {"download": release.fetch, "build": _build}


def _all_failed(version: str, failed: list[SetupError]) -> SetupError:
    """Merge the reasons into one error; what there is to do comes from the last way."""
    if len(failed) == 1:
        return failed[0]
    reasons = [line for error in failed for line in (error.message, *error.details)]
    return SetupError(f"no binaries of Kubernetes {version}", details=reasons, hint=failed[-1].hint)
