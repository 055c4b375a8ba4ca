"""Why a local control plane fails whoever uses it: a dead or suspended component, or the clock."""

import base64
import contextlib
import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path

from gpuwl.controlplane import components, state
from gpuwl.errors import ClusterError, GpuwlError, SetupError, WaitTimeoutError


@contextlib.contextmanager
def blamed(name: str) -> Iterator[None]:
    """Say of an error of the body what of the control plane `name` is behind it, if anything is."""
    try:
        yield
    except (ClusterError, WaitTimeoutError) as error:
        cause = _cause(name, error)
        if cause is None:
            raise
        raise cause from None


def _cause(name: str, error: GpuwlError) -> SetupError | None:
    clock = clock_trouble(state.folder(name), dt.datetime.now(dt.UTC))
    if clock:
        return SetupError(
            f"the certificates of the local control plane {name} {clock}",
            details=[error.message],
            hint="set the clock right, or choose another --name: it gets certificates of its own",
        )
    from gpuwl.controlplane.status import Phase, status  # it looks into binaries too

    found = status(name)
    dead = [part for part in found.components if not part.alive]
    if found.phase is not Phase.BROKEN or not dead:
        return None
    more = "" if name == state.DEFAULT_NAME else f" --name {name}"
    return SetupError(
        f"{', '.join(part.name for part in dead)} of the local control plane {name} does not run",
        details=[error.message, *(f"{part.name}: {part.why()}" for part in dead)],
        hint=f"gpuwl local up{more} starts it anew, with an empty state",
    )


def clock_trouble(folder: Path, now: dt.datetime) -> str | None:
    """Say that the clock is outside the time for which certificates are valid; None where it is not.

    It was another one when they were made: ahead at the start and set right since, for one.
    """
    from cryptography import x509

    for text in _certificates(folder):
        certificate = x509.load_pem_x509_certificate(text)
        begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
        if now < begin:
            return f"are valid from {begin:%Y-%m-%d %H:%M} UTC on, and the clock says {_shown(now)}"
        if now > end:
            return f"were valid until {end:%Y-%m-%d %H:%M} UTC, and the clock says {_shown(now)}"
    return None


def _certificates(folder: Path) -> Iterator[bytes]:
    """Yield those of server and administrator, whatever of them is there."""
    with contextlib.suppress(OSError):
        yield (folder / components.SERVER_CERTIFICATE).read_bytes()
        kubeconfig = (folder / components.KUBECONFIG).read_text()
        for data in re.findall(r"client-certificate-data: (\S+)", kubeconfig):
            yield base64.b64decode(data)


def _shown(now: dt.datetime) -> str:
    return f"{now:%Y-%m-%d %H:%M} UTC"
