"""Whether a cluster could hold an object at all, for objects that no API server has judged.

It looks at what people get wrong in dumps that they edit: names, labels, taints, quantities, and
numbers in the place of strings. Rules: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/ and
https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/.
"""

import functools
import re
from collections.abc import Iterable, Iterator

from gpuwl.checker import Number
from gpuwl.k8s import quantity
from gpuwl.k8s.objects import Object

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
WORD = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)")
REMEMBERED = 4096
"""Keys and amounts that were judged: the nodes of one cluster have few of each."""
EFFECTS = frozenset({"NoSchedule", "PreferNoSchedule", "NoExecute"})


def complaint(item: Object) -> str | None:
    """Return what is wrong with an object, None where nothing is seen."""
    return next(_complaints(item), None)


def _complaints(item: Object) -> Iterator[str]:
    metadata = item["metadata"]
    name = metadata.get("name")
    if not isinstance(name, str) or len(name) > 253 or not SUBDOMAIN.fullmatch(name):
        yield f"{name!r} is not a valid name"
    yield from _labels(metadata.get("labels") or {})
    if item["kind"] == "Node":
        yield from _taints((item.get("spec") or {}).get("taints") or ())
    yield from _amounts(_resources(item))


def _labels(labels: object) -> Iterator[str]:
    if not isinstance(labels, dict):
        yield "its labels are not an object"
        return
    for key, value in labels.items():
        if not is_key(key):
            yield f"{key!r} is not a label key"
        elif isinstance(value, Number) or not isinstance(value, str):
            yield f"the label {key} is {value!r}, and label values are strings"
        elif value and not WORD.fullmatch(value):
            yield f"{value!r} of the label {key} is not a label value"


@functools.lru_cache(REMEMBERED)
def is_key(key: str) -> bool:
    """Tell whether a text is a qualified name, as labels, taints and resources have."""
    prefix, slash, word = key.rpartition("/")
    return bool(WORD.fullmatch(word)) and (not slash or bool(SUBDOMAIN.fullmatch(prefix)))


def _taints(taints: object) -> Iterator[str]:
    for taint in taints if isinstance(taints, list | tuple) else (taints,):
        if not isinstance(taint, dict) or not is_key(str(taint.get("key"))):
            yield f"{taint!r} is not a taint"
        elif taint.get("effect") not in EFFECTS:
            yield f"the taint {taint['key']} has the effect {taint.get('effect')!r}"


def _resources(item: Object) -> Iterator[tuple[str, object]]:
    """Yield where amounts stand in an object, and what stands there."""
    status, spec = item.get("status") or {}, item.get("spec") or {}
    if item["kind"] == "Node":
        yield from ((field, status.get(field)) for field in ("capacity", "allocatable"))
    if item["kind"] == "Pod":
        for container in [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]:
            resources = container.get("resources") or {}
            yield from ((field, resources.get(field)) for field in ("limits", "requests"))
        yield "overhead", spec.get("overhead")


def _is_amount(value: object) -> bool:
    return _is_amount_text(str(value)) if isinstance(value, str) else _judged(value)


def _judged(value: object) -> bool:
    found = quantity.amount(value)
    return found is not None and found >= 0


_is_amount_text = functools.lru_cache(REMEMBERED)(_judged)


def _amounts(resources: Iterable[tuple[str, object]]) -> Iterator[str]:
    for field, amounts in resources:
        if isinstance(amounts, dict):
            for name, value in amounts.items():
                if not _is_amount(value):
                    yield f"{value!r} of {name} in its {field} is not a quantity of zero or more"
        elif amounts is not None:
            yield f"its {field} is not an object"
