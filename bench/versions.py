#!/usr/bin/env python3
"""The scheduler's message of step 7 on each Kubernetes version that can be built.

    bench/versions.py [VERSION ...]

Runs the whole lab on a fresh local control plane of each version, and prints the message that the
scheduler itself gave. The words differ, which is why nothing in the lab depends on them. GPUWL_ASSETS
is left aside: it holds one version.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from gpuwl.controlplane.binaries import build

GPUWL = Path(sys.executable).parent / "gpuwl"


def message(version: str, folder: Path) -> str:
    """Run the lab on one version and return the message of step 7 as its file has it."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GPUWL_")},
        "XDG_STATE_HOME": str(folder / "state"),
    }
    root = folder / version
    lab = ("run", "--all", "--local", "--rm", "--kubernetes-version", version, "--root", root)
    subprocess.run([GPUWL, *lab], env=environment, check=True, stdout=sys.stderr)
    server = json.loads((root / "out/run.json").read_text("utf-8"))
    if version not in json.dumps(server):
        raise SystemExit(f"the run was not on Kubernetes {version}: {root}/out/run.json")
    lines = (root / "out/07-cross.txt").read_text("utf-8").splitlines()
    return next(line.removeprefix("MESSAGE=") for line in lines if line.startswith("MESSAGE="))


def main() -> None:
    """Print version and message for each."""
    with tempfile.TemporaryDirectory() as folder:
        for version in sys.argv[1:] or build.buildable():
            print(f"{version}: {message(version, Path(folder))}", flush=True)


if __name__ == "__main__":
    main()
