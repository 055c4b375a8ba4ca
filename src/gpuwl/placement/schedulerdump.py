"""What kube-scheduler writes into its log on SIGUSR2: its queue, and each node as it knows it.

The form is that of https://pkg.go.dev/k8s.io/kubernetes/pkg/scheduler/backend/cache/debugger.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

_QUEUE = re.compile(rb"activeQ:(\d+); backoffQ:(\d+); unschedulable\w*:(\d+)")
_NODE = re.compile(
    r"Node name: (?P<name>\S+)\n\s*Deleted: (?P<deleted>\w+)\n"
    r"\s*Requested Resources: &(?P<requested>\{.*\})\n\s*Allocatable Resources:\s*&(?P<allocatable>\{.*\})"
)
_AMOUNT = re.compile(r"([^\s\[\]{}]+):(-?\d+)")
_NAMES = {
    "MilliCPU": "cpu",
    "Memory": "memory",
    "EphemeralStorage": "ephemeral-storage",
    "AllowedPodNumber": "pods",
}


@dataclass(frozen=True)
class Room:
    """What a node offers and what of it is taken, by resource: cpu in thousandths, all else in units."""

    allocatable: dict[str, int]
    requested: dict[str, int]


@dataclass(frozen=True)
class Dump:
    """One look into the scheduler: how many Pods are in its queues, and its nodes by name."""

    active: int
    backoff: int
    waiting: int
    nodes: dict[str, Room] = field(default_factory=dict)


def find(log: Path, offset: int) -> Dump | None:
    """Return the first whole dump behind an offset of the log, None where there is none yet."""
    with log.open("rb") as file:
        file.seek(offset)
        data = file.read()
    queue = _QUEUE.search(data)
    if queue is None:
        return None
    active, backoff, waiting = (int(number) for number in queue.groups())
    text = data[: queue.start()].decode(errors="replace")
    nodes = {
        found["name"]: Room(_amounts(found["allocatable"]), _amounts(found["requested"]))
        for found in _NODE.finditer(text)
        if found["deleted"] == "false"
    }
    return Dump(active, backoff, waiting, nodes)


def _amounts(text: str) -> dict[str, int]:
    text = text.replace("ScalarResources:map[", " ")
    found = {name: int(amount) for name, amount in _AMOUNT.findall(text)}
    return {_NAMES.get(name, name): amount for name, amount in found.items()}
