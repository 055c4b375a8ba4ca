"""One file over HTTP from a real server on 127.0.0.1: the good way, and each way to be lied to."""

import base64
import hashlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from tests.heard import Heard

from gpuwl.controlplane import credentials
from gpuwl.controlplane.binaries import download
from gpuwl.controlplane.binaries.download import (
    CutOffError,
    DigestError,
    DownloadError,
    Limits,
)
from gpuwl.system.waiting import pause

if TYPE_CHECKING:
    from tests.controlplane.binaries.conftest import Handler, Server

BODY = bytes(range(256)) * 4096  # 1 MiB
SHA256 = hashlib.sha256(BODY).hexdigest()
LIMITS = Limits(connect=1, silence=1, size=4 << 20, rate=1 << 10, window=1)

Fetch = Callable[[], None]


@pytest.fixture
def to(tmp_path: Path) -> Path:
    return tmp_path / "file"


@pytest.fixture
def fetch(server: "Server", to: Path, tmp_path: Path, said: Heard) -> Fetch:
    origin = tmp_path / "origin"
    origin.write_bytes(BODY)
    server.content["/file"] = origin
    return lambda: download.file(f"{server.url}/file", to, SHA256, said, LIMITS)


def part(to: Path) -> Path:
    return to.with_name("file.part")


def test_a_file_arrives_whole_and_leaves_no_part(fetch: Fetch, to: Path, said: Heard) -> None:
    fetch()
    assert to.read_bytes() == BODY
    assert not part(to).exists()
    assert said[-1] == "downloading file: 1 of 1 MB"


def test_a_file_that_is_there_is_not_asked_for(fetch: Fetch, to: Path, server: "Server") -> None:
    to.write_bytes(BODY)
    fetch()
    assert server.asked == []


def test_it_goes_on_from_what_is_there(fetch: Fetch, to: Path, server: "Server") -> None:
    part(to).write_bytes(BODY[:700_000])
    fetch()
    assert to.read_bytes() == BODY
    assert server.asked == [("/file", "bytes=700000-")]


def test_a_whole_part_needs_no_request(fetch: Fetch, to: Path, server: "Server") -> None:
    part(to).write_bytes(BODY)
    fetch()
    assert to.read_bytes() == BODY
    assert server.asked == []


@pytest.mark.parametrize("start", [b"another file's beginning", BODY + b"more"])
def test_a_part_of_something_else_is_fetched_anew(fetch: Fetch, to: Path, start: bytes) -> None:
    part(to).write_bytes(start)
    fetch()
    assert to.read_bytes() == BODY


def test_a_server_without_range_starts_from_the_beginning(
    fetch: Fetch, to: Path, server: "Server"
) -> None:
    part(to).write_bytes(BODY[:700_000])
    server.lies["/file"] = lambda handler: handler.answer(200, BODY)
    fetch()
    assert to.read_bytes() == BODY


def test_a_range_from_another_place_is_not_glued_on(
    fetch: Fetch, to: Path, server: "Server"
) -> None:
    part(to).write_bytes(BODY[:700_000])
    server.lies["/file"] = lambda handler: handler.answer(
        206 if handler.start() else 200, BODY, Content_Range=f"bytes 0-{len(BODY) - 1}/{len(BODY)}"
    )
    fetch()
    assert to.read_bytes() == BODY


def test_a_break_in_the_middle_is_taken_up_in_the_same_call(
    fetch: Fetch, to: Path, server: "Server", tmp_path: Path
) -> None:
    server.lies["/file"] = lambda handler: handler.send_file(tmp_path / "origin", most=400_000)
    fetch()
    assert to.read_bytes() == BODY
    assert [span for _, span in server.asked] == ["", "bytes=400000-", "bytes=800000-"]


def test_breaking_off_again_and_again_ends_and_keeps_what_came(
    fetch: Fetch, to: Path, server: "Server", tmp_path: Path
) -> None:
    server.lies["/file"] = lambda handler: handler.send_file(tmp_path / "origin", most=1000)
    with pytest.raises(CutOffError, match="broke off"):
        fetch()
    assert not to.exists()
    assert part(to).read_bytes() == BODY[:4000]


def test_a_wrong_digest_is_thrown_away(fetch: Fetch, to: Path, server: "Server") -> None:
    server.lies["/file"] = lambda handler: handler.answer(200, BODY[::-1])
    with pytest.raises(DigestError, match="wrong SHA-256") as caught:
        fetch()
    assert f"expected {SHA256}" in caught.value.details
    assert not to.exists()
    assert not part(to).exists()


