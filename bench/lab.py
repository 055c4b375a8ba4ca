#!/usr/bin/env python3
"""Wall time of `gpuwl run --all` on a running control plane against the lab by hand with kubectl.

    bench/lab.py [ROUNDS]

Both sides run in turn on one local control plane that this program starts and stops. Before each
measurement the Pods are deleted, so that both have to place them. Prints the medians in seconds and
their ratio; the limit is 0.26.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BIN = Path(sys.executable).parent
HERE = Path(__file__).parent
LIMIT = 0.26


def seconds(command: list[str | Path], environment: dict[str, str]) -> float:
    """Return the wall time of a command that has to succeed."""
    began = time.perf_counter()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def measure(rounds: int, folder: Path) -> tuple[list[float], list[float]]:
    """Return the times of both sides, the hand first."""
    environment = {
        **os.environ,
        "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
        "XDG_STATE_HOME": str(folder / "state"),
    }
    gpuwl = [str(BIN / "gpuwl"), "-q"]
    subprocess.run([*gpuwl, "local", "up"], env=environment, check=True, stdout=sys.stderr)
    path = subprocess.run(
        [*gpuwl, "local", "kubeconfig"], env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()
    environment["KUBECONFIG"] = path
    by_hand: list[float] = []
    by_gpuwl: list[float] = []
    try:
        for turn in range(rounds + 1):  # the first turn warms both up and does not count
            hand = seconds([HERE / "baselines/kubectl-lab.sh", folder / "hand"], environment)
            forget(environment)
            ours = seconds([*gpuwl, "run", "--all", "--root", folder / "gpuwl"], environment)
            forget(environment)
            if turn:
                by_hand.append(hand)
                by_gpuwl.append(ours)
    finally:
        subprocess.run([*gpuwl, "local", "down"], env=environment, check=True, stdout=sys.stderr)
    return by_hand, by_gpuwl


def forget(environment: dict[str, str]) -> None:
    """Delete the lab's Pods."""
    command = "kubectl delete pods -n gpu-vm --all --force --grace-period=0 --wait=false"
    subprocess.run(command.split(), env=environment, check=True, capture_output=True)


def main() -> None:
    """Measure, print, and fail above the limit."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory(prefix="bench-lab-") as folder:
        by_hand, by_gpuwl = measure(rounds, Path(folder))
    hand, ours = statistics.median(by_hand), statistics.median(by_gpuwl)
    print(f"kubectl by hand   {hand:6.3f} s  (median of {rounds})")
    print(f"gpuwl run --all   {ours:6.3f} s")
    print(f"ratio             {ours / hand:6.3f}    (limit {LIMIT})")
    sys.exit(ours / hand > LIMIT)


if __name__ == "__main__":
    main()
