"""One archive with the three binaries, for a machine without network and without Go.

A tar with gzip: `manifest.json`, then the three binaries. Its bytes depend on nothing but the
binaries, so two packings can be compared.
"""

import gzip
import io
import lzma
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

from gpuwl.controlplane.binaries import cache, cachewriter, inspection
from gpuwl.controlplane.binaries.cache import MANIFEST, NAMES, Manifest
from gpuwl.controlplane.binaries.lookup import Binaries
from gpuwl.errors import InputError, SetupError
from gpuwl.system import oserrors
from gpuwl.system.files import UNFINISHED
from gpuwl.system.progress import Listener, Progress

_MANIFEST_LIMIT = 1 << 16  # bytes; a manifest has about 600
_BINARY_LIMIT = 512 << 20  # bytes; the largest, kube-apiserver, has about 120 MB
_DAMAGED = (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, OSError, ValueError)


def pack(found: Binaries, file: Path, listener: Listener) -> None:
    """Write an archive with three binaries to `file`, which appears only once it is whole.

    Takes about 10 s, and makes 80 MB of 225. Raises SetupError where the file cannot be written or
    a binary cannot be started.
    """
    listener.progress(Progress("hashing the binaries"))
    manifest = inspection.measure(found.folder, origin=_origin(found))
    with (
        oserrors.explained("cannot write", file, "choose another place for the archive"),
        _appearing(file) as out,
        gzip.GzipFile("", "wb", 3, out, mtime=0) as packed,
    ):
        _write(manifest, found.folder, packed, listener)


def _origin(found: Binaries) -> str:
    try:
        return cache.read(found.folder).origin
    except (OSError, ValueError):
        return found.source


@contextmanager
def _appearing(file: Path) -> Iterator[IO[bytes]]:
    with NamedTemporaryFile(
        dir=file.parent, prefix=f".{file.name}.", suffix=UNFINISHED, delete=False
    ) as out:
        try:
            yield out
            out.flush()
            Path(out.name).chmod(0o644)
            Path(out.name).replace(file)
        except BaseException:
            Path(out.name).unlink(missing_ok=True)
            raise


def _write(manifest: Manifest, folder: Path, packed: gzip.GzipFile, listener: Listener) -> None:
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        text = manifest.to_json().encode()
        archive.addfile(_member(MANIFEST, len(text), 0o644), io.BytesIO(text))
        for name in NAMES:
            listener.progress(Progress(f"packing {name}"))
            with (folder / name).open("rb") as binary:
                archive.addfile(_member(name, manifest.files[name].size, 0o755), binary)


def _member(name: str, size: int, mode: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, mode
    return member


def check_place(file: Path) -> None:
    """Raise SetupError where no archive can be written to `file`; asked before 200 MB are fetched."""
    if file.is_dir() or not file.parent.is_dir():
        what = "a folder is there" if file.is_dir() else f"there is no folder {file.parent}"
        raise SetupError(f"cannot write {file}: {what}")


def unpack(file: Path, listener: Listener, version: str | None = None) -> Binaries:
    """Check an archive and put its binaries into the cache; return them from there.

    No name in the archive ever becomes a path: the four expected ones are copied, anything else
    is refused. A version that is in the cache already is left as it is once the archive has been
    checked against its manifest. Raises InputError for a file that is no such archive, is damaged,
    is for another platform or holds another Kubernetes than `version`; SetupError where the cache
    cannot be written.
    """
    if not file.is_file():
        raise InputError(f"there is no file {file}")
    wanted = None if version is None else cache.parse_version(version)
    with cachewriter.writing(f"unpacking {file.name}", listener) as announce:
        cachewriter.discard_leftovers()
        with cachewriter.staging() as folder:
            manifest = _read(file, folder, wanted, announce)
            announce.progress(Progress("checking the binaries"))
            place = cache.find(manifest.version, "bundle") or cachewriter.publish(
                folder, manifest.version, "bundle"
            )
    return Binaries(manifest.version, "bundle", place)


def _read(file: Path, folder: Path, wanted: str | None, listener: Listener) -> Manifest:
    try:
        with tarfile.open(file, "r:*") as archive:
            manifest = _manifest(file, archive, wanted)
            for name in NAMES:
                listener.progress(Progress(f"unpacking {name}"))
                _copy(file, archive, manifest, folder / name)
            if extra := archive.next():
                raise _refused(file, f"it also holds {extra.name!r}")
            _read_to_the_end(archive)
    except _DAMAGED as error:
        if isinstance(error, OSError) and error.errno:
            raise  # a full disk, which is not the archive's fault
        raise _refused(file, str(error) or type(error).__name__) from error
    return manifest


def _read_to_the_end(archive: tarfile.TarFile) -> None:
    """Have the compression's own checksum checked, which comes last."""
    while archive.fileobj.read(1 << 20):
        pass


def _refused(file: Path, why: str) -> InputError:
    return InputError(
        f"{file} is not a gpuwl bundle, or is damaged",
        details=[why],
        hint="make it anew on the other machine: gpuwl local fetch --bundle FILE",
    )


def _next(file: Path, archive: tarfile.TarFile, name: str, most: int) -> IO[bytes]:
    """Return the next member, which has to be a plain file of this name and no more than `most`."""
    member = archive.next()
    if member is None or member.name != name or not member.isreg() or member.size > most:
        raise _refused(file, f"expected {name}, found {member and member.name!r}")
    content = archive.extractfile(member)
    if content is None:
        raise _refused(file, f"{name} has no content")
    return content


def _manifest(file: Path, archive: tarfile.TarFile, wanted: str | None) -> Manifest:
    manifest = Manifest.from_json(_next(file, archive, MANIFEST, _MANIFEST_LIMIT).read())
    cache.parse_version(manifest.version)
    if manifest.platform != cache.platform():
        raise InputError(
            f"{file} is for {manifest.platform}, and this machine is {cache.platform()}"
        )
    if wanted not in {None, manifest.version}:
        raise InputError(f"{file} holds Kubernetes {manifest.version}, and {wanted} was asked for")
    return manifest


def _copy(file: Path, archive: tarfile.TarFile, manifest: Manifest, to: Path) -> None:
    with _next(file, archive, to.name, _BINARY_LIMIT) as content, to.open("wb") as out:
        shutil.copyfileobj(content, out, 1 << 20)
    if inspection.sha256(to) != manifest.files[to.name].sha256:
        raise _refused(file, f"{to.name} has a wrong SHA-256")
