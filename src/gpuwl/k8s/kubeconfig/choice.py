"""One context of a kubeconfig: its cluster and user, with the objections that kubectl has to them.

Source: k8s.io/client-go, tools/clientcmd/client_config.go and validation.go.
"""

from dataclasses import dataclass
from pathlib import Path

from gpuwl.k8s.kubeconfig import address
from gpuwl.k8s.kubeconfig.problem import Problem
from gpuwl.k8s.kubeconfig.records import Cluster, Kubeconfig, Plugin, User

_MODES = ("Never", "IfAvailable", "Always")


@dataclass(frozen=True)
class Choice:
    """The context that was taken, and what it leads to."""

    context: str
    cluster: Cluster
    user: User


def chosen(config: Kubeconfig, context: str | None) -> Choice:
    """Return what a context leads to, the current one for None. Raises Problem."""
    name = context or config.current
    if name not in config.contexts:
        raise Problem(_without_context(config, name))
    found = config.contexts[name]
    if found.cluster not in config.clusters or config.clusters[found.cluster] == Cluster():
        raise Problem(f"its context {name} names no cluster that the file describes")
    cluster, user = config.clusters[found.cluster], config.users.get(found.user, User())
    _check_cluster(cluster)
    _check_user(user)
    return Choice(name, cluster, user)


def _without_context(config: Kubeconfig, name: str) -> str:
    what = f"it has no context {name}" if name else "it names no current context"
    if not config.contexts:
        return f"{what} and has no contexts"
    return f"{what}; choose one with --context: {', '.join(config.contexts)}"


def _check_cluster(cluster: Cluster) -> None:
    if not cluster.server:
        raise Problem("its cluster names no server")
    if cluster.proxy:
        address.proxy(cluster.proxy)
    if cluster.authority and cluster.authority_file:
        raise Problem("its cluster has both certificate-authority and certificate-authority-data")
    _check_readable(cluster.authority_file, "certificate authority")


def _check_user(user: User) -> None:
    if user.certificate or user.certificate_file:
        _check_pair(user)
    if user.plugin:
        if user.provider:
            raise Problem("its user has both exec and auth-provider")
        _check_plugin(user.plugin)
    if user.token and (user.username or user.password):
        raise Problem("its user has both a token and a password")
    if (user.acts_as_uid or user.acts_as_groups or user.acts_as_extra) and not user.acts_as:
        raise Problem("its user acts as a uid, a group or more, but as no user (as)")


def _check_pair(user: User) -> None:
    for what, data, path in (
        ("client-certificate", user.certificate, user.certificate_file),
        ("client-key", user.key, user.key_file),
    ):
        if data and path:
            raise Problem(f"its user has both {what} and {what}-data")
        if not data and not path:
            raise Problem(f"its user has a client certificate and no {what}")
        _check_readable(path, what.replace("-", " "))


def _check_plugin(plugin: Plugin) -> None:
    if not plugin.command:
        raise Problem("its user's plugin (exec) names no command")
    if not plugin.version:
        raise Problem("its user's plugin (exec) names no apiVersion")
    if any(not name for name, _ in plugin.environment):
        raise Problem("its user's plugin (exec) has a variable without a name")
    if plugin.mode not in _MODES:
        raise Problem(f"its user's plugin (exec) needs an interactiveMode: {', '.join(_MODES)}")


def _check_readable(path: str, what: str) -> None:
    if path:
        content(path, what, folder_too=True)


def content(path: str, what: str, *, folder_too: bool = False) -> bytes:
    """Return what a file holds. Raises Problem; `folder_too` lets a folder pass as empty."""
    try:
        return Path(path).read_bytes()
    except IsADirectoryError as error:
        if folder_too:
            return b""
        raise Problem(f"its {what} {path} cannot be read: {error.strerror}") from None
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else "not a path"
        raise Problem(f"its {what} {path} cannot be read: {words}") from None
