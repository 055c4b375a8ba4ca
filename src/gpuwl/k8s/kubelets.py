"""Whether a kubelet runs on a node, told by the lease that it renews.

https://kubernetes.io/docs/concepts/architecture/leases/#node-heart-beats
"""

import datetime as dt

from gpuwl.k8s.client import ReadOnlyCluster

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
SLACK = dt.timedelta(seconds=30)
"""How much older than its duration a lease may be: clocks differ, a busy kubelet is late."""


def last_seen(cluster: ReadOnlyCluster, node: str) -> float | None:
    """Return how many seconds ago the live kubelet of a node renewed its lease, None for no such.

    Raises ClusterError where that may not be looked at.
    """
    spec = (cluster.find(f"{LEASES}/{node}") or {}).get("spec") or {}
    if not spec.get("renewTime"):
        return None
    age = dt.datetime.now(dt.UTC) - dt.datetime.fromisoformat(spec["renewTime"])
    limit = dt.timedelta(seconds=spec.get("leaseDurationSeconds") or 0) + SLACK
    return max(age.total_seconds(), 0.0) if age <= limit else None
