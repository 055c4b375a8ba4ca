"""The few Kubernetes verbs that the lab needs, in plain dictionaries.

The calls go through `ApiClient` below the typed models: building those models costs more than the
whole lab, and they drop fields they do not know, which a dump must keep.
"""

import contextlib
import json
import re
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import urllib3
from kubernetes.client.exceptions import ApiException

from gpuwl import __version__
from gpuwl.errors import ClusterError
from gpuwl.k8s import kubeconfig
from gpuwl.k8s.objects import Object
from gpuwl.system import waiting

LONGEST_REQUEST = 10.0
"""Seconds that one try may take, unless a caller says otherwise."""
LONGEST_CALL = 30.0
"""Seconds that all tries of one request may take together, likewise."""
SHORTEST_TRY = 0.05
READ_TRIES = 4
RETRY_PAUSE = 0.2
LONGEST_RETRY_AFTER = 5.0
NOT_FOUND = 404
PASSING_STATUSES = frozenset({429, 500, 502, 503, 504})
"""Statuses after which the same read may succeed a moment later."""


@dataclass(frozen=True)
class Call:
    """One request: HTTP method, path below the server, body, patch type or content type."""

    verb: str
    method: str
    path: str
    body: Object | None = None
    content_type: str = "application/json"
    accept: str = "application/json"
    repeatable: bool = True

    def __str__(self) -> str:
        """Say verb and resource the way an error names them."""
        return f"{self.verb} {resource_of(self.path)}"


def resource_of(path: str) -> str:
    """Return `nodes/lab-node-0` or `pods/job-cross in gpu-vm` for a path of the core API."""
    parts = path.split("?", maxsplit=1)[0].strip("/").split("/")
    rest = parts[2:] if parts[:2] == ["api", "v1"] else parts
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in {"finalize", "status"}:
        return f"{'/'.join(rest[2:])} in {rest[1]}"
    return "/".join(rest) or path