def test_a_wrong_file_that_was_begun_honestly_is_an_error_too(
    fetch: Fetch, to: Path, server: "Server"
) -> None:
    part(to).write_bytes(BODY[:1000])
    server.lies["/file"] = lambda handler: handler.answer(200, BODY[::-1])
    with pytest.raises(DigestError):
        fetch()


@pytest.mark.parametrize(
    ("status", "message"),
    [(404, "does not exist"), (410, "does not exist"), (503, "HTTP 503"), (403, "HTTP 403")],
)
def test_a_refusal_is_said_with_its_status(
    fetch: Fetch, server: "Server", status: int, message: str
) -> None:
    server.lies["/file"] = lambda handler: handler.answer(status, b"no", Retry_After="60")
    with pytest.raises(DownloadError, match=message):
        fetch()
    assert len(server.asked) == 1


def html(handler: "Handler") -> None:
    handler.answer(200, b"<!DOCTYPE html><title>Login</title>", Content_Type="text/html")


def html_in_disguise(handler: "Handler") -> None:
    handler.answer(200, b"\n<html>Login</html>", Content_Type="application/octet-stream")


@pytest.mark.parametrize("lie", [html, html_in_disguise])
def test_a_login_page_is_no_file(
    fetch: Fetch, to: Path, server: "Server", lie: Callable[["Handler"], None]
) -> None:
    server.lies["/file"] = lie
    with pytest.raises(DownloadError, match="a web page came instead"):
        fetch()
    assert not to.exists()
    with pytest.raises(DownloadError, match="a web page came instead"):
        download.text(f"{server.url}/file", LIMITS)


def endless(handler: "Handler") -> None:
    handler.send_response(200)
    handler.end_headers()
    handler.close_connection = True
    while True:
        handler.wfile.write(BODY)


def dripping(handler: "Handler") -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(BODY)))
    handler.end_headers()
    for _ in range(200):
        handler.wfile.write(b"x" * 10)
        pause(0.05)


def silent(handler: "Handler") -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(BODY)))
    handler.end_headers()
    handler.wfile.write(b"x")
    pause(3)


def too_long(handler: "Handler") -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(5 << 20))
    handler.end_headers()


@pytest.mark.parametrize(
    ("lie", "message"),
    [
        (endless, "does not end"),
        (dripping, "drips"),
        (silent, "sent nothing for 1 s"),
        (too_long, "too many to be the file"),
    ],
    ids=["endless", "dripping", "silent", "too long"],
)
def test_a_body_that_never_comes_to_an_end_is_given_up(
    fetch: Fetch, to: Path, server: "Server", lie: Callable[["Handler"], None], message: str
) -> None:
    server.lies["/file"] = lie
    began = time.monotonic()
    with pytest.raises(DownloadError, match=message):
        fetch()
    assert time.monotonic() - began < 5
    assert not to.exists()
    assert not part(to).exists() or part(to).stat().st_size < LIMITS.size // 2


def test_an_endless_checksum_ends(server: "Server") -> None:
    server.lies["/sum"] = endless
    with pytest.raises(DownloadError, match="does not end: more than 65536 bytes"):
        download.text(f"{server.url}/sum", LIMITS)


def test_a_redirect_is_followed(fetch: Fetch, to: Path, server: "Server") -> None:
    server.content["/other"] = server.content["/file"]
    server.lies["/file"] = lambda handler: handler.answer(302, b"", Location="/other")
    fetch()
    assert to.read_bytes() == BODY


def test_a_circle_of_redirects_ends(fetch: Fetch, server: "Server") -> None:
    server.lies["/file"] = lambda handler: handler.answer(302, b"", Location="/file")
    with pytest.raises(DownloadError, match="cannot be fetched"):
        fetch()


