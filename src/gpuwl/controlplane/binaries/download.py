"""Fetching one file over HTTP: with a digest, resumed after a break, and never for ever.

Everything that can come instead of the file has its own error, because a person behind a proxy, a
captive portal or a half-filled mirror has to know which of them it was.
"""

import os
import queue
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import urllib3

from gpuwl import __version__
from gpuwl.controlplane.binaries import inspection
from gpuwl.controlplane.binaries.cachewriter import Ticker
from gpuwl.errors import SetupError

_CHUNK = 1 << 18
_TEXT_LIMIT = 1 << 16  # bytes of a checksum file; etcd's SHA256SUMS has about 4 KB
_BREAKS = 3  # how many times a connection that breaks off is taken up again in one call
_REDIRECTS_ONLY = urllib3.Retry(total=None, connect=0, read=0, status=0, other=0, redirect=5)

Peer = tuple[str, int]  # host and port


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


def check_reachable(urls: Sequence[str], limits: Limits) -> None:
    """Connect to the host of every URL, all at once. Raises DownloadError for one without answer.

    In threads that nobody waits for: a resolver without a network can hang for half a minute, and
    getaddrinfo takes no timeout. With a proxy in the environment, the proxy is what must answer.
    """
    answers: queue.Queue[tuple[Peer, Exception | None]] = queue.Queue()
    waiting = {_peer(url) for url in urls}
    for peer in waiting:
        threading.Thread(target=_connect, args=(peer, limits.connect, answers), daemon=True).start()
    deadline = time.monotonic() + limits.connect
    while waiting:
        try:
            peer, error = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            hosts = ", ".join(sorted(host for host, _ in waiting))
            raise DownloadError(f"no answer from {hosts}") from None
        if error:
            raise DownloadError(f"{peer[0]} cannot be reached", details=[str(error)])
        waiting.discard(peer)


def _connect(
    peer: Peer, seconds: float, answers: "queue.Queue[tuple[Peer, Exception | None]]"
) -> None:
    try:
        socket.create_connection(peer, timeout=seconds).close()
    except (OSError, UnicodeError) as error:  # the latter for what cannot be a host's name
        answers.put((peer, error))
    else:
        answers.put((peer, None))


def _peer(url: str) -> Peer:
    try:
        parts = urlsplit(_proxy(url) or url)
        host, port = parts.hostname, parts.port
    except ValueError as error:  # unbalanced brackets, a port that is no number
        raise _not_an_address(url, str(error)) from None
    if parts.scheme not in ("http", "https") or not host:
        raise _not_an_address(url, "scheme or host is missing")
    return host, port or (443 if parts.scheme == "https" else 80)


def _not_an_address(url: str, why: str) -> DownloadError:
    return DownloadError(f"{url!r} is not an http or https address", details=[why])


def _proxy(url: str) -> str | None:
    parts = urlsplit(url)
    if urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def _pool(url: str) -> urllib3.PoolManager:
    proxy = _proxy(url)
    if not proxy:
        return urllib3.PoolManager()
    login = urlsplit(proxy)
    headers = None
    if login.username:
        pair = f"{login.username}:{login.password or ''}"
        headers = urllib3.make_headers(proxy_basic_auth=pair)
    return urllib3.ProxyManager(proxy, proxy_headers=headers)


@contextmanager
def _get(url: str, limits: Limits, *, start: int = 0) -> Iterator[urllib3.BaseHTTPResponse]:
    """Yield the answer to a GET from byte `start` on. Raises DownloadError for a network's errors."""
    headers = {"User-Agent": f"gpuwl/{__version__}", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    try:
        with _pool(url) as pool:
            response = pool.request(
                "GET",
                url,
                headers=headers,
                preload_content=False,
                timeout=urllib3.Timeout(connect=limits.connect, read=limits.silence),
                retries=_REDIRECTS_ONLY,
            )
            with response:  # closed also when it was not read to its end
                _check_end(url, response)
                yield response
    except urllib3.exceptions.ProtocolError as error:
        raise CutOffError(f"{url} broke off", details=[str(error)]) from error
    except urllib3.exceptions.ReadTimeoutError as error:
        raise DownloadError(f"{url} fell silent for {limits.silence:g} s") from error
    except urllib3.exceptions.HTTPError as error:
        raise DownloadError(f"{url} cannot be fetched", details=[str(error)]) from error


def _check_end(url: str, response: urllib3.BaseHTTPResponse) -> None:
    """Refuse to be led from https to http: the digest would come over the same open line."""
    final = response.geturl()
    if url.startswith("https:") and final and final.startswith("http:"):
        raise DownloadError(f"{url} leads to {final}, which is not encrypted")


def _check_status(url: str, response: urllib3.BaseHTTPResponse) -> None:
    if response.status in (404, 410):
        raise DownloadError(f"{url} does not exist (HTTP {response.status})")
    if response.status not in (200, 206):
        raise DownloadError(f"{url} was answered with HTTP {response.status}")
    if "html" in response.headers.get("Content-Type", ""):
        raise _web_page(url)


def _web_page(url: str) -> DownloadError:
    return DownloadError(
        f"a web page came instead of {url}",
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


def file(url: str, to: Path, sha256: str, tick: Ticker, limits: Limits) -> None:
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
            continued = _receive(url, part, tick, limits)
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
            f"{url} has a wrong SHA-256 and was thrown away",
            details=[f"expected {sha256}", f"found    {found}"],
            hint="do not use what that server gives until it is known why",
        )


def _settle(part: Path, to: Path) -> None:
    with part.open("rb") as done:
        os.fsync(done.fileno())
    part.replace(to)


def _receive(url: str, part: Path, tick: Ticker, limits: Limits) -> bool:
    """Write what comes behind what `part` holds; say whether the server went on from there."""
    start = part.stat().st_size if part.exists() else 0
    with _get(url, limits, start=start) as response:
        if response.status == 416:  # longer than the file is: not its beginning
            part.unlink()
            raise CutOffError(f"{url} has fewer bytes than were here already")
        _check_status(url, response)
        continued = bool(start) and _goes_on(response, start)
        done = start if continued else 0
        total = done + length if (length := response.length_remaining) else 0
        if total > limits.size:
            raise DownloadError(f"{url} has {total} bytes, too many to be the file")
        with part.open("ab" if continued else "wb") as out:
            for chunk in _bounded(url, response, limits.size - done, limits):
                if not done and chunk.lstrip().startswith(b"<"):
                    raise _web_page(url)
                out.write(chunk)
                done += len(chunk)
                tick(_progress(part.stem, done, total))
    return continued


def _goes_on(response: urllib3.BaseHTTPResponse, start: int) -> bool:
    expected = f"bytes {start}-"
    return response.status == 206 and response.headers.get("Content-Range", "").startswith(expected)


def _progress(name: str, done: int, total: int) -> str:
    of = f" of {total / 1e6:.0f}" if total else ""
    return f"downloading {name}: {done / 1e6:.0f}{of} MB"


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
            raise EndlessError(f"{url} does not end: more than {most} bytes came")
        if (passed := time.monotonic() - since) >= limits.window:
            if in_window < limits.rate * passed:
                raise DownloadError(f"{url} drips: {in_window / passed:.0f} bytes a second")
            since, in_window = time.monotonic(), 0
        yield chunk
