"""gpuwl's own requests during a start, with the standard library alone.

The start must not wait for the import of the Kubernetes client. They carry a token: the server's
check of a client's certificate costs more than the request.
"""

import http.client
import json
import re
import ssl
from collections.abc import Iterable
from pathlib import Path

from gpuwl.controlplane import components, loading, store

READY = (
    "/readyz?exclude=poststarthook/rbac/bootstrap-roles"
    "&exclude=poststarthook/scheduling/bootstrap-system-priority-classes"
)
"""Without two start hooks that sleep for a second before their first try, which nobody in the group
system:masters depends on."""

UNDECODABLE = re.compile(r"Key: (?P<key>[^ ,]+), .*?object not decodable[^:]*: (?P<why>.+)")
"""The server's words about what it finds in etcd and cannot read."""


class Connection:
    """One kept-alive connection to the API server in `folder`, which is verified."""

    def __init__(self, folder: Path, port: int, *, seconds: float) -> None:
        context = ssl.create_default_context(cafile=folder / components.CA_CERTIFICATE)
        self._http = http.client.HTTPSConnection(
            components.ADDRESS, port, context=context, timeout=seconds
        )
        token = (folder / components.LOADER_IDENTITY).read_text().partition(",")[0]
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json",
        }

    def close(self) -> None:
        """Close it; the next request would open it again."""
        self._http.close()

    def ready(self) -> bool | None:
        """Return True once the server calls itself ready, else None."""
        return True if self._ask(READY)[0] == 200 else None

    def check_decodable(self, kinds: Iterable[str]) -> None:
        """Raise InputError for an object in etcd that the server cannot read: it never gets ready then."""
        for kind in sorted(kinds):
            status, answer = self._ask(f"{store.LISTS[kind]}?resourceVersion=0")
            words = "" if status in {None, 200} else str(json.loads(answer).get("message"))
            if found := UNDECODABLE.search(words):
                raise loading.unusable(kind, found["key"].rpartition("/")[2], found["why"])

    def _ask(self, path: str) -> tuple[int | None, bytes]:
        try:
            self._http.request("GET", path, None, self._headers)
            response = self._http.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            self._http.close()
            return None, b""
