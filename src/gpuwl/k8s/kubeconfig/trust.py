"""Certificates and keys for TLS, from memory alone.

OpenSSL takes a private key from a file only: it gets a memory file, or, on systems that have none, a
private one that is gone before anything is sent.
"""

import base64
import binascii
import contextlib
import os
import re
import ssl
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gpuwl.errors import SetupError
from gpuwl.k8s.kubeconfig.problem import Problem

_BLOCK = re.compile(
    rb"^-----BEGIN ((?:[A-Z0-9]+ )*?)(CERTIFICATE|PRIVATE KEY)-----\s*$(.*?)^-----END \1\2-----",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Pair:
    """A client certificate with its chain, and its private key, both PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


def context(authority: bytes | None, *, insecure: bool) -> ssl.SSLContext:
    """Return how a server is known: by these authorities, by the system's for None, or not at all.

    Raises Problem for an authority that holds no certificate.
    """
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.set_alpn_protocols(["http/1.1"])
    made.hostname_checks_common_name = False
    if insecure:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    elif authority:
        # whatever the kubeconfig names is trusted, an intermediate or the server's own as well
        made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        _load_authorities(made, authority)
    else:
        made.load_default_certs()
    return made


def _load_authorities(made: ssl.SSLContext, pem: bytes) -> None:
    """Load each certificate, passing over what is none, as Go does; one at least must be."""
    loaded = 0
    for prefix, kind, body in _BLOCK.findall(pem):
        if kind == b"CERTIFICATE" and not prefix:
            with contextlib.suppress(ssl.SSLError, ValueError):
                made.load_verify_locations(
                    cadata=base64.b64decode(b"".join(body.split()), validate=True)
                )
                loaded += 1
    if not loaded:
        raise Problem("the certificate authority of its cluster holds no certificate in PEM form")


def show(made: ssl.SSLContext, pair: Pair) -> None:
    """Let new connections show a client certificate. Raises Problem where it cannot be used."""
    blocks = [
        (match[1] + match[2], match[0] + b"\n") for match in _BLOCK.finditer(pair.certificate)
    ]
    chain = [block for kind, block in blocks if kind == b"CERTIFICATE"]
    keys = [match[0] + b"\n" for match in _BLOCK.finditer(pair.key) if match[2] == b"PRIVATE KEY"]
    if not chain or not keys:
        what = "key" if chain else "certificate"
        raise Problem(f"the client {what} of its user cannot be used: none in PEM form")
    with _file(b"".join(chain) + keys[0]) as path:
        try:
            # without a password OpenSSL would ask for one on the terminal
            made.load_cert_chain(path, password="")
        except (ssl.SSLError, binascii.Error) as error:
            raise Problem(
                f"the client certificate and key of its user cannot be used: {_reason(error)}"
            ) from None


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    if reason == "KEY_VALUES_MISMATCH":
        return "they do not belong together"
    return reason.replace("_", " ").lower() if reason else "encrypted, or not in PEM form"


@contextlib.contextmanager
def _file(content: bytes) -> Iterator[str]:
    """Yield a path that leads to a secret while the body runs."""
    descriptor, path = _memory_file() or _private_file()
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor
            file.write(content)
            file.flush()
            yield path
    finally:
        if not path.startswith("/proc/"):
            Path(path).unlink()


def _memory_file() -> tuple[int, str] | None:
    if not hasattr(os, "memfd_create"):
        return None
    descriptor = os.memfd_create("gpuwl")
    path = f"/proc/self/fd/{descriptor}"
    if os.path.exists(path):  # noqa: PTH110 - stat through the link, which dangles for Path
        return descriptor, path
    os.close(descriptor)
    return None


def _private_file() -> tuple[int, str]:
    try:
        return tempfile.mkstemp(prefix="gpuwl-")
    except OSError:
        hint = "set TMPDIR to a folder that can be written"
        raise SetupError("no temporary folder for the client key", hint=hint) from None
