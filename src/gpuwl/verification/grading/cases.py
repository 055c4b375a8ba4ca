"""The rule of step 8 as cases: for each part of it dumps made anew, and the answer to each.

What the exercise leaves open is in no case: names of container slices on passthrough nodes, nodes
without allocatable that have capacity, quantities other than whole numbers.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gpuwl.lab.names import CONTAINER, GPU, LABEL_KEY, VM_PASSTHROUGH, VM_VGPU
from gpuwl.verification.grading import dumps
from gpuwl.verification.grading.dumps import Maker, Node

USES = (CONTAINER, VM_PASSTHROUGH, VM_VGPU)


@dataclass(frozen=True)
class Case:
    """A dump and the answer to it.

    `part` is the part of the rule that it asks for. `nodes` are empty and `content` is no dump where
    nothing can be judged; without `content` there is no file.
    """

    part: str
    content: bytes | None
    nodes: tuple[Node, ...] = ()

    @property
    def is_dump(self) -> bool:
        """Tell whether there is anything to judge."""
        return bool(self.nodes)

    @property
    def bad(self) -> tuple[str, ...]:
        """The nodes that disagree."""
        return tuple(node.name for node in self.nodes if node.fits is False)

    @property
    def judged(self) -> int:
        """The number of labelled nodes."""
        return sum(node.fits is not None for node in self.nodes)

    def only(self, names: Sequence[str]) -> "Case":
        """Return the same case with these nodes alone."""
        left = tuple(node for node in self.nodes if node.name in names)
        return Case(self.part, dumps.pretty(left), left)


Dumps = Iterator[Sequence[Node]]


def _container(make: Maker) -> Dumps:
    words = make.words
    yield [
        make.good(CONTAINER),
        make.bad(CONTAINER, words.device()),
        make.bad(CONTAINER, words.profile()),
        make.good(CONTAINER),
    ]


def _passthrough(make: Maker) -> Dumps:
    words = make.words
    yield [
        *(make.good(VM_PASSTHROUGH, name) for name in (words.device(), *words.devices())),
        make.bad(VM_PASSTHROUGH, GPU),
        make.bad(VM_PASSTHROUGH, words.profile()),
    ]


def _vgpu(make: Maker) -> Dumps:
    words = make.words
    yield [
        make.good(VM_VGPU),
        *(make.bad(VM_VGPU, name) for name in (GPU, words.device(), *words.devices())),
    ]


def _gpu_alone(make: Maker) -> Dumps:
    names = make.words.almost_gpu()
    yield [make.good(CONTAINER), *(make.bad(CONTAINER, name) for name in names)]
    yield [make.good(VM_VGPU), *(make.bad(VM_VGPU, name) for name in names)]


def _profile(make: Maker) -> Dumps:
    names = make.words.profiles()
    yield [make.good(VM_VGPU, name) for name in names]
    yield [make.good(VM_PASSTHROUGH), *(make.bad(VM_PASSTHROUGH, name) for name in names)]


def _near_profile(make: Maker) -> Dumps:
    names = make.words.near_profiles()
    yield [make.good(VM_PASSTHROUGH, name) for name in names]
    yield [make.good(VM_VGPU), *(make.bad(VM_VGPU, name) for name in names)]


def _zero(make: Maker) -> Dumps:
    words = make.words
    device, profile = words.device(), words.profile()
    beside = [
        make.node(CONTAINER, {GPU: words.amount(), device: "0"}, fits=True),
        make.node(VM_PASSTHROUGH, {device: words.amount(), GPU: "0"}, fits=True),
        make.node(VM_VGPU, {profile: words.amount(), device: "0", GPU: "0"}, fits=True),
    ]
    yield beside
    yield [
        make.node(CONTAINER, {GPU: "0"}, fits=False),
        make.node(VM_PASSTHROUGH, {device: "0"}, fits=False),
        make.node(VM_VGPU, {profile: "0"}, fits=False),
        make.node(VM_VGPU, {profile: "0", GPU: words.amount()}, fits=False),
        make.good(VM_PASSTHROUGH),
    ]


def _nothing(make: Maker) -> Dumps:
    yield [*(make.bad(use) for use in USES), make.good(CONTAINER)]


def _several(make: Maker) -> Dumps:
    """Yield the right name first and second, in the file and in the alphabet, and two right ones."""
    words = make.words
    device, profile = words.device(), words.profile()
    other_device, other_profile = words.devices()[0], "nvidia.com/A_FIRST-8Q"
    yield [
        make.bad(CONTAINER, GPU, device),
        make.bad(CONTAINER, GPU, profile),
        make.bad(CONTAINER, GPU, "nvidia.com/zz_LAST"),
        make.bad(VM_PASSTHROUGH, device, GPU),
        make.bad(VM_PASSTHROUGH, device, profile),
        make.bad(VM_PASSTHROUGH, device, other_device),
        make.bad(VM_VGPU, profile, GPU),
        make.bad(VM_VGPU, profile, device),
        make.bad(VM_VGPU, profile, other_profile),
        make.bad(VM_VGPU, other_profile, device),
        make.good(VM_VGPU),
    ]


def _vendors(make: Maker) -> Dumps:
    words = make.words
    yield [make.good(use, make.good_name(use), *words.foreign()) for use in USES]
    yield [
        make.good(VM_PASSTHROUGH),
        *(make.bad(CONTAINER, name) for name in ("amd.com/gpu", "xnvidia.com/gpu")),
        *(make.bad(VM_PASSTHROUGH, name) for name in words.foreign()[:4]),
        make.bad(VM_VGPU, words.foreign()[2]),
    ]


def _amounts(make: Maker) -> Dumps:
    amounts = ("1", "100", "10", str(make.rng.randrange(11, 99)))
    yield [make.node(use, {make.good_name(use): q}, fits=True) for use in USES for q in amounts]


def _allocatable(make: Maker) -> Dumps:
    words = make.words
    device, profile = words.device(), words.profile()
    yield [
        make.node(CONTAINER, {GPU: "4"}, fits=True, capacity={GPU: "4", device: "2"}),
        make.good(VM_PASSTHROUGH, device, annotations={"example.org/seen": f"{GPU}=4 {profile}=2"}),
        make.good(VM_VGPU, profile, labels={GPU: "present", device: "2"}),
    ]
    yield [
        make.node(CONTAINER, {}, fits=False, capacity={GPU: "4"}),
        make.node(VM_PASSTHROUGH, {}, fits=False, capacity={device: "2"}),
        make.node(VM_VGPU, {GPU: "1"}, fits=False, capacity={profile: "2"}),
        make.good(CONTAINER),
    ]


def _unlabelled(make: Maker) -> Dumps:
    words = make.words
    free = [
        make.unlabelled(),
        make.unlabelled(GPU),
        make.unlabelled(GPU, words.device()),
        make.unlabelled(words.profile(), annotations={LABEL_KEY: CONTAINER}),
        make.unlabelled(labels={"example.org/gpu.workload.config": CONTAINER, "use": VM_VGPU}),
    ]
    yield [*free, make.good(CONTAINER), make.good(VM_VGPU)]
    yield [make.unlabelled(words.device()), make.bad(CONTAINER, words.device())]


def _values(make: Maker) -> Dumps:
    name = {CONTAINER: GPU, VM_PASSTHROUGH: make.words.device(), VM_VGPU: make.words.profile()}
    wrong = {
        CONTAINER: ("Container", "containers", "", "container-vm"),
        VM_PASSTHROUGH: ("vm_passthrough", "VM-Passthrough", "vm-passthru", "passthrough"),
        VM_VGPU: ("vm-gpu", "VM-vGPU", "vgpu", "vm-vgpu2"),
    }
    nodes = [make.bad(value, name[use]) for use, values in wrong.items() for value in values]
    yield [make.good(VM_VGPU), *nodes]
    yield [make.good(CONTAINER), make.bad("", make.words.device())]


def _gaps(make: Maker) -> Dumps:
    """Yield nodes without labels, allocatable or status at all, among others."""
    no_labels, no_allocatable, no_status = (
        make.unlabelled(GPU),
        make.unlabelled(),
        make.unlabelled(),
    )
    del no_labels.body["metadata"]["labels"]
    _take(no_allocatable)
    del no_status.body["status"]
    yield [make.good(CONTAINER), no_labels, no_allocatable, no_status, make.good(VM_PASSTHROUGH)]
    empty = make.bad(VM_VGPU)
    _take(empty)
    yield [make.good(CONTAINER), empty, make.good(VM_PASSTHROUGH)]


def _take(node: Node) -> None:
    del node.body["status"]["allocatable"], node.body["status"]["capacity"]


def _count(make: Maker) -> Dumps:
    yield [make.unlabelled(), make.unlabelled(GPU), make.unlabelled()]
    yield [make.good(make.rng.choice(USES))]
    yield [make.good(make.rng.choice(USES)) for _ in range(5)]


def _every_node(make: Maker) -> Dumps:
    """Yield one that disagrees as the first, the last and in the middle; all; and many nodes."""
    for place in (0, 4, 2):
        nodes = [make.good(make.rng.choice(USES)) for _ in range(5)]
        nodes[place] = make.bad(CONTAINER, make.words.device())
        yield _in_order(nodes)
    yield [make.bad(CONTAINER, make.words.device()), make.bad(VM_VGPU, GPU), make.bad(VM_VGPU)]
    many = [make.good(make.rng.choice(USES)) for _ in range(make.rng.randrange(40, 60))]
    yield many
    yield [*many, *(make.bad(VM_PASSTHROUGH, GPU) for _ in range(make.rng.randrange(7, 12)))]


class _in_order(list[Node]):  # noqa: N801 - reads as the word it is
    """Nodes whose order is what the dump is about."""


def _words(make: Maker) -> Dumps:
    """Yield names that hold the words of another use, and names that begin like another one."""
    misleading = {"description": "vm-vgpu container", "example.org/was": VM_PASSTHROUGH}
    nodes = [make.good(use, of_use=True, annotations=misleading) for use in USES]
    yield [*nodes, make.good(VM_VGPU, of_use=True, labels={"gpu-mode": CONTAINER})]
    yield [*nodes, make.bad(VM_VGPU, GPU, of_use=True), make.bad(CONTAINER, labels={"kind": GPU})]


def _form(make: Maker) -> Dumps:
    words = make.words
    yield [*(make.good(use) for use in USES), make.unlabelled(GPU)]
    yield [
        make.good(CONTAINER),
        make.bad(VM_VGPU, words.device()),
        make.bad(CONTAINER, GPU, "nvidia.com/A"),
    ]


PARTS: dict[str, Callable[[Maker], Dumps]] = {
    "every-node": _every_node,
    "container": _container,
    "passthrough": _passthrough,
    "vgpu": _vgpu,
    "gpu-alone": _gpu_alone,
    "profile": _profile,
    "near-profile": _near_profile,
    "zero": _zero,
    "nothing": _nothing,
    "several": _several,
    "vendors": _vendors,
    "amounts": _amounts,
    "allocatable": _allocatable,
    "unlabelled": _unlabelled,
    "values": _values,
    "gaps": _gaps,
    "count": _count,
    "words": _words,
    "form": _form,
}
"""Each part of the rule that dumps of nodes ask for, by its name."""
NO_DUMP = "no-dump"


def cases(seed: int) -> list[Case]:
    """Return all cases; the same seed makes the same ones."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    make = Maker(rng)
    made = [
        one for part, of in PARTS.items() for nodes in of(make) for one in _cases(part, nodes, make)
    ]
    return [*made, *(Case(NO_DUMP, content) for content in (None, b"", _text(make)))]


def _cases(part: str, nodes: Sequence[Node], make: Maker) -> Iterator[Case]:
    ordered = tuple(nodes) if isinstance(nodes, _in_order) else tuple(make.shuffled(nodes))
    forms = (dumps.compact, dumps.reordered) if part == "form" else (dumps.pretty,)
    for form in forms:
        yield Case(part, form(ordered), ordered)


def _text(make: Maker) -> bytes:
    """Return what `kubectl get nodes` prints, which is no JSON."""
    rows = [f"{make.words.node():<30} Ready    <none>   12d   v1.37.2" for _ in range(3)]
    return "\n".join([f"{'NAME':<30} STATUS   ROLES    AGE   VERSION", *rows, ""]).encode()
