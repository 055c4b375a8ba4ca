"""From a kubeconfig, or a Pod's service account, to what a client needs to connect."""

import contextlib
import logging
import os
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import yaml
from kubernetes.client.configuration import Configuration
from kubernetes.config import ConfigException, load_incluster_config
from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger

from gpuwl.errors import SetupError


@dataclass
class Credentials:
    """Server, authority and identity, for the client library; secrets are in memory only.

    `descriptors` are the memory files that hold what a kubeconfig has as base64. `context` is the
    name of the context that was taken. `impersonation` are headers, name and value, to send along.
    """

    configuration: Configuration = field(default_factory=Configuration)
    descriptors: list[int] = field(default_factory=list)
    context: str = ""
    impersonation: list[tuple[str, str]] = field(default_factory=list)

    def close(self) -> None:
        """Give up the memory files; no connection can be opened any more."""
        while self.descriptors:
            os.close(self.descriptors.pop())

    def keep(self, path: Path) -> str:
        """Copy a file into memory, and return a path that leads there while this is open."""
        descriptor = os.memfd_create(path.name)
        self.descriptors.append(descriptor)
        os.write(descriptor, path.read_bytes())
        return f"/proc/self/fd/{descriptor}"


def load(path: str, context: str | None) -> Credentials:
    """Load a kubeconfig (or several, joined by `:` as in KUBECONFIG).

    Raises SetupError where it is missing or broken or has no such context.
    """
    found = Credentials()
    with _explained(path):
        _load(found, path, context)
    _past_proxies(found.configuration)
    return found


def in_cluster() -> Credentials:
    """Load what a Pod has of its own cluster. Raises SetupError where it is not complete."""
    found = Credentials(context="in-cluster")
    with _explained("the service account of this Pod"):
        load_incluster_config(client_configuration=found.configuration)
    return found


def _load(credentials: Credentials, path: str, context: str | None) -> None:
    """Load a kubeconfig, and move what the loader decodes into files to memory.

    The loader keeps decoded certificates and keys in files until the process exits in good order;
    a killed process would leave a private key behind.
    """
    configuration = credentials.configuration
    merger = KubeConfigMerger(path)
    credentials.context = context or _current_context(merger)
    _check_context(merger, credentials.context)
    with tempfile.TemporaryDirectory(prefix="gpuwl-") as folder:
        loader = KubeConfigLoader(
            merger.config, credentials.context, config_base_path=None, temp_file_path=folder
        )
        with _plugin_heard():
            loader.load_and_set(configuration)
        for attribute in ("ssl_ca_cert", "cert_file", "key_file"):
            decoded = Path(getattr(configuration, attribute) or "/")
            if decoded.is_relative_to(folder):
                setattr(configuration, attribute, credentials.keep(decoded))
    _check_files(configuration)
    name = loader.current_context["context"].get("user")
    entry = merger.config["users"].get_with_name(name, safe=True)
    if entry:
        credentials.impersonation = _impersonation(entry.value.get("user") or {})


class _Heard(logging.Handler):
    """Keeps the words of the errors that are logged."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.words: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.words.append(record.getMessage())


@contextlib.contextmanager
def _plugin_heard() -> Iterator[None]:
    """Refuse credentials that a plugin could not fetch.

    The client library only logs that, and sends its requests without an identity then.
    """
    heard = _Heard()
    logging.getLogger().addHandler(heard)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(heard)
    if heard.words:
        words = "; ".join(heard.words)
        raise ConfigException(f"the credentials of its user cannot be had: {words}")


def _check_files(configuration: Configuration) -> None:
    """Refuse certificates and keys that cannot be read: else each request fails like a lost line."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority, certificate = configuration.ssl_ca_cert, configuration.cert_file
    if authority:
        with _readable("certificate authority of its cluster"):
            context.load_verify_locations(authority)
    if certificate:
        with _readable("client certificate and key of its user"):
            # without a password OpenSSL would ask for one on the terminal
            context.load_cert_chain(certificate, configuration.key_file, password="")


@contextlib.contextmanager
def _readable(what: str) -> Iterator[None]:
    try:
        yield
    except ssl.SSLError as error:
        words = error.reason or "encrypted, or not in PEM form"
        raise ConfigException(f"the {what} cannot be used: {words}") from None


def _current_context(merger: KubeConfigMerger) -> str:
    """Return the current context as kubectl merges it: the first file that names one wins.

    The client library takes the last one. Source: Kubernetes documentation, "Organizing Cluster
    Access Using kubeconfig Files", Merging kubeconfig files.
    """
    named = (config.get("current-context") for config in merger.config_files.values())
    return next((str(context) for context in named if context), "")


def _check_context(merger: KubeConfigMerger, context: str) -> None:
    known = [str(entry["name"]) for entry in merger.config["contexts"].value]
    if context in known:
        return
    raise ConfigException(
        (f"it has no context {context}" if context else "it names no current context")
        + (f"; choose one with --context: {', '.join(known)}" if known else " and has no contexts")
    )


def _impersonation(user: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the headers that act as the identity which the user names, none for its own.

    The client library leaves these fields out, and would act with other rights than kubectl.
    Source: Kubernetes documentation, "User impersonation"; fields of AuthInfo in kubeconfig v1.
    """
    if not user.get("as"):
        return []
    headers = [("Impersonate-User", user["as"])]
    headers += [("Impersonate-Uid", user["as-uid"])] if user.get("as-uid") else []
    headers += [("Impersonate-Group", group) for group in user.get("as-groups") or ()]
    for key, values in (user.get("as-user-extra") or {}).items():
        headers += [(f"Impersonate-Extra-{quote(key, safe='')}", value) for value in values]
    return [(name, str(value)) for name, value in headers]


@contextlib.contextmanager
def _explained(source: str) -> Iterator[None]:
    hint = "name a kubeconfig with --kubeconfig, or add --local to use a local control plane"
    try:
        yield
    except (ConfigException, yaml.YAMLError, OSError) as error:
        words = " ".join(str(error).split())
        raise SetupError(f"cannot use the kubeconfig {source}: {words}", hint=hint) from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        # the loader trusts the file's shape; a value of another type surfaces as one of these
        words = f"not the shape of a kubeconfig ({type(error).__name__}: {error})"
        raise SetupError(f"cannot use the kubeconfig {source}: {words}", hint=hint) from None


def _past_proxies(configuration: Configuration) -> None:
    """Speak to loopback directly, as kubectl does (Go's ProxyFromEnvironment leaves it out)."""
    host = urlsplit(configuration.host).hostname or ""
    if host == "localhost" or host.startswith("127.") or host == "::1":
        configuration.proxy = None
