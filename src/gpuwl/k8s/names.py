"""Names of extended resources: what is one, what kind it is, and which known one a typo stands for.

The kinds are the checker's (`kind_of`); the published vGPU types are data beside this module, from
the example configuration of NVIDIA's vgpu-device-manager, and so are pci.ids' names of cards.
"""

import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import resources

from gpuwl.checker import KIND_MODEL, KIND_PROFILE, PREFIX, kind_of

VGPU_PREFIXES = ("NVIDIA_", "GRID_")
"""What stands before a vGPU type in its resource name; the second is the older spelling."""
SUGGESTED = 3
_LONGEST = 100  # characters of a name that are compared
_PROFILE = re.compile(r"(?P<board>.+?)-(?P<slices>\d-)?(?P<size>\d+)(?P<series>[A-Z]\w*)\Z")
_QUALIFIED = re.compile(
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z"
)
"""https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set"""
_DEVICE_ID = re.compile(r"[0-9a-f]{4}\Z")
_STANDARD = ("cpu", "memory", "ephemeral-storage", "storage")


def is_extended(name: str) -> bool:
    """Tell whether a resource is one that nodes advertise under a name of their own."""
    return "/" in name and not name.partition("/")[0].endswith("kubernetes.io")


def is_standard(name: str) -> bool:
    """Tell whether a name without a domain is one of Kubernetes' own for containers."""
    return name in _STANDARD or name.startswith("hugepages-")


def is_qualified(name: str) -> bool:
    """Tell whether the API server takes a name for a resource with a domain."""
    return bool(_QUALIFIED.match(name)) and len(name.partition("/")[0]) <= 253


@functools.cache
def models() -> dict[str, str]:
    """Return the names that device ids of NVIDIA's cards get, by id: `2236` is `GA102GL_A10`.

    From pci.ids of April 2023, written as NVIDIA's KubeVirt device plugin writes them.
    """
    file = resources.files(__package__).joinpath("device-ids.txt")
    lines = file.read_text(encoding="ascii").splitlines()
    return {device: model for device, _, model in (line.partition(" ") for line in lines)}


@functools.cache
def vgpu_types() -> frozenset[str]:
    """Return the published vGPU types, such as `A10-12Q`."""
    file = resources.files(__package__).joinpath("vgpu-types.txt")
    return frozenset(file.read_text(encoding="ascii").split())


def short(name: str) -> str:
    """Return a name without its domain, however the domain was misspelt, doubled or left out."""
    return name[:_LONGEST].rpartition("/")[2].removeprefix("nvidia.com.")


def sizes_of(name: str) -> list[str]:
    """Return the published profiles of the same card and series as a profile's name."""
    wanted = _profile(name)
    if wanted is None:
        return []
    board, slices, _, series = wanted
    same = [(found, _profile(found)) for found in vgpu_types()]
    return sorted(
        (found for found, parts in same if parts and (parts[0], parts[1], parts[3]) == (board, slices, series)),
        key=lambda found: (len(found), found),
    )  # fmt: skip


def is_published(name: str) -> bool:
    """Tell whether a vGPU profile's name is that of a published type."""
    return _type(name) in vgpu_types()


def _type(name: str) -> str:
    found = short(name)
    prefix = next((each for each in VGPU_PREFIXES if found.upper().startswith(each)), "")
    return found[len(prefix) :]


def _profile(name: str) -> tuple[str, str, str, str] | None:
    """Return card, slices, size and series of a profile's name: ("A100", "1-", "5", "CME")."""
    match = _PROFILE.match(_type(name))
    if match is None:
        return None
    return match["board"], match["slices"] or "", match["size"], match["series"]


@dataclass(frozen=True)
class Near:
    """A known name that another may stand for, and how the two differ."""

    name: str
    why: str


def near(name: str, known: Iterable[str]) -> list[Near]:
    """Return known names that a name may stand for, at most SUGGESTED, the likeliest first.

    By the mistakes that people make, and only where there is none of those by edit distance; never
    a far-fetched one.
    """
    others = sorted(other for other in set(known) - {name} if _may_be_meant(name, other))
    for why, is_near in _MISTAKES:
        found = [other for other in others if is_near(name, other)]
        if found:
            return [Near(other, why) for other in found[:SUGGESTED]]
    return []


