"""Memory and time as a dump grows, through the script as a user runs it."""

import ast
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.checker.support import CHECKER, ENVIRONMENT, SCRIPT, gpus, node, run_main

from gpuwl import checker

MEGABYTE = 1024 * 1024


def padded(name: str, label: str, size: int) -> str:
    images = [
        {"names": [f"registry.example/app-{n}@sha256:{n:064x}"], "sizeBytes": n}
        for n in range(size)
    ]
    item = node(name, label, gpus(gpu="8"))
    item["status"] = {"allocatable": gpus(gpu="8"), "images": images}
    return json.dumps(item, indent=4)


def write_dump(path: Path, megabytes: int, last: str) -> int:
    text = padded("n", "container", 100) + ",\n"
    count = megabytes * MEGABYTE // len(text)
    with path.open("w") as file:
        file.write('{"apiVersion": "v1", "items": [\n')
        file.writelines(text for _ in range(count))
        file.write(last)
    return count


# A process inherits the peak of the one that forked it, so a small one has to start the script.
MEASURE = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE)
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, done.stdout)
"""


def peak_kilobytes(path: Path) -> tuple[int, int, bytes]:
    """Return exit code, peak resident set and stdout of the script on a dump."""
    command = [sys.executable, "-I", "-S", "-c", MEASURE, str(SCRIPT), str(path)]
    out = subprocess.check_output(command, env=ENVIRONMENT, text=True)
    code, peak, stdout = out.split(" ", 2)
    return int(code), int(peak), ast.literal_eval(stdout)


@pytest.fixture
def big(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "big.json"
    yield path
    path.unlink()


def test_memory_stays_flat(big: Path) -> None:
    peaks = []
    for megabytes in (4, 60):
        count = write_dump(big, megabytes, padded("last", "container", 1) + "]}")
        code, peak, out = peak_kilobytes(big)
        assert (code, out) == (0, f"OK={count + 1}\n".encode())
        peaks.append(peak)
    assert peaks[1] < 25 * 1024
    assert peaks[1] < peaks[0] * 1.1


def test_memory_stays_flat_with_lists_in_a_bare_list(big: Path, tmp_path: Path) -> None:
    """What `jq -s . a.json b.json` makes."""
    whole = tmp_path / "both.json"
    for megabytes in (4, 40):
        count = write_dump(big, megabytes, padded("last", "container", 1) + '], "kind": "List"}')
        whole.write_text(f"[{big.read_text()}, {big.read_text()}]")
        code, peak, out = peak_kilobytes(whole)
        assert (code, out) == (0, f"OK={2 * count + 2}\n".encode())
        assert peak < 25 * 1024


def test_no_verdict_on_a_large_dump_that_breaks_off_in_its_last_node(big: Path) -> None:
    write_dump(big, 8, padded("bad", "vm-vgpu", 1) + "," + padded("last", "container", 9)[:-5])
    code, _, out = peak_kilobytes(big)
    assert (code, out) == (2, b"")


def test_a_kind_behind_a_large_list_takes_the_verdict_back(big: Path) -> None:
    write_dump(big, 8, padded("bad", "vm-vgpu", 1) + '], "kind": "EventList"}')
    code, _, out = peak_kilobytes(big)
    assert (code, out) == (2, b"")


def test_an_error_early_in_a_large_file_is_found_at_once() -> None:
    """It is not taken for a value that goes on: the rest is not read."""
    read = 0

    class Endless:
        def read(self, size: int) -> bytes:
            nonlocal read
            read += size
            assert read < 10 * MEGABYTE
            return b'{"items": [{"a" 1}' if read == size else b" " * size

    with pytest.raises(checker.NotNodesError, match="not JSON at byte 17"):
        checker.read_document(checker.Source(Endless().read), checker.Check(checker.STRICT))


@pytest.mark.parametrize("filler", [b" ", b"\n", b'"', b"[", b"1"], ids=repr)
def test_one_kind_of_byte_takes_linear_time(filler: bytes) -> None:
    began = time.process_time()
    assert run_main(b'{"items":[' + filler * (2 * MEGABYTE)).code == 2
    assert time.process_time() - began < 5


def test_one_huge_string_takes_linear_time() -> None:
    text = json.dumps({"items": [{"metadata": {"name": "n"}, "x": "y" * (32 * MEGABYTE)}]})
    began = time.process_time()
    assert run_main(text.encode()).out == "OK=0\n"
    assert time.process_time() - began < 5


def test_import_is_cheap() -> None:
    """Who wants only the label's name pays for no parser, no patterns, no options."""
    code = "import sys; old = set(sys.modules); import checker; print(*set(sys.modules) - old)"
    env = ENVIRONMENT | {"PYTHONPATH": str(CHECKER.parent)}
    out = subprocess.check_output([sys.executable, "-S", "-c", code], env=env, text=True)
    assert "checker" in out.split()
    assert set(out.split()) <= {"checker", "gc", "__future__"}
