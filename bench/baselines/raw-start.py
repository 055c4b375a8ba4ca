#!/usr/bin/env python3
"""Seconds until a control plane started by hand says that it is ready: raw-start.py BIN_DIR.

The other side of bench/cold.py. The same etcd and kube-apiserver, as a careful script would start
them: both at once, free ports, plain flags, a token for the administrator, and /readyz asked every
20 ms until it answers ok. That is where such a script would start the scheduler. Prints one number.
"""

import contextlib
import http.client
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

LIMIT = 60
USER = "admin"


def free_ports(count: int) -> list[int]:
    """Return different TCP ports of 127.0.0.1 that are free right now."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [probe.getsockname()[1] for probe in probes]


def prepare(folder: Path) -> None:
    """Make the key that signs service account tokens, and the administrator's token."""
    key = ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out"]
    subprocess.run([*key, folder / "sa.key"], check=True, stderr=subprocess.DEVNULL)
    (folder / "tokens.csv").write_text(f"{USER},{USER},{USER},system:masters\n")


def commands(programs: Path, folder: Path, ports: list[int]) -> list[list[str]]:
    """Return the command lines of etcd and kube-apiserver."""
    client, peer, secure = ports
    etcd = [
        f"--data-dir={folder}/etcd",
        f"--listen-client-urls=http://127.0.0.1:{client}",
        f"--advertise-client-urls=http://127.0.0.1:{client}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-cluster=default=http://127.0.0.1:{peer}",
        "--unsafe-no-fsync",
    ]
    apiserver = [
        f"--etcd-servers=http://127.0.0.1:{client}",
        f"--cert-dir={folder}/certs",
        f"--secure-port={secure}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder}/sa.key",
        f"--service-account-signing-key-file={folder}/sa.key",
        f"--token-auth-file={folder}/tokens.csv",
        "--authorization-mode=RBAC",
        "--disable-admission-plugins=ServiceAccount",
    ]
    return [[str(programs / "etcd"), *etcd], [str(programs / "kube-apiserver"), *apiserver]]


@contextlib.contextmanager
def running(lines: list[list[str]], folder: Path) -> Iterator[None]:
    """Run these commands for the length of the block."""
    children = []
    try:
        for line in lines:
            with (folder / f"{Path(line[0]).name}.log").open("wb") as log:
                children.append(
                    subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
                )
        yield
    finally:
        for child in reversed(children):
            child.kill()
            child.wait()


def is_ready(port: int) -> bool:
    """Ask once; the server's certificate is its own, made at this start."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=2)
    with contextlib.suppress(OSError, http.client.HTTPException), contextlib.closing(connection):
        connection.request("GET", "/readyz", headers={"Authorization": f"Bearer {USER}"})
        return connection.getresponse().read() == b"ok"
    return False


def main() -> None:
    """Start, wait, print, stop."""
    folder = Path(tempfile.mkdtemp(prefix="raw-start-"))
    try:
        prepare(folder)
        ports = free_ports(3)
        lines = commands(Path(sys.argv[1]).resolve(), folder, ports)
        began = time.perf_counter()
        with running(lines, folder):
            while not is_ready(ports[-1]):
                if time.perf_counter() - began > LIMIT:
                    sys.exit(f"not ready within {LIMIT} s")
                time.sleep(0.02)  # noqa: TID251 - a script by hand has no other way
            print(f"{time.perf_counter() - began:.3f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
