#!/usr/bin/env python3
"""Wall time of `gpuwl --help` against that of importing click, which it cannot do without.

    bench/start.py [ROUNDS]

Both sides run in turn; prints the medians in milliseconds and their ratio. The limit is 2.
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

BIN = Path(sys.executable).parent
LIMIT = 2.0
SIDES = {
    "python -c 'import click'": [sys.executable, "-c", "import click"],
    "gpuwl --help": [str(BIN / "gpuwl"), "--help"],
}


def milliseconds(command: list[str]) -> float:
    """Return the wall time of a command that has to succeed."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1000


def main() -> None:
    """Measure, print, and fail above the limit."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    times: dict[str, list[float]] = {name: [] for name in SIDES}
    for _ in range(rounds):
        for name, command in SIDES.items():
            times[name].append(milliseconds(command))
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, value in medians.items():
        print(f"{name:<26}{value:7.1f} ms  (median of {rounds})")
    click, ours = medians.values()
    print(f"{'ratio':<26}{ours / click:7.2f}     (limit {LIMIT:g})")
    sys.exit(ours / click > LIMIT)


if __name__ == "__main__":
    main()
