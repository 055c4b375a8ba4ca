"""Fetching one file over HTTP: with a digest, resumed after a break, and never for ever.

Everything that can come instead of the file has its own error, because a person behind a proxy, a
captive portal or a half-filled mirror has to know which of them it was.
"""

import base64
import os
import re
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

import urllib3

from gpuwl import __version__
from gpuwl.controlplane.binaries import inspection
from gpuwl.errors import SetupError
from gpuwl.system.progress import Listener, Progress

_CHUNK = 1 << 18
_TEXT_LIMIT = 1 << 16  # bytes of a checksum file; etcd's SHA256SUMS has about 4 KB
_BREAKS = 3  # how many times a connection that breaks off is taken up again in one call
_REDIRECTS = 5


class DownloadError(SetupError):
    """A file could not be fetched; the message says what came instead."""


class DigestError(DownloadError):
    """A whole file came, and it is not the one that was released."""


class EndlessError(DownloadError):
    """More came than the file can have; nothing of it is worth keeping."""


class CutOffError(DownloadError):
    """The connection broke off in the middle; what came is kept."""


@dataclass(frozen=True)
class Limits:
    """What a server may take: seconds to connect, seconds of silence, bytes of one file.

    `rate` is the least bytes a second, judged over each `window` seconds: a body that drips is as
    good as none. The largest file, kube-apiserver, has about 120 MB.
    """

    connect: float = 1.5
    silence: float = 15
    size: int = 512 << 20
    rate: int = 8 << 10
    window: float = 20


def shown(url: str) -> str:
    """Return an address as an error may show it: without password, and without a query's tokens."""
    try:
        parts = urlsplit(url)
        has_login = "@" in parts.netloc or (parts.port is None and not parts.hostname)
    except ValueError:
        has_login = True  # what cannot be told apart is left out
    plain = url.partition("?")[0]
    return re.sub(r"//.*@", "//", plain) if has_login else plain


