"""The surroundings of a review as a cluster has them: read page by page, never changed."""

from collections.abc import Callable, Iterator
from typing import Protocol
from urllib.parse import quote

from gpuwl.errors import ClusterError
from gpuwl.k8s.objects import Object
from gpuwl.review.review import Review

PAGE = 500
LISTS = (
    ("/api/v1/resourcequotas", "v1", "ResourceQuota"),
    ("/api/v1/limitranges", "v1", "LimitRange"),
    ("/apis/resource.k8s.io/v1/deviceclasses", "resource.k8s.io/v1", "DeviceClass"),
    ("/apis/resource.k8s.io/v1/resourceslices", "resource.k8s.io/v1", "ResourceSlice"),
    ("/apis/resource.k8s.io/v1/resourceclaims", "resource.k8s.io/v1", "ResourceClaim"),
    (
        "/apis/resource.k8s.io/v1/resourceclaimtemplates",
        "resource.k8s.io/v1",
        "ResourceClaimTemplate",
    ),
    ("/apis/kubevirt.io/v1/kubevirts", "kubevirt.io/v1", "KubeVirt"),
    ("/apis/hco.kubevirt.io/v1beta1/hyperconvergeds", "hco.kubevirt.io/v1beta1", "HyperConverged"),
    ("/apis/nvidia.com/v1/clusterpolicies", "nvidia.com/v1", "ClusterPolicy"),
)
"""What surrounds a workload, by path, version and kind. A cluster need not have all of them."""
ABSENT = frozenset({403, 404})
"""Statuses that say that a kind is not there, or not for us to see."""


class Reader(Protocol):
    """What is needed of a client."""

    def get(self, path: str) -> Object:
        """Return the object or list at a path; raises ClusterError."""


def read(cluster: Reader, review: Review) -> list[str]:
    """Take everything that a cluster says, and return the kinds that could not be seen.

    Raises ClusterError where nodes cannot be listed.
    """
    for node in _listed(cluster, "/api/v1/nodes"):
        review.add_node({**node, "apiVersion": "v1", "kind": "Node"})
    known = review.known
    seen = {"Pod": _each(cluster, "/api/v1/pods", review.add_pod)}
    for path, version, kind in LISTS:
        of_kind = {"apiVersion": version, "kind": kind}
        seen[kind] = _each(cluster, path, lambda item, more=of_kind: known.add({**item, **more}))  # type: ignore[misc] # mypy infers no default
    known.classes_seen |= seen["DeviceClass"]
    known.slices_seen |= seen["ResourceSlice"]
    known.whole = True
    return [kind for kind, there in seen.items() if not there]


def _each(cluster: Reader, path: str, take: Callable[[Object], object]) -> bool:
    """Take each object of a list; tell whether that list is there for us to see."""
    try:
        for item in _listed(cluster, path):
            take(item)
    except ClusterError as error:
        if error.status not in ABSENT:
            raise
        return False
    return True


def _listed(cluster: Reader, path: str) -> Iterator[Object]:
    token = ""
    while True:
        more = f"&continue={quote(token)}" if token else ""
        answer = cluster.get(f"{path}?limit={PAGE}{more}")
        yield from answer.get("items") or ()
        token = str((answer.get("metadata") or {}).get("continue") or "")
        if not token:
            return
