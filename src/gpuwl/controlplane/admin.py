"""gpuwl's own requests during a start, with the standard library alone.

The start must not wait for the import of the Kubernetes client, and loading thousands of nodes
costs a third of the processor time this way (0.4 ms a node instead of 1.5). They carry a token, since
the server verifies a client's certificate at each request: a tenth of what a node costs it.
"""

import http.client
import json
import ssl
from pathlib import Path
from typing import Any

from gpuwl.controlplane import components

READY = (
    "/readyz?exclude=poststarthook/rbac/bootstrap-roles"
    "&exclude=poststarthook/scheduling/bootstrap-system-priority-classes"
)
"""Without two start hooks that sleep for a second before their first try, which nobody in the group
system:masters depends on."""

UNCHECKED = "fieldValidation=Ignore"


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
            "Content-Type": "application/json",
            "Accept": "application/vnd.kubernetes.protobuf",
        }

    def close(self) -> None:
        """Close it; the next request would open it again."""
        self._http.close()

    def ready(self) -> bool | None:
        """Return True once the server calls itself ready, else None."""
        return True if self._status("GET", READY) == 200 else None

    def create(self, path: str, body: dict[str, Any]) -> bool:
        """Create an object; False where the server refused, or its answer got lost.

        What the object then is, nobody reads: the answer comes in the form that is cheapest for the
        server, and it does not look for unknown fields to warn of. A sixth of its time.
        """
        return self._status("POST", f"{path}?{UNCHECKED}", json.dumps(body).encode()) == 201

    def _status(self, method: str, path: str, body: bytes | None = None) -> int | None:
        try:
            self._http.request(method, path, body, self._headers)
            response = self._http.getresponse()
            response.read()
        except (OSError, http.client.HTTPException):
            self._http.close()
            return None
        return response.status
