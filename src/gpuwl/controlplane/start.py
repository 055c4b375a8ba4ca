"""The start of a control plane, from no folder to loaded nodes.

Order and overlap are measured: etcd first, certificates while it boots, then the API server, and while
that boots the nodes straight into etcd and the imports that talking to it needs; the scheduler once the
port answers.
"""

import contextlib
import json
import time
from dataclasses import dataclass

from gpuwl.controlplane import components, ports, state, teardown
from gpuwl.controlplane.binaries.lookup import Binaries
from gpuwl.controlplane.boot import Boot, ComponentError, PortTakenError
from gpuwl.errors import GpuwlError, SetupError
from gpuwl.k8s.objects import Object
from gpuwl.system.progress import Listener, Progress

Say = Listener

PORT_TRIES = 5
PATIENCE = 1.0
"""Seconds that a healthy API server may take between its port's answer and its readiness, before it is
asked whether an object keeps it from that."""


@dataclass(frozen=True)
class Request:
    """What to start: name, binaries, what to load and where its nodes came from.

    `scheduler` is a KubeSchedulerConfiguration, None for the scheduler's own.
    """

    name: str
    binaries: Binaries
    nodes: list[Object]
    dump: state.Dump | None
    scheduler: Object | None = None


def start(request: Request, say: Say) -> None:
    """Start a control plane and record it. The caller holds the lock; no folder exists.

    Whatever fails or interrupts it, no process stays. Raises ComponentError with the last log
    lines where a component dies or hangs, and whatever loading the nodes raises.
    """
    for _ in range(PORT_TRIES):
        try:
            _try(request, say)
        except PortTakenError:
            say.progress(Progress("somebody took the port: trying another"))
        else:
            return
    raise SetupError(f"{PORT_TRIES} ports in a row were taken by others before they could be used")


def _try(request: Request, say: Say) -> None:
    try:
        _boot(request, say)
    except ComponentError as error:
        teardown.stop(request.name, keep_logs=error.message)
        raise
    except BaseException:
        teardown.stop(request.name)
        raise


def _boot(request: Request, say: Say) -> None:
    began = time.time()
    folder = state.create(request.name)
    boot = Boot(folder, request.binaries.folder, components.environment())
    try:
        port = components_of(boot, request, say)
        boot.check()
    finally:
        boot.settle()
    record = state.Record(
        version=request.binaries.version,
        source=request.binaries.source,
        binaries=str(request.binaries.folder),
        port=port,
        nodes=len(request.nodes),
        dump=request.dump,
        started=began,
        seconds=time.time() - began,
    )
    state.write(request.name, record)


def components_of(boot: Boot, request: Request, say: Say) -> int:
    """Start the three with the nodes loaded; return the API server's port."""
    from gpuwl.controlplane import credentials

    boot.spawn("etcd", components.etcd())
    port = ports.free()
    credentials.create(boot.folder, request.name, port)
    boot.spawn("kube-apiserver", components.kube_apiserver(port))
    _load(boot, request.nodes, say)
    from gpuwl.k8s import client  # noqa: F401 - imported here while the API server boots

    boot.wait(lambda: ports.answers(port) or None, "for the API server's port")
    boot.spawn("kube-scheduler", _scheduler(boot, request.scheduler))
    _wait_until_ready(boot, port, request.nodes)
    return port


def _scheduler(boot: Boot, configuration: Object | None) -> list[str]:
    if configuration is None:
        return components.kube_scheduler()
    file = boot.folder / components.SCHEDULER_CONFIGURATION
    file.write_text(json.dumps(configuration))
    return components.kube_scheduler(configured=True)


def _load(boot: Boot, objects: list[Object], say: Say) -> None:
    from gpuwl.controlplane import loading, store

    with contextlib.closing(store.Store(boot.folder)) as etcd:
        boot.wait(etcd.healthy, "for etcd")
    try:
        loading.load(boot.folder, objects, say)
    except GpuwlError:
        boot.check()  # a component that died is the better reason
        raise


def _wait_until_ready(boot: Boot, port: int, objects: list[Object]) -> None:
    from gpuwl.controlplane.admin import Connection

    began = time.monotonic()

    def look() -> bool | None:
        nonlocal began
        if connection.ready():
            return True
        if time.monotonic() - began > PATIENCE:
            began = time.monotonic()
            connection.check_decodable({one["kind"] for one in objects})
        return None

    with contextlib.closing(Connection(boot.folder, port, seconds=10)) as connection:
        boot.wait(look, "for the API server to be ready")
