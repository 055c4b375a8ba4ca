"""Pod templates in any object, how many Pods each makes, and what a Pod asks of its node.

Templates are found by shape and not by a list of kinds: a Deployment, a RayCluster and an operator's
kind of tomorrow all hold a dictionary with a list `containers`. So are KubeVirt's VMs: a dictionary
with `domain.devices`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeGuard

from gpuwl.k8s import quantity
from gpuwl.k8s.objects import Object

Path = tuple[str | int, ...]

COUNTS = ("replicas", "parallelism", "numNodes", "minReplicas")
"""Fields that say how many Pods a template makes; the first of a dictionary that is a number counts."""
NOT_WALKED = frozenset(
    ("status", "metadata", "openAPIV3Schema", "pattern", "anyPattern", "patchStrategicMerge")
)
"""What holds no template of its own: what was, names, and the schemas and patterns of policies."""
POD_LEVEL = ("cpu", "memory", "hugepages-")
"""Resources that `spec.resources` of a Pod may hold (KEP-2837)."""
DEVICE_LISTS = ("gpus", "hostDevices")

Amount = int | Fraction
Amounts = dict[str, Amount]
Exact = dict[str, Fraction]


@dataclass(frozen=True)
class Template:
    """A Pod's spec (or a VM instance's) in an object.

    `path` leads to the spec, `metadata` is the template's own, `count` how many Pods it makes; a
    DaemonSet makes one on each node (`per_node`). `kind`, `namespace` and `name` are the object's,
    empty where it has none.
    """

    path: Path
    spec: Object
    metadata: Object
    count: int
    per_node: bool
    kind: str
    namespace: str
    name: str


@dataclass(frozen=True)
class Device:
    """One element of a VM's `gpus` or `hostDevices`; `claim` and `request` where DRA gives it."""

    path: Path
    list: str
    name: str
    claim: str
    request: str


def templates(item: Object) -> list[Template]:
    """Return the Pod templates of an object, in its own order."""
    return _found(item, is_pod_spec)


def vm_templates(item: Object) -> list[Template]:
    """Return the VM instances of an object: a VirtualMachine's, …Instance's, …ReplicaSet's, …Pool's."""
    return _found(item, is_vm_spec)


def is_pod_spec(value: Object) -> bool:
    """Tell whether a dictionary has the shape of a Pod's spec."""
    found = value.get("containers")
    return (
        isinstance(found, list)
        and bool(found)
        and all(isinstance(each, dict) and isinstance(each.get("name"), str) for each in found)
    )


def is_vm_spec(value: Object) -> bool:
    """Tell whether a dictionary has the shape of a VirtualMachineInstance's spec."""
    domain = value.get("domain")
    return isinstance(domain, dict) and isinstance(domain.get("devices"), dict)


def vm_devices(spec: Object) -> list[Device]:
    """Return the devices that a VM instance's spec asks for, with their paths within it.

    An instancetype's spec has the same lists without a domain; both are read.
    """
    domain = spec.get("domain")
    devices = domain.get("devices") if isinstance(domain, dict) else None
    start: Path = () if devices is None else ("domain", "devices")
    return list(_devices(spec if devices is None else devices, start))


def _devices(holder: object, start: Path) -> Iterator[Device]:
    for name in DEVICE_LISTS:
        found = mapping(holder).get(name)
        for index, device in enumerate(found if isinstance(found, list) else ()):
            if isinstance(device, dict):
                words = [device.get(key) for key in ("deviceName", "claimName", "requestName")]
                texts = [word if isinstance(word, str) else "" for word in words]
                yield Device((*start, name, index), name, *texts)


def mapping(value: object) -> dict[str, Any]:
    """Return a dictionary, an empty one for anything else: strangers write what they like."""
    return value if isinstance(value, dict) else {}


def _found(item: Object, is_spec: Callable[[Object], bool]) -> list[Template]:
    """Walk without recursion; a spec that was found is not looked into."""
    found = []
    waiting: list[tuple[Path, Any, tuple[Object, ...]]] = [((), item, ())]
    while waiting:
        path, value, above = waiting.pop()
        if isinstance(value, list):
            waiting += [
                ((*path, index), value[index], above) for index in reversed(range(len(value)))
            ]
        elif isinstance(value, dict):
            if path and is_spec(value):
                found.append(_template(item, path, value, above))
                continue
            inner = [key for key in value if key not in NOT_WALKED and _may_hold(value[key])]
            waiting += [((*path, key), value[key], (*above, value)) for key in reversed(inner)]
    return found


def _may_hold(value: object) -> bool:
    return isinstance(value, (dict, list)) and bool(value)


