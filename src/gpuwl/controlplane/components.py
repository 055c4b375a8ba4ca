"""The arguments of etcd, kube-apiserver and kube-scheduler. Pure: no file and no process.

All file names are relative to the control plane's folder, which is the working directory of the
three: a long path would not fit into a socket's address (108 bytes, unix(7)), and etcd turns an
absolute path into an abstract socket, which every user of the machine can open.
"""

import os

from gpuwl.controlplane.binaries.cache import NAMES

__all__ = ["NAMES"]

CLIENT_SOCKET = "c.sock:0"
PEER_SOCKET = "p.sock:0"
"""File names. etcd before 3.7 takes no address without a port, also where it has no meaning."""
ADDRESS = "127.0.0.1"
SERVICE_RANGE = "10.0.0.0/24"
SERVICE_ADDRESS = "10.0.0.1"
"""The first address of the range is that of the `kubernetes` service."""
ISSUER = "https://kubernetes.default.svc.cluster.local"

CA_CERTIFICATE = "ca.crt"
SERVER_CERTIFICATE = "kube-apiserver.crt"
SERVER_KEY = "kube-apiserver.key"
SERVICE_ACCOUNT_KEY = "service-account.key"
SERVICE_ACCOUNT_PUBLIC = "service-account.pub"
SCHEDULER_KUBECONFIG = "kube-scheduler.kubeconfig"
SCHEDULER_CONFIGURATION = "kube-scheduler.json"
LOADER_IDENTITY = "loader.csv"
"""Token and name of gpuwl's own requests during a start, a line of kube-apiserver's token file."""
KUBECONFIG = "kubeconfig"
"""The administrator's."""


def etcd() -> list[str]:
    """Return etcd's arguments: one member, no TCP listener.

    What fsync protects is not needed: after a crash of the machine a control plane starts empty. It
    waits for an election timeout before it elects itself, most of a second by default.
    """
    client, peer = f"unix://{CLIENT_SOCKET}", f"unix://{PEER_SOCKET}"
    return [
        "--name=default",
        "--data-dir=etcd",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--heartbeat-interval=10",
        "--election-timeout=50",
        "--log-level=warn",
        "--unsafe-no-fsync",
    ]


def kube_apiserver(port: int) -> list[str]:
    """Return kube-apiserver's arguments; `port` is its only TCP port.

    ServiceAccount admission is off because no controller makes the account that it wants in each
    Pod, TaintNodesByCondition because no controller takes its not-ready taint away again. Without
    advertise address and reconciler it dies on a machine that has no default route. The last one
    bounds how long an open watch delays its end, which is 60 s by default.
    """
    return [
        f"--etcd-servers=unix://{CLIENT_SOCKET}",
        f"--bind-address={ADDRESS}",
        f"--secure-port={port}",
        f"--advertise-address={ADDRESS}",
        "--endpoint-reconciler-type=none",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        f"--tls-cert-file={SERVER_CERTIFICATE}",
        f"--tls-private-key-file={SERVER_KEY}",
        f"--client-ca-file={CA_CERTIFICATE}",
        f"--token-auth-file={LOADER_IDENTITY}",
        "--anonymous-auth=false",
        "--authorization-mode=RBAC",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={SERVICE_ACCOUNT_PUBLIC}",
        f"--service-account-signing-key-file={SERVICE_ACCOUNT_KEY}",
        "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
        "--shutdown-watch-termination-grace-period=1s",
    ]


def kube_scheduler(*, configured: bool = False) -> list[str]:
    """Return kube-scheduler's arguments: no election, no listener; a configuration file if there is one."""
    file = [f"--config={SCHEDULER_CONFIGURATION}"] if configured else ["--leader-elect=false"]
    return [
        *file,
        f"--kubeconfig={SCHEDULER_KUBECONFIG}",
        f"--authentication-kubeconfig={SCHEDULER_KUBECONFIG}",
        f"--authorization-kubeconfig={SCHEDULER_KUBECONFIG}",
        "--secure-port=0",
    ]


def environment(garbage: int = 300) -> dict[str, str]:
    """Return the variables of the three, and no others: etcd takes any flag from ETCD_… too.

    `garbage` is Go's GOGC. A garbage collector that runs less often saves a sixth of the processor
    time of a start, for 90 MB more at first (460 instead of 370) and half as much again with 15,000
    objects.
    """
    return {"PATH": os.defpath, "GOGC": str(garbage)}