def _parts(url: str) -> SplitResult:
    """Split an address. Raises DownloadError for what is none of http or https."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises for a port that is no number
    except ValueError as error:  # or for unbalanced brackets
        raise _not_an_address(url, str(error).partition(":")[0]) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _not_an_address(url, "scheme or host is missing")
    return parts


def _not_an_address(url: str, why: str) -> DownloadError:
    return DownloadError(f"{shown(url)!r} is not an http or https address", details=[why])


def _pool(parts: SplitResult) -> urllib3.PoolManager:
    """Return what connects to a host, by the proxy that the environment names for it."""
    proxy = urllib.request.getproxies().get(parts.scheme)
    if not proxy or urllib.request.proxy_bypass(parts.hostname or ""):
        return urllib3.PoolManager()
    login = _parts(proxy if "://" in proxy else f"http://{proxy}")
    headers = _login("Proxy-Authorization", login)
    return urllib3.ProxyManager(_without_login(login), proxy_headers=headers)


def _login(header: str, parts: SplitResult) -> dict[str, str]:
    """Return the header that carries user and password of an address, empty where it has none."""
    if parts.username is None:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {header: f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _without_login(parts: SplitResult) -> str:
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


@contextmanager
def _get(url: str, limits: Limits, *, start: int = 0) -> Iterator[urllib3.BaseHTTPResponse]:
    """Yield the answer to a GET from byte `start` on. Raises DownloadError for a network's errors."""
    headers = {"User-Agent": f"gpuwl/{__version__}", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        with ExitStack() as stack:
            yield _followed(url, headers, limits, stack)
    except urllib3.exceptions.ProtocolError as error:
        raise CutOffError(f"{shown(url)} broke off", details=[str(error)]) from None
    except urllib3.exceptions.ReadTimeoutError:
        raise DownloadError(f"{shown(url)} sent nothing for {limits.silence:g} s") from None
    except urllib3.exceptions.HTTPError as error:
        raise DownloadError(f"{shown(url)} cannot be fetched: {_why(error)}") from None


def _followed(
    url: str, headers: dict[str, str], limits: Limits, stack: ExitStack
) -> urllib3.BaseHTTPResponse:
    """Return the answer behind all redirects. Each has a look: one over http could be forged.

    An address with several hosts' addresses behind it, of which some do not answer, costs
    `limits.connect` for each of those.
    """
    following = url
    for _ in range(_REDIRECTS + 1):
        parts = _parts(following)
        response = stack.enter_context(_pool(parts)).request(
            "GET",
            _without_login(parts),
            headers={**headers, **_login("Authorization", parts)},
            preload_content=False,
            redirect=False,
            retries=False,
            timeout=urllib3.Timeout(connect=limits.connect, read=limits.silence),
        )
        stack.enter_context(response)  # closed also when it was not read to its end
        location = response.get_redirect_location()
        if not location:
            return response
        last, following = following, urljoin(following, location)
        if last.startswith("https:") and not following.startswith("https:"):
            raise DownloadError(
                f"{shown(last)} leads to {shown(following)}, which is not encrypted"
            )
    raise DownloadError(f"{shown(url)} cannot be fetched: more than {_REDIRECTS} redirects")


def _why(error: urllib3.exceptions.HTTPError) -> str:
    """Say in plain words why nothing came."""
    if isinstance(error, urllib3.exceptions.ProxyError):
        cause = error.original_error
        if isinstance(cause, urllib3.exceptions.HTTPError):
            return f"the proxy fails: {_why(cause)}"
        return f"the proxy fails: {cause}"
    if isinstance(error, urllib3.exceptions.NameResolutionError):
        return "its name cannot be resolved"
    if isinstance(error.__cause__, OSError) and error.__cause__.strerror:
        return error.__cause__.strerror
    return "no answer" if isinstance(error, urllib3.exceptions.TimeoutError) else str(error)


def _check_status(url: str, response: urllib3.BaseHTTPResponse) -> None:
    if response.status in (404, 410):
        raise DownloadError(f"{shown(url)} does not exist (HTTP {response.status})")
    if response.status not in (200, 206):
        raise DownloadError(f"{shown(url)} was answered with HTTP {response.status}")
    if "html" in response.headers.get("Content-Type", ""):
        raise _web_page(url)


def _web_page(url: str) -> DownloadError:
    return DownloadError(
        f"a web page came instead of {shown(url)}",
        hint="is there a login page or a proxy in between?",
    )


def text(url: str, limits: Limits) -> str:
    """Return a small text file. Raises DownloadError for anything else, one without end too."""
    with _get(url, limits) as response:
        _check_status(url, response)
        body = b"".join(_bounded(url, response, _TEXT_LIMIT, limits))
    if body.lstrip().startswith(b"<"):
        raise _web_page(url)
    return body.decode("utf-8", errors="replace")


def file(url: str, to: Path, sha256: str, listener: Listener, limits: Limits) -> None:
    """Fetch a file and put it at `to` once its SHA-256 (hex) is right; it is on the disk then.

    What came before a break lies beside it as `.part` and is gone on from, by this call or a later
    one. Released files never change under their name, so it is the digest alone that judges a
    continued file; where it is wrong, the file is fetched again as a whole before anybody is
    accused. Raises DownloadError, of which DigestError for a whole file with another digest.
    """
    part = to.with_name(f"{to.name}.part")
    if _is(to, sha256):
        return
    breaks = 0
    while not _is(part, sha256):
        try:
            continued = _receive(url, part, listener, limits)
        except CutOffError:
            breaks += 1
            if breaks > _BREAKS:
                raise
        except EndlessError:
            part.unlink(missing_ok=True)
            raise
        else:
            _discard_if_wrong(url, part, sha256, continued=continued)
    _settle(part, to)


def _is(path: Path, sha256: str) -> bool:
    return path.exists() and inspection.sha256(path) == sha256


def _discard_if_wrong(url: str, part: Path, sha256: str, *, continued: bool) -> None:
    found = inspection.sha256(part)
    if found == sha256:
        return
    part.unlink()
    if not continued:
        raise DigestError(
            f"{shown(url)} has a wrong SHA-256 and was thrown away",
            details=[f"expected {sha256}", f"found    {found}"],
            hint="do not use what that server gives until it is known why",
        )


def _settle(part: Path, to: Path) -> None:
    with part.open("rb") as done:
        os.fsync(done.fileno())
    part.replace(to)


def _receive(url: str, part: Path, listener: Listener, limits: Limits) -> bool:
    """Write what comes behind what `part` holds; say whether the server went on from there."""
    start = part.stat().st_size if part.exists() else 0
    with _get(url, limits, start=start) as response:
        if response.status == 416:  # longer than the file is: not its beginning
            part.unlink()
            raise CutOffError(f"{shown(url)} has fewer bytes than were here already")
        _check_status(url, response)
        continued = bool(start) and _goes_on(response, start)
        done = start if continued else 0
        total = done + length if (length := response.length_remaining) else 0
        if total > limits.size:
            raise DownloadError(f"{shown(url)} has {total} bytes, too many to be the file")
        with part.open("ab" if continued else "wb") as out:
            for chunk in _bounded(url, response, limits.size - done, limits):
                if not done and chunk.lstrip().startswith(b"<"):
                    raise _web_page(url)
                out.write(chunk)
                done += len(chunk)
                listener.progress(_progress(part.stem, done, total))
    return continued


def _goes_on(response: urllib3.BaseHTTPResponse, start: int) -> bool:
    expected = f"bytes {start}-"
    return response.status == 206 and response.headers.get("Content-Range", "").startswith(expected)


def _progress(name: str, done: int, total: int) -> Progress:
    megabytes = round(total / 1e6) if total else None
    return Progress(f"downloading {name}", round(done / 1e6), megabytes, "MB")


def _bounded(
    url: str, response: urllib3.BaseHTTPResponse, most: int, limits: Limits
) -> Iterator[bytes]:
    """Yield the body. Raises DownloadError for one that is longer than `most` bytes or drips."""
    came, since, in_window = 0, time.monotonic(), 0
    # read1 gives what is there; stream would fill its chunk first, however slowly that goes
    while chunk := response.read1(_CHUNK, decode_content=False):
        came += len(chunk)
        in_window += len(chunk)
        if came > most:
            raise EndlessError(f"{shown(url)} does not end: more than {most} bytes came")
        if (passed := time.monotonic() - since) >= limits.window:
            if in_window < limits.rate * passed:
                raise DownloadError(f"{shown(url)} drips: {in_window / passed:.0f} bytes a second")
            since, in_window = time.monotonic(), 0
        yield chunk
