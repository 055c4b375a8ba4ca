"""Who is blamed where a control plane of ours fails: the clock, or who is asleep."""

import datetime as dt
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import program
from tests.controlplane.support import identity

from gpuwl.controlplane import blame, credentials, process
from gpuwl.controlplane.credentials import Authority, Pair
from gpuwl.lab import local_plane
from gpuwl.system import waiting
from gpuwl.system.progress import SILENCE

DAY = dt.timedelta(days=1)


@pytest.fixture
def made(tmp_path: Path) -> dt.datetime:
    """The time at which certificates were made that lie in `tmp_path`."""
    credentials.create(tmp_path, "x", 1)
    return dt.datetime.now(dt.UTC)


@pytest.mark.parametrize(
    ("later", "words"),
    [
        (-2 * DAY, "are valid from "),
        (-DAY / 2, None),
        (0 * DAY, None),
        (3651 * DAY, "were valid until "),
    ],
)
def test_the_clock_is_compared_with_the_certificates(
    made: dt.datetime, later: dt.timedelta, words: str | None, tmp_path: Path
) -> None:
    found = blame.clock_trouble(tmp_path, made + later)
    assert found is None if words is None else (found or "").startswith(words)


@pytest.mark.cluster
@pytest.mark.parametrize("verb", ["run --all", "reset"])
def test_a_certificate_that_is_not_valid_yet_is_blamed_on_the_clock(
    verb: str, name: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a start with a clock that is ahead: the administrator's certificate is from tomorrow."""
    issue: Callable[..., Pair] = Authority.client

    def from_tomorrow(self: Authority, user: str, group: str) -> Pair:
        with pytest.MonkeyPatch.context() as patch:
            if user == "gpuwl-admin":
                patch.setattr(credentials, "VALID_BEFORE", -DAY)
            return issue(self, user, group)

    monkeypatch.setattr(Authority, "client", from_tomorrow)
    up = local_plane.ensure_up(name, listener=SILENCE).plane
    run = program("gpuwl", KUBECONFIG=str(up.kubeconfig), GPUWL_ROOT=str(root))
    done = run(*verb.split())
    assert done.returncode == 3
    message = f"error: the certificates of the local control plane {name} are valid from "
    assert message in done.stderr
    assert "set the clock right" in done.stderr.splitlines()[-1]


@pytest.mark.cluster
def test_a_suspended_api_server_is_named_at_once_by_whatever_way_it_is_reached(
    name: str, root: Path
) -> None:
    up = local_plane.ensure_up(name, listener=SILENCE).plane
    who = identity(name, "kube-apiserver")
    os.kill(who.pid, signal.SIGSTOP)
    assert waiting.until(lambda: process.suspended(who) or None, seconds=5)
    run = program("gpuwl", KUBECONFIG=str(up.kubeconfig), GPUWL_ROOT=str(root))
    for verb in ("run --all", "reset"):
        done = run(*verb.split(), timeout=8)
        assert done.returncode == 3
        assert f"error: kube-apiserver of the local control plane '{name}' is" in done.stderr
