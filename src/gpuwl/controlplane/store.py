"""Writing objects into etcd behind an API server's back: ten times as fast as asking it to.

The API server decodes and defaults what it finds, so that objects may be in JSON and in any version
that it knows. It does not judge them: `soundness` looks at them first. The gateway, its limits and the
encoding are etcd's (https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway/); the keys are those of
https://pkg.go.dev/k8s.io/kubernetes/pkg/kubeapiserver.
"""

import base64
import contextlib
import datetime as dt
import http.client
import json
import os
import socket
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gpuwl.controlplane import components
from gpuwl.errors import InputError, SetupError
from gpuwl.k8s.objects import Object

BATCH = 100
"""Objects in a transaction, of which etcd takes 128 operations at most."""
BATCH_BYTES = 1_000_000
"""Bytes in a transaction; etcd refuses requests of more than 1.5 MiB."""
FOLDERS = {
    "Node": "minions",
    "Namespace": "namespaces",
    "Pod": "pods",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Service": "services/specs",
    "PriorityClass": "priorityclasses",
    "RuntimeClass": "runtimeclasses",
    "StorageClass": "storageclasses",
    "CSINode": "csinodes",
    "CSIDriver": "csidrivers",
    "CSIStorageCapacity": "csistoragecapacities",
    "DeviceClass": "deviceclasses",
    "ResourceClaim": "resourceclaims",
    "ResourceSlice": "resourceslices",
}
"""Where below /registry the API server keeps the objects of a kind."""
_GROUPS = {
    "scheduling.k8s.io": ("PriorityClass",),
    "node.k8s.io": ("RuntimeClass",),
    "storage.k8s.io": ("StorageClass", "CSINode", "CSIDriver", "CSIStorageCapacity"),
    "resource.k8s.io": ("DeviceClass", "ResourceClaim", "ResourceSlice"),
}
_GROUP_OF = {kind: group for group, kinds in _GROUPS.items() for kind in kinds}
LISTS = {
    kind: f"/apis/{_GROUP_OF[kind]}/v1/{folder}" if kind in _GROUP_OF else f"/api/v1/{folder}"
    for kind, folder in FOLDERS.items()
} | {"Node": "/api/v1/nodes", "Service": "/api/v1/services"}
"""Where the API server serves them."""


def key_of(item: Object) -> str:
    """Return an object's key, with its namespace where it has one."""
    metadata = item["metadata"]
    names = [metadata["namespace"]] if metadata.get("namespace") else []
    return "/".join(["/registry", FOLDERS[item["kind"]], *names, metadata["name"]])


class Store:
    """One kept-alive connection to the etcd of the control plane in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._http = _UnixConnection(folder / components.CLIENT_SOCKET)

    def close(self) -> None:
        """Close it."""
        self._http.close()

    def healthy(self) -> bool | None:
        """Return True once etcd has elected itself and takes writes, else None."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            return True if self._ask("GET", "/health")[0] == 200 else None
        self._http.close()
        return None

    def put(self, batch: Iterable[tuple[str, bytes]]) -> None:
        """Write keys and values in one transaction. Raises SetupError where etcd does not take it."""
        self._commit(
            [{"requestPut": {"key": _base64(k.encode()), "value": _base64(v)}} for k, v in batch]
        )

    def delete(self, keys: Sequence[str]) -> None:
        """Remove what is at these keys. Raises SetupError where etcd does not."""
        for first in range(0, len(keys), BATCH):
            some = keys[first : first + BATCH]
            self._commit([{"requestDeleteRange": {"key": _base64(k.encode())}} for k in some])

    def _commit(self, operations: list[Object]) -> None:
        body = json.dumps({"success": operations}).encode()
        try:
            status, answer = self._ask("POST", "/v3/kv/txn", body)
        except (OSError, http.client.HTTPException) as error:
            raise SetupError(f"no answer from etcd: {str(error) or type(error).__name__}") from None
        if status != 200:
            raise SetupError(f"etcd refused to write: {answer.decode(errors='replace').strip()}")

    def _ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        self._http.request(method, path, body, {"Content-Type": "application/json"})
        response = self._http.getresponse()
        return response.status, response.read()


def batches(objects: Iterable[Object]) -> Iterator[list[tuple[str, bytes]]]:
    """Return keys and values of the objects, in portions that etcd takes in one transaction.

    Raises InputError for an object that is too large by itself.
    """
    batch: list[tuple[str, bytes]] = []
    size = 0
    for item in objects:
        key, value = key_of(item), stored(item)
        if len(value) > BATCH_BYTES:
            raise InputError(
                f"the {item['kind']} {item['metadata']['name']} has {len(value) / 1e6:.1f} MB, "
                "and a cluster stores 1.5 MB at most"
            )
        if batch and (len(batch) == BATCH or size + len(value) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append((key, value))
        size += len(value)
    if batch:
        yield batch


def stored(item: Object) -> bytes:
    """Return an object as the API server would have stored it: it has an identity and an age."""
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    given = {"uid": str(uuid.uuid4()), "creationTimestamp": now}
    metadata = {**given, **{k: v for k, v in item["metadata"].items() if v is not None}}
    return json.dumps({**item, "metadata": metadata}, separators=(",", ":")).encode()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a socket in the file system, however long its path is."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=30)
        self._path = path

    def connect(self) -> None:
        """Connect through the folder's descriptor: an address holds 108 bytes (unix(7))."""
        folder = os.open(self._path.parent, os.O_PATH | os.O_DIRECTORY)
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(f"/proc/self/fd/{folder}/{self._path.name}")
        except OSError:
            self.close()
            raise
        finally:
            os.close(folder)
