"""Getting binaries that are not there yet: the official download, else a build."""

from collections.abc import Callable
from pathlib import Path

from gpuwl.controlplane.binaries import build, cache, cachewriter, inspection, lookup, release
from gpuwl.controlplane.binaries.lookup import Binaries, Source
from gpuwl.errors import SetupError
from gpuwl.system.progress import Listener, Progress

Fill = Callable[[str, Path, Listener], None]  # puts the three binaries of a version into a folder


def obtain(
    version: str | None = None,
    *,
    source: Source | None = None,
    listener: Listener,
    check: bool = False,
) -> Binaries:
    """Return binaries of one Kubernetes version, downloading or building them where none are there.

    `version` as in `lookup.find`. `source` forces a download or a build: GPUWL_ASSETS is passed over
    then, and of the cache only what came that way counts. Another gpuwl that is at it already is
    waited for, and its result used. With `check` what lies in the cache is compared with its digests
    (0.3 s), and fetched again where it has changed since. Raises SetupError with the reason of each way that failed.
    """
    if source is None and (ready := lookup.find(version)) and not (check and _is_damaged(ready)):
        return ready
    wanted = lookup.DEFAULT_VERSION if version is None else cache.parse_version(version)
    if check:
        _discard_damaged(wanted, source, listener)
    return _acquire(wanted, source, listener)


def _is_damaged(found: Binaries) -> bool:
    return found.source == "cache" and bool(inspection.damaged(found.folder))


def _discard_damaged(version: str, source: Source | None, listener: Listener) -> None:
    """Let what has changed in the cache count as not there; what runs goes on with the files it has."""
    while (folder := cache.find(version, source)) and (paths := inspection.damaged(folder)):
        listener.warn(
            f"{', '.join(map(str, paths))} has changed since it was cached: getting it again"
        )
        with cachewriter.writing(f"getting Kubernetes {version}", listener):
            (folder / cache.MANIFEST).unlink(missing_ok=True)


def _acquire(version: str, source: Source | None, listener: Listener) -> Binaries:
    if found := cache.find(version, source):
        return Binaries(version, "cache", found)
    ways: tuple[Source, ...] = (source,) if source else ("download", "build")
    with cachewriter.writing(f"getting Kubernetes {version}", listener) as announce:
        if found := cache.find(version, source):
            return Binaries(version, "cache", found)
        cachewriter.discard_leftovers()
        return _first(version, ways, announce)


def _first(version: str, ways: tuple[Source, ...], listener: Listener) -> Binaries:
    failed: list[SetupError] = []
    for way in ways:
        try:
            folder = _get(version, way, listener)
        except SetupError as error:
            failed.append(error)
            if way != ways[-1]:
                listener.warn(
                    f"download failed ({error.message}); building from source instead "
                    "(about 7 minutes, 5 GB)"
                )
        else:
            return Binaries(version, way, folder)
    raise _all_failed(version, failed)


def _get(version: str, way: Source, listener: Listener) -> Path:
    with cachewriter.staging() as folder:
        _FILL[way](version, folder, listener)
        listener.progress(Progress("checking the binaries"))
        published = cachewriter.publish(folder, version, way)
    if way == "build":
        build.discard_caches(listener)
    return published


def _build(version: str, folder: Path, listener: Listener) -> None:
    build.build(build.recipe(version), folder, listener)


_FILL: dict[Source, Fill] = {"download": release.fetch, "build": _build}


def _all_failed(version: str, failed: list[SetupError]) -> SetupError:
    """Merge the reasons into one error; what there is to do comes from the last way."""
    if len(failed) == 1:
        return failed[0]
    reasons = [line for error in failed for line in (error.message, *error.details)]
    return SetupError(f"no binaries of Kubernetes {version}", details=reasons, hint=failed[-1].hint)
