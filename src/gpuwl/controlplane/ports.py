"""TCP ports of 127.0.0.1."""

import socket

from gpuwl.controlplane import components


def answers(port: int) -> bool:
    """Say whether something listens on that port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((components.ADDRESS, port)) == 0


def free() -> int:
    """Return a port that is free right now; somebody else may take it before it is used."""
    with socket.socket() as probe:
        probe.bind((components.ADDRESS, 0))
        return int(probe.getsockname()[1])
