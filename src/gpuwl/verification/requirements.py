"""The requirements of the exercise, by stable id: `SLUG.NAME`, the slug being the step's."""

from collections.abc import Mapping
from types import MappingProxyType

from gpuwl.texts import text
from gpuwl.verification.grading import grade

_POD = ("manifest", "pod", "placement", "file")
_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "labels": ("namespace", "folders", "nodes", "file"),
        "operands": (
            "container", "vm-passthrough", "vm-vgpu", "no-label", "enable-flag", "file"
        ),
        "resources": ("nodes", "file"),
        "container": _POD,
        "passthrough": _POD,
        "vgpu": _POD,
        "cross": ("manifest", "pod", "refusal", "file"),
        "consistency": ("lab", "dump", "script", *grade.ALL_PARTS, "file"),
    }
)  # fmt: skip


def of(slug: str) -> tuple[str, ...]:
    """Return the ids of a step's requirements, in order."""
    return tuple(f"{slug}.{name}" for name in _NAMES[slug])


def in_words(requirement: str) -> str:
    """Return what a requirement asks for, in the reader's language."""
    slug, _, name = requirement.partition(".")
    group = slug if slug in {"operands", "consistency", "labels", "resources"} else "pod"
    return text(f"verify.asks_{group}_{name.replace('-', '_')}")
