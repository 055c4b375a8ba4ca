"""Files written in one move, and errors of the machine in plain words."""

import errno
import os
import stat
from pathlib import Path

import pytest

from gpuwl.errors import SetupError
from gpuwl.system import files, oserrors


def test_what_is_durable_is_synced_with_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda one: synced.append(stat.S_ISDIR(os.fstat(one).st_mode)))
    files.replace_file(tmp_path / "file", b"text", 0o600)
    assert synced == [False, True]
    assert (tmp_path / "file").read_bytes() == b"text"


@pytest.mark.parametrize(
    ("code", "path", "message"),
    [
        (errno.EACCES, None, "cannot keep /a/b: Permission denied"),
        (errno.EEXIST, "/a/b", "cannot keep /a/b: a file is in the way"),
        (errno.ENOTDIR, "/a", "cannot keep /a/b: Not a directory (/a)"),
        (errno.ENOSPC, f"/a/.b{files.UNFINISHED}", "cannot keep /a/b: No space left on device"),
    ],
)
def test_an_error_of_the_machine_is_explained(code: int, path: str | None, message: str) -> None:
    with pytest.raises(SetupError) as raised, oserrors.explained("cannot keep", Path("/a/b"), "do"):
        raise OSError(code, os.strerror(code), path)
    assert (raised.value.message, raised.value.hint) == (message, "do")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (BlockingIOError(errno.EAGAIN, "x"), "ulimit -u"),
        (OSError(errno.EMFILE, "x"), "ulimit -n"),
        (RuntimeError("can't start new thread"), "ulimit -u"),
        (MemoryError(), "no memory"),
    ],
)
def test_a_limit_of_the_machine_is_named(error: Exception, words: str) -> None:
    found = oserrors.exhausted(error)
    assert found
    assert words in found.message


def test_other_errors_are_no_limits() -> None:
    assert oserrors.exhausted(RuntimeError("else")) is None
    assert oserrors.exhausted(OSError(errno.ENOENT, "x")) is None