@pytest.fixture
def deaf() -> Iterator[str]:
    """An address whose queue of connections is full: connecting to it gets no answer at all."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        host, port = listener.getsockname()
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)  # noqa: FBT003 - the socket's own signature
            one.connect_ex((host, port))
        yield f"http://{host}:{port}"
        for one in waiting:
            one.close()


def test_a_refused_connection_is_said_at_once(to: Path, said: Heard) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(DownloadError, match=rf"^{url} cannot be fetched: Connection refused$"):
            download.file(url, to, SHA256, said, LIMITS)


def test_a_host_without_answer_costs_no_more_than_the_limit(deaf: str) -> None:
    began = time.monotonic()
    with pytest.raises(DownloadError, match=r"127\.0\.0\.1:\d+ cannot be fetched: no answer"):
        download.text(deaf, LIMITS)
    assert time.monotonic() - began < 2


def test_a_host_of_which_one_address_does_not_answer_is_asked_at_the_next(
    fetch: Fetch,
    to: Path,
    server: "Server",
    deaf: str,
    monkeypatch: pytest.MonkeyPatch,
    said: Heard,
) -> None:
    """As a broken route for IPv6 makes of a host with an address of each kind."""
    places = [urlsplit(url) for url in (deaf, server.url)]
    addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (p.hostname, p.port)) for p in places]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
    download.file("http://two.example.invalid/file", to, SHA256, said, LIMITS)
    assert to.read_bytes() == BODY


@pytest.mark.parametrize(
    "url",
    ["ftp://example.invalid", "/a/path", "https://", "http://[", "http://a:99999", "http://a:b"],
)
def test_an_address_that_is_none_is_said(url: str) -> None:
    with pytest.raises(DownloadError, match="is not an http or https address"):
        download.text(url, LIMITS)


def test_what_cannot_be_the_name_of_a_host_is_said_at_once() -> None:
    began = time.monotonic()
    with pytest.raises(DownloadError, match="cannot be fetched"):
        download.text(f"http://{'a' * 70}.invalid", Limits(connect=30))
    assert time.monotonic() - began < 5


def test_a_proxy_in_the_environment_is_used(
    fetch: Fetch, to: Path, server: "Server", monkeypatch: pytest.MonkeyPatch, said: Heard
) -> None:
    monkeypatch.setenv("http_proxy", server.url.removeprefix("http://"))
    monkeypatch.setenv("no_proxy", "")
    address = "http://files.example.invalid/file"
    server.content[address] = server.content["/file"]  # a proxy is asked for whole addresses
    download.file(address, to, SHA256, said, LIMITS)
    assert to.read_bytes() == BODY


IN_ADDRESS = "pass%2Fw0rd"


@pytest.mark.parametrize(
    "url",
    [
        f"http://me:{IN_ADDRESS}@127.0.0.1:1/file?token={IN_ADDRESS}",
        f"http://me:{IN_ADDRESS}@nobody.invalid/file",
        f"http://me:{IN_ADDRESS}@a:b/file",
        f"http://me:{IN_ADDRESS.replace('%2F', '/')}@host/file",
        f"ftp://me:{IN_ADDRESS}@host/file",
        f"http://me:{IN_ADDRESS}@[/file",
    ],
)
def test_a_password_in_an_address_is_in_no_error(url: str) -> None:
    with pytest.raises(DownloadError) as caught:
        download.text(url, LIMITS)
    assert "w0rd" not in "".join([caught.value.message, *caught.value.details])


def test_a_password_in_an_address_is_sent_to_that_host_alone(
    fetch: Fetch, to: Path, server: "Server", said: Heard
) -> None:
    sent: list[str | None] = []

    def elsewhere(handler: "Handler") -> None:
        sent.append(handler.headers.get("Authorization"))
        handler.answer(302, b"", Location=f"{server.url}/file")

    def there(handler: "Handler") -> None:
        sent.append(handler.headers.get("Authorization"))
        handler.tell_truth()

    server.lies["/begin"] = elsewhere
    server.lies["/file"] = there
    address = f"{server.url.replace('//', f'//me:{IN_ADDRESS}@')}/begin"
    download.file(address, to, SHA256, said, LIMITS)
    assert sent == [f"Basic {base64.b64encode(b'me:pass/w0rd').decode()}", None]


@pytest.fixture
def encrypted(
    server: "Server", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator["Server"]:
    """A second server, over https, whose certificate is trusted."""
    certificate, key = tmp_path / "server.crt", tmp_path / "server.key"
    authority = credentials.Authority()
    pair = authority.server()
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    (tmp_path / "ca.crt").write_bytes(authority.certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.crt"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    with type(server)() as running:
        running.socket = context.wrap_socket(running.socket, server_side=True)
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_a_redirect_from_https_over_http_is_refused_wherever_it_ends(
    server: "Server", encrypted: "Server", to: Path, said: Heard
) -> None:
    secure = encrypted.url.replace("http:", "https:")
    encrypted.content["/end"] = BODY
    encrypted.lies["/there"] = lambda handler: handler.answer(302, b"", Location=f"{secure}/end")
    encrypted.lies["/away"] = lambda handler: handler.answer(
        302, b"", Location=f"{server.url}/back"
    )
    server.lies["/back"] = lambda handler: handler.answer(302, b"", Location=f"{secure}/end")
    download.file(f"{secure}/there", to, SHA256, said, LIMITS)
    to.unlink()
    with pytest.raises(DownloadError, match=r"/away leads to http://\S+, which is not encrypted"):
        download.file(f"{secure}/away", to, SHA256, said, LIMITS)
    assert server.asked == []
