"""Does the API server answer yet? With the standard library alone, over verified TLS."""

import http.client
import ssl
from pathlib import Path

from gpuwl.controlplane import components

READY = (
    "/readyz?exclude=poststarthook/rbac/bootstrap-roles"
    "&exclude=poststarthook/scheduling/bootstrap-system-priority-classes"
)
"""Without two start hooks that sleep for a second before their first try, which nobody in the group
system:masters depends on."""


class ReadyProbe:
    """Asks /readyz as the administrator, over one connection while it lasts."""

    def __init__(self, folder: Path, port: int) -> None:
        context = ssl.create_default_context(cafile=folder / components.CA_CERTIFICATE)
        context.load_cert_chain(
            folder / components.ADMIN_CERTIFICATE, folder / components.ADMIN_KEY
        )
        self._connection = http.client.HTTPSConnection(
            components.ADDRESS, port, context=context, timeout=2
        )

    def ready(self) -> bool | None:
        """Return True once the server calls itself ready, else None."""
        try:
            self._connection.request("GET", READY)
            response = self._connection.getresponse()
            response.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return None
        return True if response.status == 200 else None

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
