"""The local control plane as the lab starts it: with the lab's three nodes, or with those of a dump."""

import datetime as dt
from pathlib import Path

from gpuwl.controlplane import plane, state
from gpuwl.controlplane.binaries.lookup import Source
from gpuwl.k8s.objects import Object
from gpuwl.lab.names import NODE_NAMES
from gpuwl.system.progress import Listener


def ensure_up(  # noqa: PLR0913 - one keyword per option of the command
    name: str = state.DEFAULT_NAME,
    *,
    version: str | None = None,
    source: Source | None = None,
    nodes: Path | None = None,
    anonymise: bool = False,
    map_file: Path | None = None,
    listener: Listener,
) -> plane.Up:
    """Return the control plane `name`, started if it is not up; `nodes` is a dump.

    The dump's nodes take the place of the lab's, under other names if `anonymise`;
    `map_file` then tells which. Raises as
    `plane.ensure_up` does, and InputError where the dump cannot be used.
    """
    dump = state.Dump.of(nodes, anonymised=anonymise) if nodes else None
    if nodes and map_file:
        _write_map(nodes, map_file)

    def objects() -> list[Object]:
        if nodes is None:
            return lab_nodes()
        from gpuwl.k8s.dump import read

        return read(nodes, anonymise=anonymise)

    return plane.ensure_up(
        name, version=version, source=source, nodes=objects, dump=dump, listener=listener
    )


def _write_map(nodes: Path, map_file: Path) -> None:
    from gpuwl.k8s.dump import write_map

    write_map(nodes, map_file)


def lab_nodes() -> list[Object]:
    """Return the lab's three nodes as a kubelet would have registered them, without any GPU."""
    return [_lab_node(name) for name in NODE_NAMES]


def _lab_node(name: str) -> Object:
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
