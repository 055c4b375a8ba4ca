"""What review keeps of nodes and of the Pods on them: enough to say which nodes would take a Pod.

A set of nodes is an integer with a bit for each node, in the dump's order, so that thousands of
workloads are compared with thousands of nodes in no time.
"""

import bisect
import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator

from gpuwl.k8s import pods
from gpuwl.k8s.names import is_extended
from gpuwl.k8s.objects import Object, phase_of
from gpuwl.k8s.pods import Amount, mapping

Nodes = int
"""A set of nodes, one bit each."""
Taint = tuple[str, str, str]
"""Key, value, effect."""

UNSCHEDULABLE: Taint = ("node.kubernetes.io/unschedulable", "", "NoSchedule")
"""What spec.unschedulable means to the scheduler."""
HARD = ("NoSchedule", "NoExecute")
_OVER = ("Succeeded", "Failed")


class NodeIndex:
    """The nodes in view, by label, taint and amount; empty where none were given (`seen`)."""

    def __init__(self) -> None:
        self.seen = False
        self.pods_seen = False
        self.names: list[str] = []
        self.numbers: dict[str, int] = {}
        self._labels: dict[str, dict[str, list[int]]] = {}
        self._taints: dict[Taint, list[int]] = defaultdict(list)
        self._allocatable: dict[str, dict[int, Amount]] = defaultdict(dict)
        self._used: dict[str, dict[int, Amount]] = defaultdict(dict)

    def add(self, node: Object) -> None:
        """Take a node's name, labels, taints and allocatable (capacity where it has none)."""
        metadata, spec, status = (mapping(node.get(key)) for key in ("metadata", "spec", "status"))
        number = len(self.names)
        self.seen = True
        self.names.append(pods.text(metadata.get("name")))
        self.numbers[self.names[-1]] = number
        for key, value in mapping(metadata.get("labels")).items():
            self._labels.setdefault(key, {}).setdefault(str(value), []).append(number)
        for taint in _taints(spec):
            self._taints[taint].append(number)
        for name, amount in pods.rounded(pods.amounts(_amounts(status))).items():
            self._allocatable[name][number] = amount

    def add_pod(self, pod: Object) -> None:
        """Count what a Pod holds on its node until it has run its course."""
        self.pods_seen = True
        spec = mapping(pod.get("spec"))
        number = self.numbers.get(pods.text(spec.get("nodeName")))
        if number is None or phase_of(pod) in _OVER:
            return
        for name, amount in {**pods.requests(spec), "pods": 1}.items():
            held = self._used[name]
            held[number] = held.get(number, 0) + amount

    @functools.cached_property
    def all(self) -> Nodes:
        """Every node."""
        return (1 << len(self.names)) - 1

    @functools.cached_property
    def advertised(self) -> dict[str, Nodes]:
        """The extended resources of which some node has more than none, and which nodes."""
        found = {name: self.with_amount(name, 1) for name in self._allocatable if is_extended(name)}
        return {name: nodes for name, nodes in found.items() if nodes}

    def with_amount(self, name: str, amount: Amount) -> Nodes:
        """Return the nodes that have this much allocatable."""
        return self._having(name, free=False).at_least(amount)

    def with_free(self, name: str, amount: Amount) -> Nodes:
        """Return the nodes of which the Pods in view leave this much."""
        return self._having(name, free=True).at_least(amount)

    def without(self, name: str) -> Nodes:
        """Return the nodes that do not say how much of a resource they have."""
        return self.all & ~_set(self._allocatable.get(name, {}))

    def most(self, name: str, nodes: Nodes) -> Amount:
        """Return the most that one of these nodes has of a resource."""
        amounts = self._allocatable.get(name, {})
        return max((amount for number, amount in amounts.items() if nodes >> number & 1), default=0)

    def room(self, name: str, amount: Amount, nodes: Nodes) -> int:
        """Return how many Pods that ask for this much fit on these nodes, other Pods left aside."""
        amounts = self._allocatable.get(name, {})
        return int(sum(have // amount for number, have in amounts.items() if nodes >> number & 1))

    @functools.cache  # noqa: B019 - an index lives as long as the command
    def _having(self, name: str, *, free: bool) -> "_Steps":
        amounts = self._allocatable.get(name, {})
        if not free:
            return _Steps(amounts)
        used = self._used.get(name, {})
        return _Steps({number: have - used.get(number, 0) for number, have in amounts.items()})

    @functools.cache  # noqa: B019
    def labelled(self, key: str, value: str) -> Nodes:
        """Return the nodes with this label."""
        return _set(self._labels.get(key, {}).get(value, ()))

    @functools.cache  # noqa: B019
    def with_label(self, key: str) -> Nodes:
        """Return the nodes with any value of this label."""
        return _set(number for numbers in self._labels.get(key, {}).values() for number in numbers)

    def values(self, key: str) -> list[str]:
        """Return the values that a label has somewhere."""
        return list(self._labels.get(key, {}))

    def label_keys(self) -> list[str]:
        """Return the keys of all labels."""
        return list(self._labels)

    @functools.cached_property
    def taints(self) -> dict[Taint, Nodes]:
        """The taints that keep Pods away, and which nodes have them."""
        return {taint: _set(numbers) for taint, numbers in self._taints.items()}

    def listed(self, nodes: Nodes, most: int = 3) -> str:
        """Return the number of nodes and the first names: `3 nodes (a, b, …)`."""
        found = [name for number, name in enumerate(self.names) if nodes >> number & 1]
        more = ", …" if len(found) > most else ""
        return f"{many(len(found), 'node')} ({', '.join(found[:most])}{more})"


def many(number: int, noun: str) -> str:
    """Return a number with its noun: `1 node`, `2 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def size(nodes: Nodes) -> int:
    """Return how many nodes a set holds."""
    return nodes.bit_count()


class _Steps:
    """Nodes in the order of what they have, with the set of those that have at least as much."""

    def __init__(self, amounts: dict[int, Amount]) -> None:
        by_amount: dict[Amount, list[int]] = defaultdict(list)
        for number, amount in amounts.items():
            by_amount[amount].append(number)
        self._amounts = sorted(by_amount)
        self._sets: list[Nodes] = []
        nodes = 0
        for amount in reversed(self._amounts):
            nodes |= _set(by_amount[amount])
            self._sets.append(nodes)
        self._sets.reverse()

    def at_least(self, amount: Amount) -> Nodes:
        place = bisect.bisect_left(self._amounts, amount)
        return self._sets[place] if place < len(self._sets) else 0


def _set(numbers: Iterable[int]) -> Nodes:
    numbers = list(numbers)
    if not numbers:
        return 0
    bits = bytearray(max(numbers) // 8 + 1)
    for number in numbers:
        bits[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(bits, "little")


def _amounts(status: Object) -> Object:
    found = status.get("allocatable")
    return mapping(status.get("capacity") if found is None else found)


def _taints(spec: Object) -> Iterator[Taint]:
    found = spec.get("taints")
    for taint in found if isinstance(found, list) else ():
        words = [pods.text(mapping(taint).get(key)) for key in ("key", "value", "effect")]
        if words[2] in HARD:
            yield words[0], words[1], words[2]
    if spec.get("unschedulable") is True:
        yield UNSCHEDULABLE
