"""The sums once more, written without a look at the program: slow, whole lists, plain rules.

The rule of requests is https://kubernetes.io/docs/concepts/workloads/pods/sidecar-containers/
#resource-sharing-within-containers: the larger of (all containers and sidecars) and (the largest init
container beside the sidecars before it), and overhead.
"""

import math
from decimal import Decimal
from typing import Any

Item = dict[str, Any]
SUFFIXES = {"m": Decimal("0.001"), "k": Decimal(1000), "": Decimal(1)}


def number(quantity: object) -> int:
    text = str(quantity)
    suffix = text[-1] if text[-1] in "mk" else ""
    return math.ceil(Decimal(text.removesuffix(suffix)) * SUFFIXES[suffix])


def of_container(container: Item, name: str) -> int:
    resources = container.get("resources", {})
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    return number(requests[name] if name in requests else limits.get(name, 0))


def of_pod(pod: Item, name: str) -> int:
    spec = pod["spec"]
    running = sum(of_container(one, name) for one in spec["containers"])
    beside, highest = 0, 0
    for one in spec.get("initContainers", []):
        mine = of_container(one, name)
        highest = max(highest, beside + mine)
        if one.get("restartPolicy") == "Always":
            beside += mine
    return max(running + beside, highest) + number(spec.get("overhead", {}).get(name, 0))


def counted(pod: Item) -> bool:
    return pod["status"]["phase"] not in ("Succeeded", "Failed")


def advertised(node: Item, name: str) -> int:
    status = node["status"]
    amounts = status["allocatable"] if "allocatable" in status else status["capacity"]
    return number(amounts.get(name, 0))


def takes_pods(node: Item) -> bool:
    ready = all(
        one["status"] == "True"
        for one in node["status"].get("conditions", [])
        if one["type"] == "Ready"
    )
    return ready and not node["spec"].get("unschedulable")


def row(nodes: list[Item], pods: list[Item], name: str) -> dict[str, int]:
    """Return the figures of one resource."""
    there = [one for one in pods if counted(one)]
    waiting = [
        one
        for one in there
        if not one["spec"].get("nodeName") and "deletionTimestamp" not in one["metadata"]
    ]
    asked = [amount for one in waiting if (amount := of_pod(one, name))]
    figures = dict.fromkeys(["advertised", "requested", "used", "free", "closed", "largest"], 0)
    for node in nodes:
        have = advertised(node, name)
        want = sum(
            of_pod(one, name)
            for one in there
            if one["spec"].get("nodeName") == node["metadata"]["name"]
        )
        left = max(0, have - want)
        figures["advertised"] += have
        figures["requested"] += want
        figures["used"] += min(have, want)
        figures["free" if takes_pods(node) else "closed"] += left
        if takes_pods(node):
            figures["largest"] = max(figures["largest"], left)
    return {
        **figures,
        "nodes": sum(advertised(node, name) > 0 for node in nodes),
        "waiting": len(asked),
        "asked": sum(asked),
    }
