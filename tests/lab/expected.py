"""What the lab writes on a cluster that has its three nodes and nothing else, to the byte."""

MESSAGE_OF_1_37 = (
    "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) didn't match Pod's node "
    "affinity/selector. preemption: 0/3 nodes are available: 3 Preemption is not helpful for "
    "scheduling."
)

_MANIFEST = """\
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: gpu-vm
spec:
{selector}  containers:
  - name: cuda
    image: nvcr.io/nvidia/cuda:12.4.1-base-ubuntu22.04
    resources:
      limits:
        {resource}: 1
"""
_SELECTOR = "  nodeSelector:\n    nvidia.com/gpu.workload.config: vm-passthrough\n"


def _manifest(name: str, resource: str, selector: str = "") -> str:
    return _MANIFEST.format(name=name, resource=resource, selector=selector)


MANIFESTS = {
    "k8s/pod-container.yaml": _manifest("job-container", "nvidia.com/gpu"),
    "k8s/pod-passthrough.yaml": _manifest("vmi-passthrough", "nvidia.com/GA102GL_A10"),
    "k8s/pod-vgpu.yaml": _manifest("vmi-vgpu", "nvidia.com/NVIDIA_A10-12Q"),
    "k8s/pod-cross.yaml": _manifest("job-cross", "nvidia.com/gpu", _SELECTOR),
}

FILES = {
    "out/01-nodes.txt": "lab-node-0 container\nlab-node-1 vm-passthrough\nlab-node-2 vm-vgpu\n",
    "out/operands.txt": (
        "container=datacenter-driver,container-toolkit,device-plugin,dcgm-exporter\n"
        "vm-passthrough=vfio-manager,sandbox-device-plugin\n"
        "vm-vgpu=vgpu-manager,vgpu-device-manager,sandbox-device-plugin\n"
        "NO_LABEL=container\n"
        "ENABLE_FLAG=sandboxWorkloads.enabled\n"
    ),
    "out/03-resources.txt": (
        "lab-node-0 nvidia.com/gpu 4\n"
        "lab-node-1 nvidia.com/GA102GL_A10 2\n"
        "lab-node-2 nvidia.com/NVIDIA_A10-12Q 4\n"
    ),
    "out/04-container.txt": "NODE=lab-node-0\n",
    "out/05-passthrough.txt": "NODE=lab-node-1\nRESOURCE=nvidia.com/GA102GL_A10\n",
    "out/06-placement.txt": (
        "job-container lab-node-0\nvmi-passthrough lab-node-1\nvmi-vgpu lab-node-2\n"
    ),
    "out/consistency.txt": "OK=3\n",
    **MANIFESTS,
}
"""All but `out/07-cross.txt`, whose message differs between versions of Kubernetes, the dump, the
checker and `out/run.json`."""

OF_STEP = {
    1: ("out/01-nodes.txt",),
    2: ("out/operands.txt",),
    3: ("out/03-resources.txt",),
    4: ("k8s/pod-container.yaml", "out/04-container.txt"),
    5: ("k8s/pod-passthrough.yaml", "out/05-passthrough.txt"),
    6: ("k8s/pod-vgpu.yaml", "out/06-placement.txt"),
    7: ("k8s/pod-cross.yaml", "out/07-cross.txt"),
    8: ("out/nodes.json", "bin/check-config.sh", "out/consistency.txt"),
}
EVERY_FILE = {"out/run.json", *(name for names in OF_STEP.values() for name in names)}


def cross(message: str) -> str:
    """Return out/07-cross.txt with the scheduler's message in it."""
    return f"PHASE=Pending\nNODE=none\nMESSAGE={message}\n"
