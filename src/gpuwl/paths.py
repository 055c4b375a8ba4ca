"""The API paths of the objects that the lab touches (core API, version v1)."""

from gpuwl.names import NAMESPACE

CORE = "/api/v1"
NODES = f"{CORE}/nodes"
NAMESPACES = f"{CORE}/namespaces"
THE_NAMESPACE = f"{NAMESPACES}/{NAMESPACE}"
PODS = f"{THE_NAMESPACE}/pods"
EVENTS = f"{THE_NAMESPACE}/events"
VERSION = "/version"


def node(name: str) -> str:
    """Return the path of a Node."""
    return f"{NODES}/{name}"


def pod(name: str) -> str:
    """Return the path of a Pod in the lab's namespace."""
    return f"{PODS}/{name}"
