"""Names for control planes that a test starts itself; they are stopped after it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.controlplane.support import assert_none_in

from gpuwl.controlplane import plane, state
from gpuwl.controlplane.binaries.lookup import Binaries


@pytest.fixture
def name(request: pytest.FixtureRequest, found_binaries: Binaries) -> Iterator[str]:
    """A name of this test's own; whatever was started under it must be gone after `down`."""
    own = f"t{abs(hash(request.node.nodeid)) % 10**12}"
    yield own
    plane.down(own)
    assert not state.folder(own).exists()
    assert_none_in(state.folder(own))


@pytest.fixture
def long_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder whose path is longer than a socket's address may be."""
    folder = tmp_path / ("long-" + "x" * 120)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    return folder
