"""Where an inventory comes from: dumps, read as streams, or a live cluster, read page by page."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from gpuwl.errors import ClusterError
from gpuwl.inventory import collect, slices
from gpuwl.inventory.collect import Selects, every_node
from gpuwl.inventory.model import Inventory
from gpuwl.k8s import dump, paths
from gpuwl.k8s.objects import Object

if TYPE_CHECKING:
    from gpuwl.k8s.client import ReadOnlyCluster

Take = Callable[[Object], None]

NODES_A_PAGE = 100
PODS_A_PAGE = 500
"""A page of either is a few megabytes: a Node is ten times as large as a Pod."""
PODS = "/api/v1/pods"
COUNTED = "status.phase!=Succeeded,status.phase!=Failed"
"""A field selector for the Pods that hold or want something."""
RESOURCE_API = "/apis/resource.k8s.io/v1"
DRA = {
    "resourceslices": "ResourceSlice",
    "deviceclasses": "DeviceClass",
    "resourceclaims": "ResourceClaim",
}
EXPIRED, NOT_FOUND, FORBIDDEN = 410, 404, 403
MAKE_SLICES = "kubectl get resourceslices,deviceclasses,resourceclaims -A -o json > slices.json"
MAKE_PODS = "kubectl get pods -A -o json > pods.json"


@dataclass(frozen=True)
class Files:
    """Dumps: of Nodes, and of Pods and of what DRA has where there are. 0 is standard input."""

    nodes: Path | int
    pods: Path | int | None = None
    slices: tuple[Path, ...] = ()


def from_files(files: Files, selects: Selects = every_node) -> Inventory:
    """Return the inventory of dumps. A dump of Nodes that holds Pods too serves for both.

    Raises InputError where one cannot be read or is not such a dump.
    """
    found = Inventory(pods=None if files.pods is None else 0)
    seen = dump.stream(
        files.nodes, lambda item, _: collect.add_node(found, item, selects), ("Node",)
    )
    pods = files.pods
    if pods is None and seen["Pod"] and isinstance(files.nodes, Path):
        pods = files.nodes
        collect.see_pods(found)
    claims = slices.Claims()
    for path in files.slices:
        dump.stream(path, lambda item, _: claims.add(item), slices.KINDS, make_it=MAKE_SLICES)
        found.has_slices = True
    claims.settle(found)
    if pods is not None:
        dump.stream(
            pods, lambda item, _: collect.add_pod(found, item, claims), ("Pod",), make_it=MAKE_PODS
        )
    return collect.finished(found)


def from_cluster(cluster: "ReadOnlyCluster", selects: Selects = every_node) -> Inventory:
    """Return the inventory of a live cluster, which is only read: Nodes, then Pods.

    Raises ClusterError where it does not answer or refuses.
    """
    found = Inventory(pods=0)
    _each(
        cluster, paths.NODES, NODES_A_PAGE, {}, lambda item: collect.add_node(found, item, selects)
    )
    claims = _claims(cluster, found)
    selector = {"fieldSelector": COUNTED}
    try:
        _each(
            cluster, PODS, PODS_A_PAGE, selector, lambda item: collect.add_pod(found, item, claims)
        )
    except ClusterError as error:
        if error.status != EXPIRED:
            raise
        return from_cluster(cluster, selects)  # the pages grew too old: all of it anew
    return collect.finished(found)


def _claims(cluster: "ReadOnlyCluster", found: Inventory) -> slices.Claims:
    """Return what DRA has; a cluster without it has nothing, one that refuses to show it is told of."""
    claims = slices.Claims()
    try:
        for plural, kind in DRA.items():
            add = functools.partial(_add, claims, kind)
            _each(cluster, f"{RESOURCE_API}/{plural}", PODS_A_PAGE, {}, add)
        claims.claims_seen = found.has_slices = True
    except ClusterError as error:
        if error.status not in {NOT_FOUND, FORBIDDEN}:
            raise
        found.refused = error.message if error.status == FORBIDDEN else None
        claims = slices.Claims()
    claims.settle(found)
    return claims


def _add(claims: slices.Claims, kind: str, item: Object) -> None:
    """Add an item of a list, which does not say its kind."""
    claims.add({**item, "kind": kind})


def _each(
    cluster: "ReadOnlyCluster", path: str, limit: int, query: dict[str, str], take: Take
) -> None:
    """Hand on each object of a collection, one page at a time."""
    token = ""
    while True:
        more = {"continue": token} if token else {}
        page = cluster.get(f"{path}?{urlencode({'limit': limit, **query, **more})}")
        for item in page.get("items") or ():
            take(item)
        token = (page.get("metadata") or {}).get("continue") or ""
        if not token:
            return
