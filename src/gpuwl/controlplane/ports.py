"""TCP ports of 127.0.0.1."""

import socket
from pathlib import Path

from gpuwl.controlplane import components
from gpuwl.errors import SetupError
from gpuwl.system import oserrors


def answers(port: int) -> bool:
    """Say whether something listens on that port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((components.ADDRESS, port)) == 0


def serves(port: int, authority: Path) -> bool:
    """Say whether who listens on that port has a certificate of that authority."""
    if not answers(port):
        return False
    import ssl

    try:
        context = ssl.create_default_context(cafile=authority)
        with socket.create_connection((components.ADDRESS, port), timeout=1) as plain:
            context.wrap_socket(plain, server_hostname=components.ADDRESS).close()
    except OSError:  # a certificate that does not fit is one too
        return False
    return True


def free() -> int:
    """Return a port that is free right now; somebody else may take it before it is used."""
    return check()


def check() -> int:
    """Connect to 127.0.0.1 once, and return the port. Raises SetupError where there is none."""
    with socket.socket() as probe:
        try:
            probe.bind((components.ADDRESS, 0))
            probe.listen()
            port = int(probe.getsockname()[1])
            socket.create_connection((components.ADDRESS, port), timeout=1).close()
        except OSError as error:
            raise SetupError(
                f"nothing can connect to {components.ADDRESS} here: {oserrors.words(error)}",
                hint="bring the loopback interface up: ip link set lo up",
            ) from None
        return port
