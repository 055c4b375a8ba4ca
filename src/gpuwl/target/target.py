"""Which cluster a command works on: an option, the environment's kubeconfig, or our own."""

import os
from dataclasses import dataclass
from pathlib import Path

from gpuwl.controlplane import process, state
from gpuwl.errors import InputError, SetupError
from gpuwl.system import folders
from gpuwl.target import address
from gpuwl.target.settings import Settings

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")


@dataclass(frozen=True)
class Choice:
    """What was chosen, before anything is asked of it.

    `kubeconfig` is a path, or several joined by `:`; empty with `in_cluster` and for a local control
    plane that is not up yet. `reason` says why, in half a sentence.
    """

    local: bool
    reason: str
    kubeconfig: str = ""
    context: str | None = None
    in_cluster: bool = False


def choose(settings: Settings) -> Choice:
    """Pick the target: an explicit option wins, then the environment, then our own.

    Raises InputError for options that exclude each other, SetupError where the environment names a
    kubeconfig that is not there.
    """
    if settings.local and (settings.kubeconfig or settings.context):
        raise InputError("--local and --kubeconfig or --context exclude each other")
    if settings.local:
        return Choice(local=True, reason="--local")
    if settings.kubeconfig:
        path = str(folders.expanded(str(settings.kubeconfig)))
        return _kubeconfig(path, "--kubeconfig", settings.context)
    return _from_environment(settings.context)


def _from_environment(context: str | None) -> Choice:
    pod = bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and SERVICE_ACCOUNT.exists()
    named = os.environ.get("KUBECONFIG", "")
    usual = folders.expanded("~/.kube/config")
    if named or os.path.exists(usual):  # noqa: PTH110 - never raises
        found = _kubeconfig(
            named or str(usual), "KUBECONFIG" if named else "~/.kube/config", context
        )
        if not (pod and _means_nothing(found)):
            return found
    elif context:
        raise SetupError(
            f"there is no kubeconfig to take context {context} from",
            hint="name one with --kubeconfig",
        )
    if pod:
        return Choice(local=False, reason="this Pod's service account", in_cluster=True)
    return Choice(local=True, reason="no kubeconfig found")


def _means_nothing(choice: Choice) -> bool:
    """Tell whether no context is meant: kubectl takes a Pod's service account then."""
    from gpuwl.k8s import kubeconfig  # heavy, and only looked at in a Pod

    return choice.context is None and kubeconfig.current_context(choice.kubeconfig) == ""


def _kubeconfig(paths: str, reason: str, context: str | None) -> Choice:
    """Choose a kubeconfig; what is there and cannot be read is said when it is read."""
    listed = (path for path in [paths, *paths.split(os.pathsep)] if path)
    if not any(os.path.exists(path) for path in listed):  # noqa: PTH110 - never raises
        raise SetupError(
            f"there is no kubeconfig at {paths} (from {reason})",
            hint="correct the path, or add --local to use a local control plane",
        )
    return Choice(local=False, reason=reason, kubeconfig=paths, context=context)


def local_name(server: str) -> str | None:
    """Return the name of the local control plane that listens at this address, None if none does.

    So a run through `--kubeconfig "$(gpuwl local kubeconfig)"` is recorded as what it is. Its API
    server must live: a record that a reboot left says nothing of who has that port by now.
    """
    for name in _known_names():
        record = state.read(name)
        if record and address.plain(server) == f"https://127.0.0.1:{record.port}":
            return name if _serves(name) else None
    return None


def _known_names() -> list[str]:
    try:
        return state.names()
    except SetupError:  # no home folder, so there are none
        return []


def _serves(name: str) -> bool:
    path = process.record_path(state.folder(name), "kube-apiserver")
    return process.alive(process.read_record(path))