def _template(item: Object, path: Path, spec: Object, above: Sequence[Object]) -> Template:
    metadata = mapping(item.get("metadata"))
    own = above[-1].get("metadata") if path[-1] == "spec" else None
    kind = item.get("kind")
    return Template(
        path,
        spec,
        mapping(own),
        count(path, above),
        kind == "DaemonSet",
        *(text(word) for word in (kind, metadata.get("namespace"), _name(metadata))),
    )


def text(value: object) -> str:
    """Return a string, an empty one for anything else."""
    return value if isinstance(value, str) else ""


def _name(metadata: Object) -> object:
    """Return the name; of one that the server completes, what is there."""
    return metadata.get("name") or metadata.get("generateName")


def count(path: Sequence[str | int], above: Sequence[Object]) -> int:
    """Return how many Pods a template makes: the product of the counts of all that holds it.

    `above` are the dictionaries on the path, outermost first. Three shapes have rules of their own:
    a Job's completions bound its parallelism, a LeaderWorkerSet's group has `size` Pods of which one
    is the leader, a Ray worker of several hosts is that many Pods.
    """
    total = 1
    for holder in above:
        total *= _count_of(holder)
    if "workerTemplate" in path:
        group = next((each for each in above if "workerTemplate" in each), {})
        total *= max(_number(group.get("size"), 1) - 1, 0)
    return total


def _count_of(holder: Object) -> int:
    found = next((_number(holder[key], 1) for key in COUNTS if _is_count(holder.get(key))), 1)
    completions = holder.get("completions")
    if "parallelism" in holder and _is_count(completions):
        found = min(found, completions)
    return found * _number(holder.get("numOfHosts"), 1)


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _number(value: Any, default: int) -> int:  # noqa: ANN401 - whatever stands there
    return value if _is_count(value) else default


def requests(spec: Object) -> Amounts:
    """Return what a Pod asks of a node, by resource name, as the scheduler counts it.

    Containers add up, and sidecars (init containers with restartPolicy Always) with them; an init
    container needs its own amount beside the sidecars started before it, and the largest counts.
    `spec.resources` stands for the sum of what it may name, and overhead comes on top
    (k8s.io/component-helpers/resource, PodRequests). cpu comes in cores, rounded up to thousandths,
    all else rounded up to whole units. Amounts that cannot be read count as none.
    """
    every = [container_requests(each) for each in containers(spec) + sidecars(spec)]
    total = _largest(_sum(every), _init(spec))
    total.update(_pod_level(spec, total))
    return rounded(_sum([total, amounts(mapping(spec.get("overhead")))]))


def rounded(exact: Exact) -> Amounts:
    """Round amounts up as the scheduler does: cpu to thousandths of a core, all else to whole units."""
    return {name: _rounded_up(name, amount) for name, amount in exact.items()}


def _rounded_up(name: str, amount: Fraction) -> Amount:
    return Fraction(math.ceil(amount * 1000), 1000) if name == "cpu" else math.ceil(amount)


def containers(spec: Object, field: str = "containers") -> list[Object]:
    """Return `containers` or `initContainers`, those of them that are dictionaries."""
    found = spec.get(field)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def container_requests(container: Object) -> Exact:
    """Return what one container asks, exactly; a limit without a request is one."""
    return {**_listed(container, "limits"), **_listed(container, "requests")}


def _listed(holder: Object, field: str) -> Exact:
    return amounts(mapping(mapping(holder.get("resources")).get(field)))


def amounts(listed: Object) -> Exact:
    """Return the amounts of a resource list, exactly, without those that cannot be read."""
    found = {name: quantity.amount(value) for name, value in listed.items()}
    return {name: amount for name, amount in found.items() if amount is not None}


def is_sidecar(container: Object) -> bool:
    """Tell whether an init container keeps running beside the others."""
    return container.get("restartPolicy") == "Always"


def sidecars(spec: Object) -> list[Object]:
    """Return the init containers that keep running."""
    return [each for each in containers(spec, "initContainers") if is_sidecar(each)]


def _init(spec: Object) -> Exact:
    """Return the most that is needed at once while the init containers run."""
    most: Exact = {}
    running: Exact = {}
    for container in containers(spec, "initContainers"):
        asked = _sum([running, container_requests(container)])
        most = _largest(most, asked)
        running = asked if is_sidecar(container) else running
    return most


def _pod_level(spec: Object, total: Exact) -> Exact:
    """Return what the Pod's own resources say; of a limit alone, the containers' sum or the limit."""
    limits = {name: total.get(name, limit) for name, limit in _listed(spec, "limits").items()}
    found = {**limits, **_listed(spec, "requests")}
    return {name: amount for name, amount in found.items() if name.startswith(POD_LEVEL)}


def _sum(parts: Sequence[Exact]) -> Exact:
    total: Exact = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, Fraction()) + amount
    return total


def _largest(one: Exact, other: Exact) -> Exact:
    return {
        name: max(one.get(name, Fraction()), other.get(name, Fraction()))
        for name in {**one, **other}
    }