class ReadOnlyCluster:
    """A cluster that can only be looked at: the client of every command that changes nothing.

    Safe to use from several threads. Every call raises `ClusterError` with the server's own words
    when the server cannot be reached or answers with an error.
    """

    def __init__(
        self,
        credentials: kubeconfig.Credentials,
        *,
        request_timeout: float = LONGEST_REQUEST,
        patience: float = LONGEST_CALL,
    ) -> None:
        """Make a client; `request_timeout` is in seconds for one try, `patience` for all of them."""
        self._credentials = credentials
        self._client = kubeconfig.client(credentials)
        self._client.user_agent = f"gpuwl/{__version__}"
        self._timeout = request_timeout
        self._patience = patience
        self._lock = threading.Lock()
        self._requests = 0

    @classmethod
    def from_kubeconfig(
        cls,
        path: Path | str,
        context: str | None = None,
        *,
        request_timeout: float = LONGEST_REQUEST,
        patience: float = LONGEST_CALL,
    ) -> Self:
        """Return a client for a kubeconfig file (or several, joined by `:` as in KUBECONFIG).

        Raises SetupError where kubectl would not use it.
        """
        credentials = kubeconfig.load(str(path), context)
        return cls(credentials, request_timeout=request_timeout, patience=patience)

    @classmethod
    def in_cluster(
        cls, *, request_timeout: float = LONGEST_REQUEST, patience: float = LONGEST_CALL
    ) -> Self:
        """Return a client for the cluster whose Pod this process runs in."""
        credentials = kubeconfig.in_cluster()
        return cls(credentials, request_timeout=request_timeout, patience=patience)

    @property
    def server(self) -> str:
        """The API server's address, such as `https://127.0.0.1:6443`."""
        return str(self._credentials.server)

    @property
    def insecure(self) -> bool:
        """Tell whether nobody checks the server's certificate."""
        return self._credentials.insecure

    @property
    def context(self) -> str:
        """The kubeconfig's context that was taken, `in-cluster` for a Pod's service account."""
        return self._credentials.context

    @property
    def requests(self) -> int:
        """How many requests were sent so far, repeated ones included."""
        return self._requests

    @property
    def authority(self) -> bytes:
        """The certificate authority of the server as the kubeconfig names it, empty for none."""
        return self._credentials.authority

    def close(self) -> None:
        """Close the connections that were kept alive."""
        self._client.close()

    def raw(self, path: str, *, accept: str = "application/json") -> bytes:
        """Return the body of a GET as the server sent it, in a form that `accept` names."""
        return self._call(Call("get", "GET", path, accept=accept))

    def get(self, path: str, *, accept: str = "application/json") -> Object:
        """Return the object or list at a path."""
        return _decoded(self.raw(path, accept=accept), path)

    def find(self, path: str) -> Object | None:
        """Return the object at a path, None where there is none."""
        try:
            return self.get(path)
        except ClusterError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def _call(self, call: Call) -> bytes:
        deadline = time.monotonic() + self._patience
        for left in reversed(range(READ_TRIES)):
            try:
                return self._send(call, deadline)
            except _PassingError as passing:
                pause = min(passing.retry_after, LONGEST_RETRY_AFTER)
                late = time.monotonic() + pause >= deadline
                if not left or late or not (call.repeatable or passing.never_acted):
                    raise passing.error from None
                waiting.pause(pause)
        raise AssertionError("unreachable")

    def _send(self, call: Call, deadline: float) -> bytes:
        with self._lock:
            self._requests += 1
        headers = {"Accept": call.accept, "Content-Type": call.content_type}
        method, url, sent, body, _ = self._client.param_serialize(
            call.method, call.path, header_params=headers, body=call.body
        )
        timeout = min(self._timeout, max(deadline - time.monotonic(), SHORTEST_TRY))
        try:
            response = self._client.call_api(
                method, url, self._identified(sent), body, _request_timeout=timeout
            )
            data: bytes = response.read()
        except (ApiException, urllib3.exceptions.HTTPError, OSError) as error:
            raise self._no_answer(call, error, timeout) from None
        if not 200 <= response.status <= 299:
            raise _refused(call, response.status, data, response.headers.get("Retry-After"))
        return data

    def _identified(self, headers: Mapping[str, str]) -> Mapping[str, str]:
        sent = urllib3.HTTPHeaderDict(headers)
        for name, value in self._credentials.headers():
            sent.add(name, value)  # several groups are several headers of one name
        return sent

    def _no_answer(self, call: Call, error: Exception, timeout: float) -> Exception:
        through = f" through proxy {self._credentials.proxy}" if self._credentials.proxy else ""
        words = _reason(error, timeout)
        untrusted = words.startswith(_UNTRUSTED_SERVER)
        problem = ClusterError(
            f"no answer from {self.server}{through} to {call}: {words}",
            hint=_UNTRUSTED if untrusted else self._advice(),
        )
        if untrusted or isinstance(error, ApiException):
            return problem  # a wrong certificate does not get better by asking again
        never_acted = isinstance(error, urllib3.exceptions.NewConnectionError)
        return _PassingError(problem, retry_after=RETRY_PAUSE, never_acted=never_acted)

    def _advice(self) -> str:
        return _UNREACHABLE if self._credentials.server.secure else _PLAIN


class Cluster(ReadOnlyCluster):
    """A cluster that may be changed."""

    def create(self, path: str, body: Object) -> Object:
        """Create an object by POST to a collection.

        Not repeated when the answer got lost, since the server may have acted: whoever calls looks
        for the object then.
        """
        call = Call("create", "POST", path, body, repeatable=False)
        return _decoded(self._call(call), path)

    def merge_patch(self, path: str, body: Object) -> Object:
        """Change an object with a JSON merge patch (RFC 7386), which may be repeated safely."""
        call = Call("patch", "PATCH", path, body, content_type="application/merge-patch+json")
        return _decoded(self._call(call), path)

    def replace(self, path: str, body: Object) -> Object:
        """Replace an object (or a subresource such as `finalize`) by PUT."""
        return _decoded(self._call(Call("update", "PUT", path, body)), path)

    def delete(self, path: str, *, uid: str, grace_period: int | None = None) -> None:
        """Delete the object of that uid; one that is gone, or is another by now, is left alone.

        `grace_period` is in seconds; None leaves it to the object's kind.
        """
        options: Object = {"preconditions": {"uid": uid}}
        if grace_period is not None:
            options["gracePeriodSeconds"] = grace_period
        try:
            self._call(Call("delete", "DELETE", path, options))
        except ClusterError as error:
            if error.status not in {404, 409}:
                raise

    def delete_all(self, path: str) -> list[Object]:
        """Delete every object of a collection, and return those that their finalizers hold."""
        answer = _decoded(self._call(Call("deletecollection", "DELETE", path)), path)
        return [item for item in answer.get("items") or () if item["metadata"].get("finalizers")]