def _may_be_meant(name: str, other: str) -> bool:
    """Tell whether the domains are the same, or one is left out, cut short, doubled or misspelt."""
    domain, meant = name[:_LONGEST].rpartition("/")[0].lower(), other.partition("/")[0]
    vendor = meant.partition(".")[0]
    return vendor in domain or not domain or distance(domain, meant) <= 2


def _fold(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _same_but_domain(name: str, other: str) -> bool:
    return short(name) == short(other)


def _same_but_case(name: str, other: str) -> bool:
    return short(name).lower() == short(other).lower()


def _same_letters(name: str, other: str) -> bool:
    return _fold(short(name)) == _fold(short(other))


def _same_type(name: str, other: str) -> bool:
    """NVIDIA_A10-12Q, GRID_A10-12Q and A10-12Q are one type."""
    return _fold(_type(name)) == _fold(_type(other)) and kind_of(other) == KIND_PROFILE


def _other_series(name: str, other: str) -> bool:
    one, two = _profile(name), _profile(other)
    return one is not None and two is not None and one[:3] == two[:3]


def _no_series(name: str, other: str) -> bool:
    """NVIDIA_A10-12 for NVIDIA_A10-12Q."""
    two = _profile(other)
    return two is not None and _fold(_type(name)) == _fold("".join(two[:3]))


def _other_size(name: str, other: str) -> bool:
    one, two = _profile(name), _profile(other)
    return one is not None and two is not None and (one[0], one[3]) == (two[0], two[3])


def _id_of_model(name: str, other: str) -> bool:
    """Tell whether one is an id: a plugin whose pci.ids lacks a card advertises that."""
    one, two = short(name), short(other)
    ids = [each for each in (one.lower(), two.lower()) if _DEVICE_ID.match(each)]
    return any(models().get(each) in (one.upper(), two.upper()) for each in ids)


def _same_words(name: str, other: str) -> bool:
    """GH100_H200_141GB for GH100_H200_SXM_141GB: words of the same model left out."""
    if not kind_of(name) == kind_of(other) == KIND_MODEL:
        return False
    one, two = (set(re.split(r"[^A-Z0-9]+", short(each).upper())) for each in (name, other))
    fewer = min(one, two, key=len)
    is_model = len(fewer) > 1 or any(re.search(r"[A-Z]\d", word) for word in fewer)
    return is_model and (one < two or two < one)


def _few_edits(name: str, other: str) -> bool:
    one, two = short(name).lower(), short(other).lower()
    most = 1 if len(one) < 9 else 2
    if kind_of(name) != kind_of(other) and one.rstrip("s") != two:
        return False
    return abs(len(one) - len(two)) <= most and _differs_in_letters(one, two, most)


def _differs_in_letters(one: str, two: str, most: int) -> bool:
    """Tell whether two names are that close, and not by a figure: an A40 is no misspelt A10."""
    return re.sub(r"\D", "", one) == re.sub(r"\D", "", two) and distance(one, two) <= most


def distance(one: str, two: str) -> int:
    """Return how many characters to insert, drop, change or swap make one text the other."""
    before: list[int] = []
    row = list(range(len(two) + 1))
    for i, character in enumerate(one, start=1):
        previous, row = row, [i]
        for j, other in enumerate(two, start=1):
            cost = min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (character != other))
            if before and j > 1 and character == two[j - 2] and one[i - 2] == other:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before = previous
    return row[-1]


_MISTAKES: tuple[tuple[str, Callable[[str, str], bool]], ...] = (
    (f"the domain is not {PREFIX.rstrip('/')}", _same_but_domain),
    ("the case differs", _same_but_case),
    ("hyphens, underscores or blanks differ", _same_letters),
    ("the same vGPU type in another spelling", _same_type),
    ("the series letter differs", _other_series),
    ("the series letter is missing", _no_series),
    ("the size differs", _other_size),
    ("one is the PCI id of the other", _id_of_model),
    ("words of the model are left out", _same_words),
    ("a few characters differ", _few_edits),
)
"""Ways in which a name goes wrong, the likeliest first."""
