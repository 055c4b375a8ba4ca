"""The whole lab through the installed program on the real control plane."""

from pathlib import Path

import pytest

from gpuwl.cluster import Cluster
from tests.conftest import Run

pytestmark = pytest.mark.cluster

EXPECTED = {
    "out/01-nodes.txt": "lab-node-0 container\nlab-node-1 vm-passthrough\nlab-node-2 vm-vgpu\n",
    "out/03-resources.txt": "lab-node-0 nvidia.com/gpu 4\nlab-node-1 nvidia.com/GA102GL_A10 2\n"
    "lab-node-2 nvidia.com/NVIDIA_A10-12Q 4\n",
    "out/04-container.txt": "NODE=lab-node-0\n",
    "out/05-passthrough.txt": "NODE=lab-node-1\nRESOURCE=nvidia.com/GA102GL_A10\n",
    "out/06-placement.txt": "job-container lab-node-0\nvmi-passthrough lab-node-1\n"
    "vmi-vgpu lab-node-2\n",
    "out/consistency.txt": "OK=3\n",
}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_run_writes_every_file(name: str, cluster: Cluster, gpuwl: Run, root: Path) -> None:
    done = gpuwl("run", "--all")
    assert done.returncode == 0, done.stderr
    assert (root / name).read_text() == EXPECTED[name]
