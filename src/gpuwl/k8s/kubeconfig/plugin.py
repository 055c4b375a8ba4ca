"""Credentials from a program (exec): what it is told, and what it answers.

Source: k8s.io/client-go, plugin/pkg/client/auth/exec/exec.go; the API group
client.authentication.k8s.io. What the program says on stderr reaches the terminal while it runs, and
it may ask there.
"""

import base64
import datetime as dt
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

from gpuwl.k8s.kubeconfig import document
from gpuwl.k8s.kubeconfig.fields import Fields
from gpuwl.k8s.kubeconfig.problem import Problem
from gpuwl.k8s.kubeconfig.records import VERSIONS, Cluster, Plugin
from gpuwl.k8s.kubeconfig.trust import Pair

_SPOKEN = {f"{VERSIONS}v1", f"{VERSIONS}v1beta1"}
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_HELP = "install the program, or ask the cluster's administrator which one logs in to it"


@dataclass(frozen=True)
class Credential:
    """What a plugin printed; good until `expiry`, for ever with None."""

    token: str = field(default="", repr=False)
    pair: Pair | None = None
    expiry: dt.datetime | None = None

    @property
    def expired(self) -> bool:
        """Tell whether its time is over."""
        return self.expiry is not None and self.expiry < dt.datetime.now(dt.UTC)


def check(plugin: Plugin) -> None:
    """Raise Problem for a version that kubectl does not speak either."""
    if plugin.version not in _SPOKEN:
        raise Problem("its user's plugin speaks a version that is neither v1 nor v1beta1")


def cluster_info(cluster: Cluster, server: str, authority: bytes) -> dict[str, Any]:
    """Return what a plugin is told of a cluster; `server` is its address with the login."""
    told: dict[str, Any] = {
        "server": server,
        "tls-server-name": cluster.server_name,
        "insecure-skip-tls-verify": cluster.insecure,
        "certificate-authority-data": base64.b64encode(authority).decode(),
        "proxy-url": cluster.proxy,
        "disable-compression": cluster.uncompressed,
    }
    kept = {name: value for name, value in told.items() if value}
    return {**kept, "config": cluster.plugin_config}


def run(plugin: Plugin, cluster: dict[str, Any]) -> Credential:
    """Run a plugin, with `cluster` told to it where it asks for that. Raises Problem."""
    interactive = _interactive(plugin)
    spec = {"cluster": cluster} if plugin.cluster_info else {}
    info = {
        "kind": "ExecCredential",
        "apiVersion": plugin.version,
        "spec": {**spec, "interactive": interactive},
    }
    environment = {**os.environ, **dict(plugin.environment)}
    environment["KUBERNETES_EXEC_INFO"] = json.dumps(info, ensure_ascii=False)
    return _answer(_output(plugin, environment, interactive=interactive), plugin)


def _interactive(plugin: Plugin) -> bool:
    terminal = sys.stdin is not None and os.isatty(0)
    if plugin.mode == "Always" and not terminal:
        raise _failed(plugin, "it wants a terminal, and standard input is none")
    return terminal and plugin.mode != "Never"


def _output(plugin: Plugin, environment: dict[str, str], *, interactive: bool) -> bytes:
    program = shutil.which(plugin.command) if "/" not in plugin.command else plugin.command
    if not program:
        raise _missing(plugin)
    try:
        done = subprocess.run(
            [plugin.command, *plugin.arguments],
            executable=program,
            env=environment,
            stdin=None if interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=False,
        )
    except FileNotFoundError:
        raise _missing(plugin) from None
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else "invalid argument"
        raise _failed(plugin, f"it cannot be started: {words}") from None
    if done.returncode:
        code = done.returncode
        ended = f"exit code {code}" if code > 0 else f"signal {-code}"
        raise _failed(plugin, f"it ended with {ended}")
    return done.stdout


def _missing(plugin: Plugin) -> Problem:
    hint = "".join(c if c.isprintable() else " " for c in plugin.hint).strip()
    return Problem(f"its user's plugin {plugin.command} is not installed", hint=hint or _HELP)


def _failed(plugin: Plugin, words: str) -> Problem:
    hint = f"see what {plugin.command} itself says; kubectl uses the same program"
    return Problem(f"its user's plugin {plugin.command} gave no credentials: {words}", hint=hint)


def _answer(output: bytes, plugin: Plugin) -> Credential:
    try:
        return _credential(_document(output), plugin)
    except Problem as problem:
        raise _failed(plugin, problem.words) from None


def _document(output: bytes) -> object:
    if not output.lstrip().startswith(b"{"):
        return document.first(output)
    try:
        return json.loads(output)
    except ValueError:
        raise Problem("its answer is not JSON") from None


def _credential(answer: object, plugin: Plugin) -> Credential:
    fields = Fields(answer, "its answer")
    if fields.text("kind") not in {"", "ExecCredential"}:
        raise Problem("its answer is no ExecCredential")
    if fields.text("apiVersion") != plugin.version:
        version = plugin.version.removeprefix(VERSIONS)
        raise Problem(f"its answer is not of version {version}, which the kubeconfig names")
    status = fields.within("status")
    token, certificate = status.text("token"), status.text("clientCertificateData")
    key = status.text("clientKeyData")
    if not (token or certificate or key):
        raise Problem("its answer holds neither a token nor a certificate")
    if bool(certificate) != bool(key):
        raise Problem("its answer holds only one of certificate and key")
    pair = Pair(certificate.encode(), key.encode()) if key else None
    return Credential(token, pair, _expiry(status))


def _expiry(status: Fields) -> dt.datetime | None:
    if not status.given("expirationTimestamp"):
        return None
    text = status.text("expirationTimestamp")
    try:
        if _MOMENT.fullmatch(text):
            return dt.datetime.fromisoformat(text)
    except ValueError:
        pass
    raise Problem("its answer's expirationTimestamp is no moment in time")
