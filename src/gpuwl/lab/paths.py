"""The API paths of the objects that the lab touches: those of `k8s.paths`, and its own namespace's."""

from gpuwl.k8s.paths import CORE, NAMESPACES, NODES, VERSION, namespace, node
from gpuwl.lab.names import NAMESPACE

__all__ = ["CORE", "NAMESPACES", "NODES", "VERSION", "namespace", "node"]

THE_NAMESPACE = namespace(NAMESPACE)
PODS = f"{THE_NAMESPACE}/pods"
EVENTS = f"{THE_NAMESPACE}/events"


def pod(name: str) -> str:
    """Return the path of a Pod in the lab's namespace."""
    return f"{PODS}/{name}"
