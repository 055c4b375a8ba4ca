"""The lab's names: nodes, resources, Pods, files. What the checker needs too comes from there."""

from dataclasses import dataclass

from gpuwl.checker import CONTAINER, GPU, LABEL_KEY, PREFIX, VM_PASSTHROUGH, VM_VGPU

__all__ = ["CONTAINER", "GPU", "LABEL_KEY", "PREFIX", "VM_PASSTHROUGH", "VM_VGPU"]

NAMESPACE = "gpu-vm"
IMAGE = "nvcr.io/nvidia/cuda:12.4.1-base-ubuntu22.04"
CONTAINER_NAME = "cuda"

DEVICE_MODEL = "nvidia.com/GA102GL_A10"
VGPU_PROFILE = "nvidia.com/NVIDIA_A10-12Q"


@dataclass(frozen=True)
class LabNode:
    """One of the lab's three nodes, with the label value and the resource it is to advertise.

    `amount` is a Kubernetes quantity as a string ("4").
    """

    name: str
    value: str
    resource: str
    amount: str


@dataclass(frozen=True)
class LabPod:
    """One of the lab's four Pods; `manifest` is its file's path below the root."""

    name: str
    manifest: str
    resource: str
    selects: str | None = None


NODE_NAMES = ("lab-node-0", "lab-node-1", "lab-node-2")

JOB_CONTAINER = LabPod("job-container", "k8s/pod-container.yaml", GPU)
VMI_PASSTHROUGH = LabPod("vmi-passthrough", "k8s/pod-passthrough.yaml", DEVICE_MODEL)
VMI_VGPU = LabPod("vmi-vgpu", "k8s/pod-vgpu.yaml", VGPU_PROFILE)
JOB_CROSS = LabPod("job-cross", "k8s/pod-cross.yaml", GPU, selects=VM_PASSTHROUGH)
PODS = (JOB_CONTAINER, VMI_PASSTHROUGH, VMI_VGPU, JOB_CROSS)


def lab_nodes(names: tuple[str, str, str] | None = None) -> tuple[LabNode, LabNode, LabNode]:
    """Return the three nodes in the order container, vm-passthrough, vm-vgpu; None: the lab's own."""
    names = names or NODE_NAMES
    return (
        LabNode(names[0], CONTAINER, GPU, "4"),
        LabNode(names[1], VM_PASSTHROUGH, DEVICE_MODEL, "2"),
        LabNode(names[2], VM_VGPU, VGPU_PROFILE, "4"),
    )
