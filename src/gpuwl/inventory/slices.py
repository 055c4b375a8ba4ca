"""Cards that drivers publish for dynamic resource allocation (DRA), and the claims on them.

A card that is several devices of one slice (type gpu and type vfio at one PCI address) is one card. A
row stands for the classes that a card can serve, joined by ` + `. Sources: the API of
resource.k8s.io/v1, and the attributes of NVIDIA's driver (kubernetes-sigs/dra-driver-nvidia-gpu).
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from gpuwl.inventory.model import Inventory, Mark, Node, Queue, Share, Supply, Use, Workload
from gpuwl.inventory.nodes import part, shown
from gpuwl.k8s.objects import Object

GROUP = "resource.k8s.io"
KINDS = tuple(f"{kind}.{GROUP}" for kind in ("ResourceSlice", "DeviceClass", "ResourceClaim"))
NO_CARDS = "compute-domain.nvidia.com"
"""A driver whose devices are channels between nodes."""
BUS_ID = "resource.kubernetes.io/pciBusID"

_DRIVER = re.compile(r"""device\.driver\s*==\s*(["'])(?P<value>[^"']*)\1""")
_ATTRIBUTE = re.compile(
    r"""device\.attributes\[(["'])(?P<domain>[^"']*)\1\]\.(?P<name>\w+)\s*==\s*"""
    r"""(["'])(?P<value>[^"']*)\4"""
)

Id = tuple[str, str, str]
"""Driver, pool, device."""


@dataclass(frozen=True)
class Device:
    """One device: what it is called, where it is, and its attributes by qualified name."""

    id: Id
    node: str
    attributes: dict[str, str]
    shares_counters: bool

    @property
    def card(self) -> tuple[str, ...]:
        """What all devices of one card have in common."""
        address = self.attributes.get(BUS_ID) or self.attributes.get(f"{self.id[0]}/pciBusID")
        return (self.node, address) if address else self.id


@dataclass
class Claims:
    """Devices, classes and claims as they come in; `settle` makes rows of them.

    `waiting` has what the claims without an allocation ask for, as slots by class.
    """

    pools: dict[tuple[str, str], tuple[int, list[Device]]] = field(default_factory=dict)
    classes: dict[str, Callable[[Device], bool] | None] = field(default_factory=dict)
    held: dict[Id, Workload] = field(default_factory=dict)
    waiting: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    claims_seen: bool = False

    def add(self, item: Object) -> None:
        """Add a ResourceSlice, DeviceClass or ResourceClaim."""
        kind, metadata, spec = item.get("kind"), part(item, "metadata"), part(item, "spec")
        if kind == "ResourceSlice":
            self._add_slice(spec)
        elif kind == "DeviceClass":
            self.classes[shown(metadata.get("name"))] = _matcher(spec)
        elif kind == "ResourceClaim":
            self.claims_seen = True
            self._add_claim(metadata, spec, part(part(item, "status"), "allocation"))

    def _add_slice(self, spec: Object) -> None:
        driver, pool = str(spec.get("driver")), part(spec, "pool")
        if not driver.endswith("nvidia.com") or driver == NO_CARDS:
            return
        key, generation = (driver, str(pool.get("name"))), int(pool.get("generation") or 0)
        known, devices = self.pools.get(key, (generation, []))
        if generation < known:
            return  # of an older generation, which the newer one replaces
        fresh = devices if generation == known else []
        fresh += [_device(key, spec, one) for one in _dicts(spec.get("devices"))]
        self.pools[key] = generation, fresh

    def _add_claim(self, metadata: Object, spec: Object, allocation: Object) -> None:
        namespace, name = shown(metadata.get("namespace") or "default"), shown(metadata.get("name"))
        if not allocation:
            asked = dict(_asked(part(spec, "devices")))
            self.waiting[namespace, name] = asked
            return
        for one in _dicts(part(allocation, "devices").get("results")):
            if not one.get("adminAccess"):
                key = tuple(str(one.get(word)) for word in ("driver", "pool", "device"))
                self.held[key[0], key[1], key[2]] = Workload(namespace, f"ResourceClaim/{name}")

    def settle(self, found: Inventory) -> None:
        """Add a row's supplies to each node, after all Nodes and before the Pods."""
        cards: dict[tuple[str, ...], list[Device]] = defaultdict(list)
        for _, devices in self.pools.values():
            for device in devices:
                cards[device.card].append(device)
        for devices in cards.values():
            self._put(found, devices)
        for node in found.nodes.values():
            if _advertises_twice(found, node):
                node.marks.add(Mark.TWICE)

    def _put(self, found: Inventory, devices: list[Device]) -> None:
        name = self._row(devices)
        found.uses[name] = Use.DRA
        where = devices[0].node
        node = found.nodes.setdefault(where, Node(where or "(any node)"))
        supply = node.supplies.setdefault(name, Supply(0, 0 if self.claims_seen else None))
        several = any(device.shares_counters for device in devices)
        supply.advertised = None if several or supply.advertised is None else supply.advertised + 1
        holder = next((self.held[one.id] for one in devices if one.id in self.held), None)
        if holder and supply.requested is not None:
            supply.requested += 1
            share = supply.holders.setdefault(holder, Share())
            share.pods, share.slots = 1, share.slots + 1

    def _row(self, devices: list[Device]) -> str:
        names = [
            name
            for name, matches in sorted(self.classes.items())
            if matches and any(matches(device) for device in devices)
        ]
        return " + ".join(names) or shown(devices[0].id[0])

    def wait(self, found: Inventory, pod: Object, workload: Workload) -> bool:
        """Put a Pod without a node into the queues of its claims; False: they are not in view."""
        namespace = workload.namespace
        known = True
        for claim in _claims_of(pod):
            asked = self.waiting.get((namespace, claim))
            known = known and asked is not None
            for name, slots in (asked or {}).items():
                row = self._row_of(found, name)
                found.uses.setdefault(row, Use.DRA)
                queue = found.queues.setdefault((row, workload), Queue())
                queue.pods += 1
                queue.slots += slots
                asked[name] = 0  # type: ignore[index] # Pods that share a claim ask for it once
        return known

    @staticmethod
    def _row_of(found: Inventory, name: str) -> str:
        rows = [row for row, use in found.uses.items() if use is Use.DRA]
        return next((row for row in rows if name in row.split(" + ")), name)


def _device(key: tuple[str, str], spec: Object, item: Object) -> Device:
    """Read a device of v1, or of v1beta1, where `basic` holds what is said of it."""
    body = part(item, "basic") or item
    attributes = {
        name if "/" in name else f"{key[0]}/{name}": str(next(iter(value.values())))
        for name, value in part(body, "attributes").items()
        if isinstance(value, dict) and value
    }
    counters = bool(body.get("consumesCounters"))
    node = spec.get("nodeName")
    return Device((*key, str(item.get("name"))), shown(node) if node else "", attributes, counters)


def _matcher(spec: Object) -> Callable[[Device], bool] | None:
    """Return what tells whether a device is of a class; None where its CEL is more than equations."""
    terms = [
        term.strip()
        for one in _dicts(spec.get("selectors"))
        for term in str(part(one, "cel").get("expression")).split("&&")
    ]
    equations = [_equation(term) for term in terms]
    known = [one for one in equations if one is not None]
    if len(known) < len(equations) or not known:
        return None
    return lambda device: all(
        (device.id[0] if name is None else device.attributes.get(name)) == value
        for name, value in known
    )


def _equation(term: str) -> tuple[str | None, str] | None:
    if found := _DRIVER.fullmatch(term):
        return None, found["value"]
    if found := _ATTRIBUTE.fullmatch(term):
        return f"{found['domain']}/{found['name']}", found["value"]
    return None


def _asked(devices: Object) -> Iterator[tuple[str, int]]:
    """Yield class and number of each request; of alternatives the first, as the scheduler tries it."""
    for request in _dicts(devices.get("requests")):
        first = next(iter(_dicts(request.get("firstAvailable"))), None)
        body = part(request, "exactly") or first or request
        if body.get("deviceClassName"):
            yield shown(body["deviceClassName"]), int(body.get("count") or 1)


def _claims_of(pod: Object) -> Iterable[str]:
    """Yield the names of a Pod's claims; one from a template has its name in the status."""
    made = {
        one.get("name"): one.get("resourceClaimName")
        for one in _dicts(part(pod, "status").get("resourceClaimStatuses"))
    }
    for one in _dicts(part(pod, "spec").get("resourceClaims")):
        yield shown(one.get("resourceClaimName") or made.get(one.get("name")))


def _advertises_twice(found: Inventory, node: Node) -> bool:
    """Tell whether both a device plugin and DRA offer the node's cards."""
    offered = {
        found.uses[name] is Use.DRA
        for name, supply in node.supplies.items()
        if supply.advertised != 0 and found.uses[name] is not Use.UNKNOWN
    }
    return len(offered) == 2


def _dicts(value: Any) -> list[Object]:  # noqa: ANN401 - strangers write what they like
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
