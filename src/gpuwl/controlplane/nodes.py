"""The lab's three nodes, as a local control plane has them at its start."""

import datetime as dt
from typing import Any

from gpuwl.names import NODE_NAMES

Node = dict[str, Any]


def lab_nodes() -> list[Node]:
    """Return the lab's three nodes as a kubelet would have registered them, without any GPU."""
    return [_lab_node(name) for name in NODE_NAMES]


def _lab_node(name: str) -> Node:
    amounts = {"cpu": "32", "ephemeral-storage": "512Gi", "memory": "128Gi", "pods": "110"}
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "LocalControlPlane",
        "message": "declared ready by gpuwl: no kubelet runs here",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "beta.kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
            },
        },
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }
