#!/usr/bin/env python3
"""Wall time of `gpuwl run --all` from nothing against a control plane started by hand.

    bench/cold.py [ROUNDS]

From nothing: the binaries are there and no control plane is up. The other side ends where that
control plane says that it is ready, before its scheduler is started and before any lab. Both sides
run in turn. Prints the medians in seconds and their ratio; the limit is 0.6.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gpuwl.controlplane.binaries import acquire
from gpuwl.system.progress import SILENCE

BIN = Path(sys.executable).parent
HERE = Path(__file__).parent
LIMIT = 0.6


def by_hand(programs: Path) -> float:
    """Return the seconds that the start by hand took."""
    command = [sys.executable, str(HERE / "baselines/raw-start.py"), str(programs)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def by_gpuwl(folder: Path) -> float:
    """Return the seconds of a whole lab, whose control plane is stopped after the clock is."""
    gpuwl = [str(BIN / "gpuwl"), "-q"]
    environment = {**os.environ, "XDG_STATE_HOME": str(folder / "state")}
    environment.pop("KUBECONFIG", None)
    began = time.perf_counter()
    try:
        subprocess.run(
            [*gpuwl, "run", "--all", "--local", "--root", str(folder / "root")],
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return time.perf_counter() - began
    finally:
        subprocess.run([*gpuwl, "local", "down"], env=environment, check=True, stdout=sys.stderr)


def main() -> None:
    """Measure, print, and fail above the limit."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    programs = acquire.obtain(listener=SILENCE).folder
    hand: list[float] = []
    ours: list[float] = []
    for _ in range(rounds):
        hand.append(by_hand(programs))
        with tempfile.TemporaryDirectory(prefix="bench-cold-") as folder:
            ours.append(by_gpuwl(Path(folder)))
    ratio = statistics.median(ours) / statistics.median(hand)
    print(f"ready, started by hand         {statistics.median(hand):6.3f} s  (median of {rounds})")
    print(f"gpuwl run --all from nothing   {statistics.median(ours):6.3f} s")
    print(f"ratio                          {ratio:6.3f}    (limit {LIMIT})")
    sys.exit(ratio > LIMIT)


if __name__ == "__main__":
    main()
