"""A real local control plane for the session, and the installed programs as witnesses."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from gpuwl.controlplane import plane
from gpuwl.controlplane.binaries import lookup
from gpuwl.controlplane.binaries.lookup import Binaries
from gpuwl.errors import ClusterError
from gpuwl.k8s import objects
from gpuwl.k8s.client import Cluster
from gpuwl.lab import journal, local_plane, paths
from gpuwl.lab.names import LABEL_KEY, NODE_NAMES
from gpuwl.system.progress import SILENCE

pytest_plugins = ["tests.lab_fixtures"]

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_configure() -> None:
    """Let every signal that ends a session end it as Ctrl-C does: with the fixtures' teardown.

    It also undoes what a caller set for its background jobs, since programs under test inherit it:
    a shell without job control starts those with SIGINT ignored, nohup(1) with SIGHUP.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep the state of every control plane of the tests away from the person's own."""
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        for name in [name for name in os.environ if name.startswith("GPUWL_")]:
            if name != "GPUWL_ASSETS":
                patch.delenv(name)
        patch.delenv("KUBECONFIG", raising=False)
        yield folder


def missing(what: str) -> NoReturn:
    """Skip on a person's machine; under CI nothing may be missing."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


@pytest.fixture(scope="session")
def found_binaries() -> Binaries:
    """The three binaries; a machine without them skips, CI fails."""
    found = lookup.find()
    if found is None:
        missing("no binaries of the local control plane: gpuwl local fetch")
    return found


@pytest.fixture(scope="session")
def control_plane(found_binaries: Binaries, own_state: Path) -> Iterator[plane.Plane]:
    """A control plane that lives as long as the session, with the lab's three nodes.

    The installed program starts it, so that its processes are no children of the tests.
    """
    done = program("gpuwl")("local", "up", "--name", "tests", timeout=300)
    assert done.returncode == 0, done.stderr
    yield local_plane.ensure_up("tests", listener=SILENCE).plane
    plane.down("tests")


@pytest.fixture
def cluster(control_plane: plane.Plane) -> Iterator[Cluster]:
    """A client of the session's control plane, whose lab is as it was at the start."""
    client = Cluster.from_kubeconfig(control_plane.kubeconfig)
    undo_lab(client)
    (control_plane.folder / journal.LOCAL_FILE).unlink(missing_ok=True)
    yield client
    client.close()


def undo_lab(client: Cluster) -> None:
    """Take everything back that a run, or a test, did to the cluster."""
    for pod in (client.find("/api/v1/pods") or {}).get("items") or ():
        path = f"{paths.NAMESPACES}/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        if pod["metadata"].get("finalizers"):
            client.merge_patch(path, {"metadata": {"finalizers": None}})
        client.delete(path, uid=pod["metadata"]["uid"], grace_period=0)
    found = client.find(paths.THE_NAMESPACE)
    if found:
        uid = found["metadata"]["uid"]
        client.delete(paths.THE_NAMESPACE, uid=uid)
        found = client.find(paths.THE_NAMESPACE)
        if found:
            finish_namespace(client, found)
    for node in client.get(paths.NODES)["items"]:
        _undo_node(client, node)


def finish_namespace(client: Cluster, found: dict[str, Any]) -> None:
    """Release a Terminating namespace; somebody else may have done so by now."""
    found["spec"]["finalizers"] = []
    try:
        client.replace(f"{paths.THE_NAMESPACE}/finalize", found)
    except ClusterError as error:
        if error.status not in {404, 409}:
            raise


def _undo_node(client: Cluster, node: dict[str, Any]) -> None:
    path = paths.node(node["metadata"]["name"])
    if node["metadata"]["name"] not in NODE_NAMES:
        client.delete(path, uid=node["metadata"]["uid"])
        return
    client.merge_patch(
        path,
        {
            "metadata": {"labels": {LABEL_KEY: None}, "annotations": None},
            "spec": {"unschedulable": None, "taints": None},
        },
    )
    status = {field: dict.fromkeys(objects.gpu_resources(node, field)) for field in objects.AMOUNTS}
    client.merge_patch(f"{path}/status", {"status": status})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root for the lab's files that does not exist yet."""
    return tmp_path / "root"


@pytest.fixture
def gpuwl(control_plane: plane.Plane, root: Path) -> Run:
    """Run the installed gpuwl on the session's control plane, with `root` as its root."""
    return program("gpuwl", KUBECONFIG=str(control_plane.kubeconfig), GPUWL_ROOT=str(root))


@pytest.fixture
def kubectl(control_plane: plane.Plane, tmp_path: Path) -> Run:
    """Run kubectl, the independent witness, on the session's control plane."""
    return program("kubectl", KUBECONFIG=str(control_plane.kubeconfig), HOME=str(tmp_path))


@contextlib.contextmanager
def mounted(place: Path, options: str) -> Iterator[Path]:
    """Mount a tmpfs with these options at a new folder; skips where that is not allowed."""
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if not mount or not umount:
        pytest.skip("no mount and umount here")
    place.mkdir()
    command = [mount, "-t", "tmpfs", "-o", options, "gpuwl-test", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no tmpfs may be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run([umount, str(place)], check=True)


def program(name: str, **variables: str) -> Run:
    """Return a function that runs a program of this environment with more variables."""
    path = shutil.which(name, path=str(Path(sys.executable).parent))
    assert path, f"{name} is not installed beside {sys.executable}"

    def run(*arguments: str, **more: Any) -> "subprocess.CompletedProcess[str]":
        environment = {**os.environ, **variables, **more.pop("env", {})}
        more.setdefault("timeout", 60)
        return subprocess.run(
            [path, *arguments], env=environment, capture_output=True, text=True, check=False, **more
        )

    return run
