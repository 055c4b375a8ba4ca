"""The API paths of the core API (version v1), as far as gpuwl uses them."""

CORE = "/api/v1"
NODES = f"{CORE}/nodes"
NAMESPACES = f"{CORE}/namespaces"
VERSION = "/version"


def node(name: str) -> str:
    """Return the path of a Node."""
    return f"{NODES}/{name}"


def namespace(name: str) -> str:
    """Return the path of a Namespace."""
    return f"{NAMESPACES}/{name}"
