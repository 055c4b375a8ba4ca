#!/usr/bin/env python3
"""The checker against jq on a large dump, and against Python's own start on a small one.

    bench/checker.py [ROUNDS]

Both sides run in turn on the same files, which this program writes: 5,000 nodes (105 MB), ten times
as many (1.05 GB, the checker alone: jq would need 4 GB of memory), and 3 nodes. Prints the medians
of wall time and the peaks of memory, and fails above a limit. Needs jq and 1.2 GB of disk.
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
GENERATE = [sys.executable, str(HERE / "baselines" / "gen_dump.py")]
# Python as it comes, not a wrapper script and not a virtual environment that is slow to start.
ENVIRONMENT = os.environ | {"PATH": f"{sys.base_prefix}/bin{os.pathsep}{os.environ['PATH']}"}
SCRIPT = HERE.parent / "scripts" / "check-config.sh"
# A process inherits the peak memory of the one that forked it: measure from a small one.
MEASURE = """
import os, sys, time
silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
began = time.perf_counter()
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=silent)
_, status, usage = os.wait4(child, 0)
print(time.perf_counter() - began, usage.ru_maxrss / 1024, status)
"""


class Side:
    """One command: its wall times in seconds and its peak memory in MiB."""

    def __init__(self, *command: str | Path) -> None:
        self.command = [str(part) for part in command]
        self.times: list[float] = []
        self.peak = 0.0

    def run(self) -> None:
        """Measure once more; the command has to succeed."""
        launcher = [sys.executable, "-I", "-S", "-c", MEASURE, *self.command]
        done = subprocess.run(launcher, env=ENVIRONMENT, check=True, capture_output=True, text=True)
        out = done.stdout.split()
        if out[2] != "0":
            raise SystemExit(f"failed: {' '.join(self.command)}")
        self.times.append(float(out[0]))
        self.peak = max(self.peak, float(out[1]))

    @property
    def median(self) -> float:
        """Return the median of the wall times."""
        return statistics.median(self.times)


def in_turn(rounds: int, *sides: Side) -> None:
    """Measure all sides `rounds` times, one after the other, so that noise meets each of them."""
    for _ in range(rounds):
        for side in sides:
            side.run()


def row(name: str, value: float, unit: str, limit: float) -> bool:
    """Print one line of the table; tell whether the limit holds."""
    held = value <= limit
    print(f"{name:<58}{value:9.3f} {unit:<5} limit {limit:<6g}{'' if held else '  EXCEEDED'}")
    return held


def main() -> None:
    """Measure, print, and fail above a limit."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    with tempfile.TemporaryDirectory(prefix="bench-checker-") as folder:
        large, huge, small = (Path(folder) / f"{name}.json" for name in ("large", "huge", "small"))
        for arguments in (("5000", large), ("5000", huge, "10"), ("3", small)):
            subprocess.run([*GENERATE, *map(str, arguments)], check=True)
        jq = Side("bash", HERE / "baselines" / "jq-check.sh", large)
        ours, ours_huge = Side(SCRIPT, large), Side(SCRIPT, huge)
        python, ours_small = Side("python3", "-I", "-c", "import json"), Side(SCRIPT, small)
        in_turn(rounds, jq, ours)
        in_turn(1, ours_huge)
        in_turn(rounds * 10, python, ours_small)
    print(f"medians of {rounds} rounds ({rounds * 10} with the small dump)")
    print(f"105 MB   jq               {jq.median:7.3f} s  {jq.peak:7.1f} MiB")
    print(f"105 MB   check-config.sh  {ours.median:7.3f} s  {ours.peak:7.1f} MiB")
    print(f"1.05 GB  check-config.sh  {ours_huge.median:7.3f} s  {ours_huge.peak:7.1f} MiB")
    print(f"-        import json      {python.median * 1000:7.1f} ms")
    print(f"3 nodes  check-config.sh  {ours_small.median * 1000:7.1f} ms")
    held = [
        row("105 MB: wall, of jq's", ours.median / jq.median, "", 0.30),
        row("105 MB: peak memory", ours.peak, "MiB", 25),
        row("1.05 GB: peak memory, of that with 105 MB", ours_huge.peak / ours.peak, "", 1.1),
        row(
            "3 nodes: wall, of `python3 -I -c 'import json'`",
            ours_small.median / python.median,
            "",
            2,
        ),
    ]
    sys.exit(not all(held))


if __name__ == "__main__":
    main()
