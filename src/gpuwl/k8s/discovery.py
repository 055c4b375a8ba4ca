"""What a namespace holds, of every kind that the server knows: asked of API discovery."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from gpuwl.k8s import paths
from gpuwl.k8s.client import ReadOnlyCluster
from gpuwl.k8s.objects import Object

AT_ONCE = 8
METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
"""What the server is asked for: no Secret's value comes along.
https://kubernetes.io/docs/reference/using-api/api-concepts/#alternate-representations-of-resources"""


@dataclass(frozen=True)
class Held:
    """One object in a namespace: its kind, its metadata, and the collection that it is in."""

    kind: str
    metadata: Object
    collection: str

    def __str__(self) -> str:
        """Say it as `ConfigMap/settings`."""
        return f"{self.kind}/{self.metadata['name']}"


def contents(cluster: ReadOnlyCluster, namespace: str) -> list[Held]:
    """Return everything in a namespace that can be listed and deleted, each object once.

    Raises ClusterError, also where one kind may not be listed: somebody may have put one there.
    """

    def listed(kind: tuple[str, str]) -> list[Held]:
        items = cluster.get(kind[1], accept=METADATA).get("items") or ()
        return [Held(kind[0], item["metadata"], kind[1]) for item in items]

    kinds = list(_kinds(cluster, namespace))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = [one for part in pool.map(listed, kinds) for one in part]
    return list({one.metadata["uid"]: one for one in found}.values())


def _kinds(cluster: ReadOnlyCluster, namespace: str) -> Iterator[tuple[str, str]]:
    """Yield kind and collection of whatever a namespace can hold."""
    groups = cluster.get("/apis").get("groups") or ()
    roots = [
        paths.CORE,
        *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups),
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for root, answer in zip(roots, pool.map(cluster.get, roots), strict=True):
            for name, kind in _deletable(answer.get("resources") or ()):
                yield kind, f"{root}/namespaces/{namespace}/{name}"


def _deletable(resources: Iterable[Object]) -> Iterator[tuple[str, str]]:
    for one in resources:
        verbs = set(one.get("verbs") or ())
        if one["namespaced"] and {"list", "delete"} <= verbs:
            yield one["name"], one["kind"]
