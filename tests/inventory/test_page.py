"""The page as Chromium shows and prints it."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.conftest import missing
from tests.inventory.clusters import GPU, MODEL, PROFILE, container, node, pod, read

from gpuwl.inventory import page

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture
def chromium(tmp_path: Path) -> list[str]:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        missing("no chromium: apt-get install chromium")
    return [found, *FLAGS, f"--user-data-dir={tmp_path}/profile"]


def large(tmp_path: Path, count: int) -> str:
    """Return the page of many nodes of every mark, finding and length of name."""
    uses = {"container": GPU, "vm-passthrough": MODEL, "vm-vgpu": PROFILE}
    nodes = [
        node(
            f"pool-{n}-" + "x" * 200,
            (*uses, None)[n % 4],
            amounts=dict.fromkeys(list(uses.values())[n % 3 : n % 3 + 1], "8"),
            ready="False" if n % 7 == 0 else "True",
            cordoned=n % 11 == 0,
        )
        for n in range(count)
    ]
    names = [one["metadata"]["name"] for one in nodes]
    pods = [pod(f"p{n}", container({GPU: "3"}), on=names[n % count]) for n in range(count)]
    pods += [pod(f"w{n}", container({GPU: "1"})) for n in range(20)]
    return page.html(read(tmp_path, nodes, pods), page.Caption("nodes.json", "now"))


@pytest.mark.parametrize("count", [12, 60])
def test_it_prints_on_one_page(tmp_path: Path, chromium: list[str], count: int) -> None:
    file, printed = tmp_path / "p.html", tmp_path / "p.pdf"
    file.write_text(large(tmp_path, count))
    command = [*chromium, "--no-pdf-header-footer", f"--print-to-pdf={printed}", file.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    assert len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes())) == 1


def test_it_asks_the_network_for_nothing(tmp_path: Path, chromium: list[str]) -> None:
    """What the browser makes of the page has the table, and no script and no address in it."""
    file = tmp_path / "p.html"
    file.write_text(large(tmp_path, 12))
    done = subprocess.run(
        [*chromium, "--dump-dom", file.as_uri()], check=True, capture_output=True, timeout=60
    )
    shown = done.stdout.decode()
    assert shown.count("<tr") == 4
    assert "<script" not in shown
    assert set(re.findall(r"https?://[^\s\"'<]+", shown)) <= {"http://www.w3.org/2000/svg"}
