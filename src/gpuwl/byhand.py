"""The kubectl lines that several steps share in `gpuwl explain` and `--dry-run`."""

from gpuwl import manifests
from gpuwl.names import NAMESPACE, LabPod


def pod_lines(lab_pod: LabPod, *, wait: str = "condition=PodScheduled") -> str:
    """Return the lines that write a Pod's manifest, apply it and wait for the scheduler."""
    manifest = manifests.to_yaml(manifests.pod(lab_pod))
    return (
        f"mkdir -p out k8s\n"
        f"cat > {lab_pod.manifest} <<'MANIFEST'\n{manifest}MANIFEST\n"
        f"kubectl apply -f {lab_pod.manifest}\n"
        f"kubectl wait -n {NAMESPACE} pod/{lab_pod.name} --for={wait} --timeout=30s\n"
    )


def node_line(lab_pod: LabPod) -> str:
    """Return the command that prints `NODE=` and where the Pod is."""
    return f"echo NODE=$({_read(lab_pod, '{.spec.nodeName}')})"


def resource_line(lab_pod: LabPod) -> str:
    """Return the command that prints `RESOURCE=` and what the Pod is limited to."""
    template = (
        "{{range $name, $amount := (index .spec.containers 0).resources.limits}}{{$name}}{{end}}"
    )
    read = f"kubectl get pod -n {NAMESPACE} {lab_pod.name} -o go-template='{template}'"
    return f"echo RESOURCE=$({read})"


def _read(lab_pod: LabPod, template: str) -> str:
    return f"kubectl get pod -n {NAMESPACE} {lab_pod.name} -o jsonpath='{template}'"
