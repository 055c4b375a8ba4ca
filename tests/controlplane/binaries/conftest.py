"""The real binaries, a server on 127.0.0.1 that serves (or lies about) them, and a tiny Go module."""

import functools
import hashlib
import re
import shutil
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.heard import Heard

from gpuwl.controlplane.binaries import cache, gotoolchain, lookup
from gpuwl.errors import SetupError

Lie = Callable[["Handler"], None]


@pytest.fixture(scope="session")
def real(found_binaries: lookup.Binaries) -> lookup.Binaries:
    """The real binaries that this machine has, of the version that the tests ask for."""
    if found_binaries.version != lookup.DEFAULT_VERSION:
        missing(f"binaries of Kubernetes {lookup.DEFAULT_VERSION} are needed here")
    return found_binaries


@pytest.fixture(autouse=True)
def cache_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Path:
    """An empty cache for every test, and no variable of the developer's."""
    if "real" in request.fixturenames:
        request.getfixturevalue("real")  # look before the variables go
    for name in (
        "GPUWL_ASSETS",
        "GPUWL_KUBERNETES_MIRROR",
        "GPUWL_ETCD_MIRROR",
        "http_proxy",
        "HTTP_PROXY",
        "https_proxy",
        "HTTPS_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    return home


@pytest.fixture
def said() -> Heard:
    """The lines of progress, in order."""
    return Heard()


@functools.cache
def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serves files with Range, as the official servers do, unless told to lie about a path."""

    protocol_version = "HTTP/1.1"
    server: "Server"

    def do_GET(self) -> None:
        self.server.asked.append((self.path, self.headers.get("Range", "")))
        lie = next((lie for end, lie in self.server.lies.items() if self.path.endswith(end)), None)
        try:
            (lie or Handler.tell_truth)(self)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def tell_truth(self) -> None:
        content = self.server.content.get(self.path)
        if content is None:
            self.answer(404, b"no such file")
        elif isinstance(content, bytes):
            self.answer(200, content)
        else:
            self.send_file(content)

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def start(self) -> int:
        """The first byte that was asked for."""
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        return int(asked[1]) if asked else 0

    def send_file(self, path: Path, *, most: int | None = None) -> None:
        """Send a file from the byte asked for; `most` bytes of it, although more was promised."""
        size, start = path.stat().st_size, self.start()
        if start >= size:
            self.answer(416, b"")
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(size - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        self.end_headers()
        with path.open("rb") as file:
            file.seek(start)
            if most is None:
                shutil.copyfileobj(file, self.wfile, 1 << 20)
            else:
                self.wfile.write(file.read(most))
                self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        """Keep the test's output clean."""


class Server(ThreadingHTTPServer):
    """`content` by path; `lies` by the end of a path; `asked` are the requests with their Range."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content: dict[str, bytes | Path] = {}
        self.lies: dict[str, Lie] = {}
        self.asked: list[tuple[str, str]] = []

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up between two requests is no news."""
        if not isinstance(sys.exc_info()[1], ConnectionResetError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # socket

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def files_asked(self) -> list[tuple[str, str]]:
        """The requests for whole files, checksums left out: last part of the path, Range."""
        return [
            (path.rpartition("/")[2], span)
            for path, span in self.asked
            if not path.endswith((".sha256", "SHA256SUMS"))
        ]


@pytest.fixture
def server() -> Iterator[Server]:
    """A server without content."""
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def etcd_archive(real: lookup.Binaries, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real etcd, packed as its releases are."""
    name = f"etcd-v3.7.0-{cache.platform()}"
    file = tmp_path_factory.mktemp("etcd") / f"{name}.tar.gz"
    with tarfile.open(file, "w:gz", compresslevel=1) as archive:
        archive.add((real.folder / "etcd"), f"{name}/etcd")
    return file


@pytest.fixture
def mirror(
    real: lookup.Binaries, etcd_archive: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> Server:
    """The server with everything that the official ones have of the real binaries' version."""
    folder = f"/k8s/v{real.version}/bin/{cache.platform().replace('-', '/')}"
    for path in ((real.folder / "kube-apiserver"), (real.folder / "kube-scheduler")):
        server.content[f"{folder}/{path.name}"] = path
        server.content[f"{folder}/{path.name}.sha256"] = digest(path).encode()
    others = f"{'0' * 64}  etcd-v3.7.0-plan9-amd64.tar.gz\n"
    sums = f"{others}{digest(etcd_archive)}  {etcd_archive.name}\n"
    server.content["/etcd/v3.7.0/SHA256SUMS"] = sums.encode()
    server.content[f"/etcd/v3.7.0/{etcd_archive.name}"] = etcd_archive
    monkeypatch.setenv("GPUWL_KUBERNETES_MIRROR", f"{server.url}/k8s")
    monkeypatch.setenv("GPUWL_ETCD_MIRROR", f"{server.url}/etcd/")
    return server


VERSION_GO = """package version

var gitVersion, gitMajor, gitMinor string

func Say() { println("Kubernetes " + gitVersion) }
"""


@dataclass
class TinyModule:
    """A Go module whose three programs say a version, with the import paths that the flags name."""

    folder: Path
    packages: dict[str, str] = field(
        default_factory=lambda: {
            "k8s.io/kubernetes/cmd/kube-apiserver": "kube-apiserver",
            "k8s.io/kubernetes/cmd/kube-scheduler": "kube-scheduler",
            "k8s.io/etcd/server/v3": "etcd",
        }
    )

    def write(self, path: str, text: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.fixture
def tiny(tmp_path: Path) -> TinyModule:
    """A tiny module that a real Go can build in seconds, without a network."""
    try:
        gotoolchain.find((1, 26))
    except SetupError as error:
        missing(error.message)
    module = TinyModule(tmp_path / "tiny")
    module.write("go.mod", "module k8s.io\n\ngo 1.26\n")
    module.write("go.sum", "")
    module.write("component-base/version/version.go", VERSION_GO)
    for name in ("kube-apiserver", "kube-scheduler"):
        source = 'package main\n\nimport "k8s.io/component-base/version"\n\n'
        module.write(f"kubernetes/cmd/{name}/main.go", source + "func main() { version.Say() }\n")
    etcd = 'package main\n\nfunc main() { println("etcd Version: 3.0.0") }\n'
    module.write("etcd/server/v3/main.go", etcd)
    return module
