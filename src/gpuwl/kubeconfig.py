"""From a kubeconfig, or a Pod's service account, to what a client needs to connect."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from kubernetes.client.configuration import Configuration
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config

from gpuwl.errors import SetupError


@dataclass
class Credentials:
    """Server, authority and identity, for the client library; secrets are in memory only.

    `descriptors` are the memory files that hold what a kubeconfig has as base64.
    """

    configuration: Configuration = field(default_factory=Configuration)
    descriptors: list[int] = field(default_factory=list)

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
    found = Credentials()
    with _explained("the service account of this Pod"):
        load_incluster_config(client_configuration=found.configuration)
    return found


def _load(credentials: Credentials, path: str, context: str | None) -> None:
    """Load a kubeconfig, and move what the loader decodes into files to memory.

    The loader keeps decoded certificates and keys in files until the process exits in good order;
    a killed process would leave a private key behind.
    """
    configuration = credentials.configuration
    with tempfile.TemporaryDirectory(prefix="gpuwl-") as folder:
        load_kube_config(
            config_file=path,
            context=context,
            client_configuration=configuration,
            persist_config=False,
            temp_file_path=folder,
        )
        for attribute in ("ssl_ca_cert", "cert_file", "key_file"):
            decoded = Path(getattr(configuration, attribute) or "/")
            if decoded.is_relative_to(folder):
                setattr(configuration, attribute, credentials.keep(decoded))


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
