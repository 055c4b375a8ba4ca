"""The rule once more, from the specification and not from the checker: slow, plain, in one piece.

It takes decoded JSON that is a dump of nodes. What is no dump is not its business.
"""

import fnmatch
import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

KEY = "nvidia.com/gpu.workload.config"
PROFILE = re.compile(r".*-[0-9]+(?:[A-Z]|[A-Z](?:ME|NOME|MEALL|GFX)|B4)", re.DOTALL)
SLICE = re.compile(r"nvidia\.com/(?:gpu\.shared|mig-.*)", re.DOTALL)
QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))"
    r"(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?",
)


def fits(label: str, name: str) -> bool:
    profile, part = PROFILE.fullmatch(name), SLICE.fullmatch(name)
    if label == "container":
        return name == "nvidia.com/gpu"
    if label == "vm-vgpu":
        return profile is not None and part is None
    if label == "vm-passthrough":
        return not (profile or part or name == "nvidia.com/gpu")
    return False


def counts(quantity: object) -> bool:
    if quantity in (None, ""):
        return False
    match = QUANTITY.fullmatch(str(quantity))
    # 1Ki is spelt with a capital, 1k without.
    if match is None or match[0].endswith("K") or isinstance(quantity, (bool, list, dict)):
        return True
    return Decimal(match["number"]) != 0


def agrees(
    label: object,
    status: dict[str, dict[str, object]],
    accept: Sequence[tuple[str, str]],
    ignore: Sequence[str],
) -> bool:
    advertised = status.get("allocatable")
    if advertised is None:
        advertised = status.get("capacity") or {}
    names = [
        name
        for name, quantity in advertised.items()
        if name.startswith("nvidia.com/")
        and counts(quantity)
        and not any(fnmatch.fnmatchcase(name, pattern) for pattern in ignore)
    ]
    if label not in ("container", "vm-passthrough", "vm-vgpu") or not names:
        return False
    accepted = [pattern for value, pattern in accept if value == label]
    left = [n for n in names if not any(fnmatch.fnmatchcase(n, p) for p in accepted)]
    return left == [] or (len(left) == 1 and fits(str(label), left[0]))


def is_node(item: dict[str, Any]) -> bool:
    return item.get("kind") in (None, "Node")


def flat(value: Any) -> list[dict[str, Any]]:
    """Return what lies in lists, bare ones and objects, however deep; a list of Pods is a Pod."""
    if isinstance(value, list):
        return [item for one in value for item in flat(one)]
    if value.get("kind") in ("List", "NodeList") or set(value) == {"items"}:
        return flat(value["items"])
    return [value]


def verdict(
    document: Any,
    accept: Sequence[tuple[str, str]] = (),
    ignore: Sequence[str] = (),
) -> tuple[int, list[str]]:
    """Return exit code and lines, each MISMATCH line without its reason."""
    items = document.get("items", [document]) if isinstance(document, dict) else document
    judged = 0
    bad = []
    found = flat(items)
    if found and not any(is_node(item) for item in found):
        return 2, []
    for item in filter(is_node, found):
        label = (item["metadata"].get("labels") or {}).get(KEY)
        if label is None:
            continue
        judged += 1
        if not agrees(label, item.get("status") or {}, accept, ignore):
            bad.append(f"MISMATCH={item['metadata']['name']}")
    return (1, bad) if bad else (0, [f"OK={judged}"])
