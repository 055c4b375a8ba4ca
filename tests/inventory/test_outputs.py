"""What the command writes: text, JSON, CSV, Prometheus, a page and a picture."""

import csv
import io
import json
import re
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from tests.cli.test_documents import check
from tests.inventory.clusters import GPU, MODEL, PROFILE, container, dumped, generated, node, pod

from gpuwl.cli import entry

Item = dict[str, Any]
Call = Callable[..., tuple[int, str, str]]
EVIL = '"><script>alert(1)</script>\n{x="}\\\x1b[31m\u202e'


@pytest.fixture
def inventory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run `gpuwl inventory` in this process on dumps of these."""

    def run(nodes: list[Item], pods: list[Item] | None, *words: str) -> tuple[int, str, str]:
        files = ["--nodes", str(dumped(tmp_path / "nodes.json", nodes))]
        if pods is not None:
            files += ["--pods", str(dumped(tmp_path / "pods.json", pods))]
        code = entry.call(["inventory", *files, *words])
        return (code, *capsys.readouterr())

    return run


def lab() -> tuple[list[Item], list[Item]]:
    nodes = [
        node("lab-node-0", "container", amounts={GPU: "4"}),
        node("lab-node-1", "vm-passthrough", amounts={MODEL: "2"}),
        node("lab-node-2", "vm-vgpu", amounts={PROFILE: "4"}),
    ]
    holding = {"job-container": GPU, "vmi-passthrough": MODEL, "vmi-vgpu": PROFILE}
    pods = [
        pod(name, container({what: "1"}), on=f"lab-node-{n}")
        for n, (name, what) in enumerate(holding.items())
    ]
    selects = {"nvidia.com/gpu.workload.config": "vm-passthrough"}
    return nodes, [*pods, pod("job-cross", container({GPU: "1"}), nodeSelector=selects)]


def test_the_lab_as_text(inventory: Call) -> None:
    code, out, _ = inventory(*lab())
    assert code == 0
    table = [line.split() for line in out.splitlines()[:4]]
    assert [row[1:] for row in table[1:]] == [
        [GPU, "1", "4", "1", "3", "0", "3", "1", "1"],
        [MODEL, "1", "2", "1", "1", "0", "1", "0", "0"],
        [PROFILE, "1", "4", "1", "3", "0", "3", "0", "0"],
    ]
    assert f"1 Pod waits for 1 {GPU} while 1 {MODEL} is free on lab-node-1;" in out
    assert f"gpuwl place --move lab-node-1=container:{GPU}=2 --nodes " in out


def test_unknown_is_said_in_every_form(inventory: Call) -> None:
    nodes, _ = lab()
    _, out, _ = inventory(nodes, None)
    assert re.search(rf"{GPU} +1 +4 +unknown +unknown", out)
    _, out, _ = inventory(nodes, None, "--output", "csv")
    assert next(csv.DictReader(io.StringIO(out)))["used"] == "unknown"
    _, out, _ = inventory(nodes, None, "--output", "prometheus")
    assert "gpuwl_resource_advertised{" in out
    assert "gpuwl_resource_used{" not in out
    _, out, _ = inventory(nodes, None, "--output", "json")
    document = check("inventory.json", out)
    assert (document["verdict"], document["resources"][0]["free"]) == ("unknown", None)


@pytest.mark.parametrize("by", ["resource", "node", "namespace", "workload"])
def test_json_is_what_the_schema_says(inventory: Call, by: str) -> None:
    for seed in range(8):
        code, out, _ = inventory(*generated(seed), "--by", by, "--output", "json")
        assert code == 0
        check("inventory.json", out)


def test_without_gpus(inventory: Call) -> None:
    code, out, _ = inventory([node("a", amounts={"cpu": "4"})], [])
    assert (code, out.splitlines()[0]) == (
        0,
        "No GPUs: none of 1 nodes advertises an nvidia.com/ resource, and no Pod asks for one.",
    )


def test_labels_of_prometheus_are_escaped(inventory: Call) -> None:
    nodes = [node('a"\\\n', amounts={GPU: "1", 'nvidia.com/x"} 1\n': "1"})]
    _, out, _ = inventory(nodes, [], "--by", "node", "--output", "prometheus")
    sample = re.compile(r'[a-z_]+\{([a-z]+="(\\[\\"n]|[^"\\\n])*",?)+\} \d+')
    for line in out.splitlines():
        assert line.startswith(("# HELP ", "# TYPE ")) or sample.fullmatch(line), line


def test_a_cell_is_no_formula(inventory: Call) -> None:
    _, out, _ = inventory([node("=1+1", amounts={GPU: "1"})], [], "--by", "node", "--output", "csv")
    assert next(csv.DictReader(io.StringIO(out)))["node"] == "'=1+1"


def evil() -> tuple[list[Item], list[Item]]:
    nodes = [node(EVIL, EVIL, amounts={GPU: "2", f"nvidia.com/{EVIL}": "1"})]
    waits = pod(EVIL, container({MODEL: "1"}), namespace=EVIL)
    words = {"type": "PodScheduled", "status": "False", "message": EVIL}
    waits["status"]["conditions"] = [words]
    return nodes, [waits, pod(EVIL, container({GPU: "1"}), on=EVIL, namespace=EVIL)]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.links += [value or "" for name, value in attrs if name in {"href", "src"}]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_a_page_needs_nothing_and_runs_nothing_of_strangers(
    inventory: Call, tmp_path: Path, language: str
) -> None:
    page, picture = tmp_path / "p.html", tmp_path / "p.svg"
    words = ["--html", str(page), "--svg", str(picture), "--lang", language]
    code, out, _ = inventory(*evil(), *words)
    assert code == 0
    tags = Tags()
    tags.feed(page.read_text())
    assert not {"script", "link", "img", "iframe"} & tags.found
    assert tags.links == []
    for text in (page.read_text(), picture.read_text(), out):
        assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", text)
    assert "<script" not in page.read_text()
    assert ET.fromstring(picture.read_bytes()).tag.endswith("svg")  # noqa: S314 - our own


def boxes(picture: str, css: str) -> int:
    """Count the squares of a class in a picture, the legend's left out."""
    paths = re.findall(rf'<path d="([^"]*)" class="{css}[^"]*">(?=<title>)', picture)
    return sum(path.count("M") for path in paths)


