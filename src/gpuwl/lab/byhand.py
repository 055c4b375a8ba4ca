"""The lab by hand: shell lines with kubectl, for `gpuwl explain` and `--dry-run`.

Plain POSIX shell. A command substitution stands alone in an assignment, because `set -e` sees a
failure only there, and values are printed with printf, because echo reads backslashes in dash.
"""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuwl.lab import manifests
from gpuwl.lab.names import NAMESPACE, LabPod
from gpuwl.lab.step import Nodes, Step


@dataclass(frozen=True)
class Surroundings:
    """Where a script runs: root, and the lines that make kubectl speak to the target."""

    root: Path
    target: Sequence[str]


_NOTE = (
    "# What this script does is outside gpuwl's journal: gpuwl reset does not take it back.",
    "# The rights of docs/clusterrole.yaml suffice for it, where the namespace is there.",
)


def script(steps: Iterable[Step], nodes: Nodes, around: Surroundings) -> str:
    """Return one shell script that does by hand what the steps do."""
    root = shlex.quote(str(around.root))
    head = ["#!/bin/sh", *_NOTE, "set -eu", *around.target, f"mkdir -p {root}", f"cd {root}"]
    parts = ["\n".join(head) + "\n"]
    parts += [f"# Step {s.number}: {s.english_title}\n{s.by_hand(nodes)}" for s in steps]
    return "\n".join(parts)


def pod_lines(lab_pod: LabPod, *, wait: str = "condition=PodScheduled") -> str:
    """Return the lines that write a Pod's manifest, make the Pod and wait for the scheduler.

    A Pod of an earlier attempt goes first, since what a Pod asks for cannot be changed.
    """
    manifest = manifests.to_yaml(manifests.pod(lab_pod))
    return (
        "mkdir -p out k8s\n"
        f"cat > {lab_pod.manifest} <<'MANIFEST'\n{manifest}MANIFEST\n"
        f"kubectl delete pod -n {NAMESPACE} {lab_pod.name} --ignore-not-found --force "
        "--grace-period=0\n"
        f"kubectl apply -f {lab_pod.manifest}\n"
        f"kubectl wait -n {NAMESPACE} pod/{lab_pod.name} --for={wait} --timeout=30s\n"
    )


def read(variable: str, lab_pod: LabPod, template: str) -> str:
    """Return the line that reads one field of a Pod (jsonpath) into a shell variable."""
    return f"{variable}=$(kubectl get pod -n {NAMESPACE} {lab_pod.name} -o jsonpath='{template}')"


def read_resource(variable: str, lab_pod: LabPod) -> str:
    """Return the lines that read the names in a Pod's limits into a shell variable."""
    template = (
        "{{range $name, $amount := (index .spec.containers 0).resources.limits}}{{$name}}{{end}}"
    )
    return (
        f"{variable}=$(kubectl get pod -n {NAMESPACE} {lab_pod.name} \\\n"
        f"  -o go-template='{template}')"
    )


def listing(kubectl: str, line: str, output: str) -> str:
    """Return the lines that write one sorted line for each object; `line` is jsonpath for one."""
    return (
        f"lines=$({kubectl} \\\n"
        f"  -o jsonpath='{{range .items[*]}}{line}{{\"\\n\"}}{{end}}')\n"
        f"printf '%s\\n' \"$lines\" | LC_ALL=C sort > {output}\n"
    )


def write(output: str, **values: str) -> str:
    """Return the line that writes `KEY=value` lines; the values are shell words."""
    words = " ".join(f'"{key}={value}"' for key, value in values.items())
    return f"printf '%s\\n' {words} > {output}\n"
