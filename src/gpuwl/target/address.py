"""The address of a cluster: one spelling for all of them, and the lock that goes by it."""

import contextlib
import hashlib
from collections.abc import Iterator
from urllib.parse import urlsplit

from gpuwl.system import folders, locking, oserrors


@contextlib.contextmanager
def held(server: str) -> Iterator[None]:
    """Hold the lock of the cluster at an address such as `https://127.0.0.1:6443`.

    It is in the state folder, as local control planes are: it keeps out this user's other commands
    on this machine. Raises SetupError where another process holds it, or where the folder cannot be
    written.
    """
    path = folders.state() / ".locks" / f"target-{_key(server)}.lock"
    with contextlib.ExitStack() as stack:
        with oserrors.explained("cannot lock", path, "free that path, or set XDG_STATE_HOME"):
            folders.make(path.parent)
            stack.enter_context(locking.held(path, f"the cluster at {server}"))
        yield


def _key(server: str) -> str:
    return hashlib.sha256(plain(server).encode()).hexdigest()[:16]


def plain(server: str) -> str:
    """Return the same text for every spelling of an address, such as `https://127.0.0.1:6443`."""
    parts = urlsplit(server)
    host = {"localhost": "127.0.0.1"}.get(parts.hostname or "", parts.hostname or "")
    return f"{parts.scheme}://{host}:{parts.port or 443}{parts.path.rstrip('/')}"
