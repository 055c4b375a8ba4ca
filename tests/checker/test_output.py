"""What is written where: one line per node, escapes, JSON, options, closed and full outputs."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.checker.support import ENVIRONMENT, PATH, SCRIPT, dump, gpus, node, run_main, run_script

from gpuwl import checker

BAD = node("bad", "vm-vgpu", gpus(gpu="4"))
GOOD = node("good", "container", gpus(gpu="4"))

NASTY = {
    "a b": r"a\x20b",
    "a\nOK=1": r"a\x0aOK=1",
    "a\rMISMATCH=x": r"a\x0dMISMATCH=x",
    "\x1b[2J\x1b]0;title\x07": r"\x1b[2J\x1b]0;title\x07",
    "a\tb\0": r"a\x09b\x00",
    "\x7f\x85\x9b31m": r"\x7f\x85\x9b31m",
    "\u2028\u2029": r"\u2028\u2029",
    "\u202egnp.exe\u2066": r"\u202egnp.exe\u2066",
    "\u00a0\u3000\u200b\ufeff": r"\xa0\u3000\u200b\ufeff",
    "\ud800x": r"\ud800x",
    "\U0001f600": r"\U0001f600",
    "\ub178\ub4dc": r"\ub178\ub4dc",
    r"\x20": r"\\x20",
    "\"q'": "\"q'",
}


@pytest.mark.parametrize(("raw", "shown"), NASTY.items(), ids=ascii)
def test_names_cannot_forge_a_line(raw: str, shown: str) -> None:
    item = node(raw, raw, {f"nvidia.com/{raw}": raw})
    result = run_main(dump(item, GOOD))
    assert (result.code, result.err) == (1, "")
    assert result.out.isascii()
    assert result.out.count("\n") == 1
    assert all(" " <= character <= "~" for character in result.out[:-1])
    assert result.lines == [f"MISMATCH={shown}"]
    assert f"label {shown} is none of" in result.out
    assert f"nvidia.com/{shown}={shown} (unknown name" in result.out
    assert "kubectl" not in result.out


def test_what_is_shown_never_stands_for_two_names() -> None:
    raws = [*NASTY, *NASTY.values()]
    assert len({checker.shown(raw) for raw in raws}) == len(set(raws))


def test_endless_names_are_cut() -> None:
    result = run_main(
        dump(node("x" * 10**6, "y" * 10**6, {"nvidia.com/" + "z" * 10**6: "1" * 10**6}))
    )
    assert result.code == 1
    assert len(result.out) < 10_000


def test_status_message_stays_on_its_line() -> None:
    result = run_main(
        json.dumps({"kind": "Status", "message": "no\nOK=3\x1b[2J \u202e" * 99}).encode()
    )
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert result.err.isascii()
    assert "\x1b" not in result.err


class TestJson:
    def document(
        self, *nodes: object, code: int, arguments: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        result = run_main(dump(*nodes), "--output", "json", *arguments)
        assert result.code == code
        parsed = json.loads(result.out)
        assert isinstance(parsed, dict)
        return parsed

    def test_every_judged_node(self) -> None:
        names = {"nvidia.com/gpu": 4, "nvidia.com/mig-1g.5gb": "x", "cpu": "8", "nvidia.com/a": "0"}
        arguments = ("--accept", "container=nvidia.com/mig-*")
        nodes = [node("a", "container", names), BAD, node("c", None, names)]
        document = self.document(*nodes, code=1, arguments=arguments)
        assert document == {
            "version": 1,
            "verdict": "mismatch",
            "judged": 2,
            "mismatches": 1,
            "nodes": [
                {
                    "node": "a",
                    "label": "container",
                    "source": "allocatable",
                    "advertised": [
                        {
                            "name": "nvidia.com/gpu",
                            "quantity": "4",
                            "kind": "container",
                            "known": True,
                            "accepted": False,
                            "readable": True,
                        },
                        {
                            "name": "nvidia.com/mig-1g.5gb",
                            "quantity": "x",
                            "kind": "container slice",
                            "known": True,
                            "accepted": True,
                            "readable": False,
                        },
                    ],
                    "kind": None,
                    "expected": "nvidia.com/gpu alone",
                    "verdict": "ok",
                    "reason": None,
                    "warning": None,
                },
                {
                    "node": "bad",
                    "label": "vm-vgpu",
                    "source": "allocatable",
                    "advertised": [
                        {
                            "name": "nvidia.com/gpu",
                            "quantity": "4",
                            "kind": "container",
                            "known": True,
                            "accepted": False,
                            "readable": True,
                        }
                    ],
                    "kind": "container",
                    "expected": "exactly one vGPU profile",
                    "verdict": "mismatch",
                    "reason": run_main(dump(BAD)).out.removeprefix("MISMATCH=bad ").rstrip("\n"),
                    "warning": None,
                },
            ],
            "unlabelled": ["c"],
        }

    def test_unknown_label_and_capacity(self) -> None:
        (entry,) = self.document(node("n", 5, None, gpus(gpu=1)), code=1)["nodes"]
        assert entry["label"] == "5"
        assert entry["expected"] is None
        assert entry["source"] == "capacity"

    def test_none_judged(self) -> None:
        document = self.document(code=0)
        assert document == {
            "version": 1,
            "verdict": "ok",
            "judged": 0,
            "mismatches": 0,
            "nodes": [],
            "unlabelled": [],
        }

    def test_nasty_names_survive(self) -> None:
        for raw in NASTY:
            (entry,) = self.document(node(raw, "container", {f"nvidia.com/{raw}": "1"}), code=1)[
                "nodes"
            ]
            assert entry["node"] == raw

    def test_nothing_on_stdout_when_not_judged(self) -> None:
        result = run_main(b"{", "--output=json")
        assert (result.code, result.out) == (2, "")

    def test_help_documents_every_field(self) -> None:
        document = self.document(BAD, code=1)
        (entry,) = document["nodes"]
        for field in {*document, *entry, *entry["advertised"][0]}:
            assert field in checker.HELP


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "0 were given"),
        (["a.json", "b.json"], "2 were given"),
        (["--verbose", "-"], "no option --verbose"),
        (["-x"], "no option -x"),
        (["--accept"], "--accept needs a value"),
        (["--ignore"], "--ignore needs a value"),
        (["--output"], "--output needs a value"),
        (["--output", "yaml", "-"], "text or json, not yaml"),
        (["--output=", "-"], "text or json, not"),
        (["--accept", "vm=nvidia.com/*", "-"], "VALUE one of container, vm-passthrough, vm-vgpu"),
        (["--accept", "container", "-"], "VALUE=PATTERN"),
        (["--accept", "container=", "-"], "VALUE=PATTERN"),
        (["--accept==x", "-"], "VALUE=PATTERN"),
        (["--accept", "Container=x", "-"], "not Container=x"),
        (["--require", "many", "-"], "--require is a number of nodes, not many"),
        (["--require=-1", "-"], "not -1"),
        (["--require=", "-"], "--require is a number"),
        (["--help=x", "-"], "no option --help=x"),
    ],
)
def test_usage_errors(arguments: list[str], words: str) -> None:
    result = run_script(*arguments, data=dump(GOOD))
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert words in result.err
    assert "--help" in result.err


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help(option: str) -> None:
    result = run_script(option)
    assert (result.code, result.out, result.err) == (0, checker.HELP, "")


def test_options_behind_the_file_and_a_file_like_an_option(tmp_path: Path) -> None:
    (tmp_path / "--ignore").write_bytes(dump(GOOD))
    assert run_script("--output", "text", "--", "--ignore", cwd=tmp_path).out == "OK=1\n"
    assert run_script("./--ignore", "--output", "text", cwd=tmp_path).out == "OK=1\n"


@pytest.mark.parametrize(("number", "code"), [("0", 0), ("1", 0), ("2", 2), ("=2", 2)])
def test_requires_as_many_labelled_nodes(number: str, code: int) -> None:
    option = [f"--require{number}"] if number.startswith("=") else ["--require", number]
    result = run_main(dump(GOOD, node("plain")), *option)
    assert result.code == code
    if code == 2:
        assert result.out == ""
        assert result.err == (
            "check-config: not judged: standard input holds 1 nodes with the label"
            " nvidia.com/gpu.workload.config, --require asks for 2\n"
        )
    else:
        assert (result.out, result.err) == ("OK=1\n", "")


def test_unknown_names_and_unlabelled_nodes_in_json() -> None:
    nodes = [node(f"n{n}", None, gpus(gpu="1")) for n in range(20)]
    doubtful = node("d", "vm-passthrough", gpus(hostdev="1"))
    document = json.loads(run_main(dump(doubtful, *nodes), "--output=json").out)
    assert document["unlabelled"] == [f"n{n}" for n in range(20)]
    (entry,) = document["nodes"]
    (resource,) = entry["advertised"]
    assert (resource["kind"], resource["known"], entry["verdict"]) == ("device model", False, "ok")
    assert entry["warning"] == "nvidia.com/hostdev is no card's name"


class TestStreams:
    """Outputs that are closed, full, or gone; each through the script."""

    def shell(self, line: str, data: bytes = dump(BAD)) -> tuple[int, str, str]:
        command = ["/bin/bash", "-c", line, str(SCRIPT)]
        done = subprocess.run(
            command, input=data, capture_output=True, env=ENVIRONMENT, check=False
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def test_reader_gone_early(self) -> None:
        many = dump(*[BAD] * 5000)
        code, out, err = self.shell('"$0" - | head -1; exit ${PIPESTATUS[0]}', many)
        assert (code, out.count("\n"), err) == (1, 1, "")

    def test_full_disk(self) -> None:
        if not Path("/dev/full").exists():
            pytest.skip("no /dev/full on this system")
        code, out, err = self.shell('"$0" - >/dev/full')
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "No space left on device" in err

    def test_stdout_closed(self) -> None:
        code, out, err = self.shell('"$0" - >&-')
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "stdout is closed" in err

    def test_stderr_closed_or_full(self) -> None:
        assert self.shell('"$0" - 2>&-')[0] == 1
        assert self.shell('"$0" - 2>&-', b"")[:2] == (2, "")
        assert self.shell('"$0" - 2>/dev/full', b"")[:2] == (2, "")

    def test_stdin_closed(self) -> None:
        code, out, err = self.shell('"$0" - <&-')
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "standard input" in err

    @pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8", "ko_KR.EUC-KR", "nonsense"])
    def test_any_locale(self, locale: str, tmp_path: Path) -> None:
        env = {"PATH": PATH, "LANG": locale, "LC_ALL": locale}
        path = tmp_path / "\ub178\ub4dc.json"
        path.write_bytes(dump(node("\ub178\ub4dc", "container")))
        result = run_script(path, env=env)
        assert result.lines == [r"MISMATCH=\ub178\ub4dc"]
        path.write_bytes(b"")
        assert run_script(path, env=env).code == 2