def test_a_picture_has_one_box_for_each_slot(inventory: Call, tmp_path: Path) -> None:
    picture = tmp_path / "p.svg"
    for count in (1, 12, 200):  # in words, by name, and dense
        nodes = [node(f"n{n}", "container", amounts={GPU: "8"}) for n in range(count)]
        pods = [pod(f"p{n}", container({GPU: "3"}), on=f"n{n}") for n in range(count)]
        inventory(nodes, pods, "--svg", str(picture))
        assert boxes(picture.read_text(), "held") == 3 * count
        assert boxes(picture.read_text(), "free") == 5 * count


def test_a_missing_extra_is_named(
    inventory: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    code, _, err = inventory(*lab(), "--html", str(tmp_path / "p.html"))
    assert code == 3
    assert "hint: pip install 'gpuwl[html]'" in err
    assert not (tmp_path / "p.html").exists()


def test_a_file_that_cannot_be_written(inventory: Call, tmp_path: Path) -> None:
    code, _, err = inventory(*lab(), "--svg", str(tmp_path / "none" / "p.svg"))
    assert (code, "cannot write" in err) == (3, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--pods", "x"], "need --nodes"),
        (["--nodes", "-", "--pods", "-"], "cannot be both"),
        (["--nodes", "x", "--watch"], "looks at a live cluster"),
        (["--interval", "3"], "is for --watch"),
        (["--nodes", "/nowhere.json"], "cannot read /nowhere.json"),
        (["--nodes", "/nowhere.json", "-l", "a=b=c"], "is not a label selector"),
    ],
)
def test_usage(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    assert entry.call(["inventory", *words]) == 2
    assert says in capsys.readouterr().err


def test_sorting(inventory: Call) -> None:
    nodes = [node(name, amounts={GPU: str(n)}) for n, name in enumerate("abc", 1)]
    pods = [pod("p", container({GPU: "3"}), on="c")]
    for sort, order in {"name": "abc", "advertised": "cba", "used": "cab", "free": "bac"}.items():
        words = ["--by", "node", "--sort", sort, "--output", "json"]
        found = json.loads(inventory(nodes, pods, *words)[1])["nodes"]
        assert "".join(row["node"] for row in found) == order