class _PassingError(Exception):
    """A failure after which the same request may succeed; `never_acted`: it did not take effect."""

    def __init__(self, error: ClusterError, *, retry_after: float, never_acted: bool) -> None:
        super().__init__(error.message)
        self.error = error
        self.retry_after = retry_after
        self.never_acted = never_acted


def _refused(call: Call, status: int, data: bytes, retry_after: str | None) -> Exception:
    answer = _status_object(data)
    words = str(answer.get("message") or "") or data[:200].decode(errors="replace").strip()
    details: Mapping[str, Any] = answer.get("details") or {}
    error = ClusterError(
        f"the API server refused to {call} ({status}): {words or 'no reason given'}",
        status=status,
        reason=str(answer.get("reason") or ""),
        causes=[str(c.get("reason")) for c in details.get("causes") or () if isinstance(c, dict)],
        hint=_hint(status, words) if answer else _NO_API_SERVER,
    )
    if status not in PASSING_STATUSES:
        return error
    pause = float(retry_after) if retry_after and retry_after.isdecimal() else RETRY_PAUSE
    return _PassingError(error, retry_after=pause, never_acted=status == 429)


_UNREACHABLE = "check that the cluster runs and is reachable, or use --local"
_UNTRUSTED = "the kubeconfig's certificate authority is not the one that vouches for this server"
_PLAIN = "the kubeconfig's server is plain HTTP, which carries no credentials: is it https://?"
_NO_API_SERVER = "that is no answer of an API server: check the kubeconfig's server, or a proxy"


def _hint(status: int, words: str) -> str | None:
    if status == 401:
        return "the server does not know these credentials: check the kubeconfig's user, or log in"
    if status == 403 and " cannot " in words:  # so RBAC says it; a quota is 403 as well
        return "ask for the rights that the README lists (ClusterRole gpuwl), or use --local"
    return None


def _status_object(data: bytes) -> Object:
    with contextlib.suppress(ValueError):
        answer = json.loads(data)
        if isinstance(answer, dict):
            return answer
    return {}


def _decoded(data: bytes, path: str) -> Object:
    try:
        answer = json.loads(data)
    except ValueError as error:
        message = f"the answer for {resource_of(path)} is not JSON: {error}"
        raise ClusterError(message, hint=_NO_API_SERVER) from None
    if not isinstance(answer, dict):
        message = f"the answer for {resource_of(path)} is not an object"
        raise ClusterError(message, hint=_NO_API_SERVER)
    return answer


_UNTRUSTED_SERVER = "its certificate is not trusted"


def _reason(error: Exception, timeout: float) -> str:
    """Say why there was no answer, in words of the system and none of a library."""
    chain = list(_causes(error))
    words = " ".join(str(error).split())
    if "CERTIFICATE_VERIFY_FAILED" in words:
        found = re.search(r"certificate verify failed: (.*?)\.? \(_ssl", words)
        return f"{_UNTRUSTED_SERVER}: {found[1]}" if found else _UNTRUSTED_SERVER
    for cause in reversed(chain):
        if isinstance(cause, OSError) and cause.strerror and not isinstance(cause, ssl.SSLError):
            return cause.strerror
    known = [text for part, text in _REASONS.items() if part in words]
    if not known and any(isinstance(cause, _TIMEOUTS) for cause in chain):
        return f"nothing within {timeout:.3g} s"
    return known[0] if known else "the connection broke"


_TIMEOUTS = (TimeoutError, urllib3.exceptions.TimeoutError)


_REASONS = {
    "Tunnel connection failed": "the proxy refused to connect",
    "SOCKS": "the proxy refused to connect",
    "Failed to resolve": "the name cannot be looked up",
    "Failed to parse": "its address cannot be used",
    "WRONG_VERSION_NUMBER": "it does not speak TLS",
    "alert": "it refused the TLS connection",
}


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it was raised for, outermost first."""
    seen: set[int] = set()
    waiting_for: list[object] = [error]
    while waiting_for:
        cause = waiting_for.pop()
        if isinstance(cause, BaseException) and id(cause) not in seen:
            seen.add(id(cause))
            yield cause
            waiting_for += [cause.__context__, cause.__cause__, *cause.args]
            waiting_for.append(getattr(cause, "reason", None))
