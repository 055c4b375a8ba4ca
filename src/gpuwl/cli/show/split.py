"""The lab's result: what each step found, and the split as a picture. Read from the files alone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpuwl.cli.show import layout
from gpuwl.lab.artifacts import Artifacts
from gpuwl.lab.names import CONTAINER, JOB_CROSS, LABEL_KEY, VM_PASSTHROUGH, VM_VGPU
from gpuwl.texts import text

BOXES = ("■", "□")
PLAIN_BOXES = ("#", ".")
"""Held and free, where the output's encoding has no boxes."""
MOST_BOXES = 16
STYLES = {CONTAINER: "green", VM_PASSTHROUGH: "magenta", VM_VGPU: "cyan"}
"""By use, on a terminal."""


@dataclass(frozen=True)
class Row:
    """One node: label value, resource and amount, and which Pods of the lab hold a slot of it."""

    node: str
    label: str
    resource: str
    amount: int
    pods: tuple[str, ...]


def found(slug: str, artifacts: Artifacts) -> list[str]:
    """Return what a step found, as short facts such as `lab-node-0 -> container`."""
    read = _FOUND.get(slug)
    return read(artifacts) if read else []


def rows(artifacts: Artifacts) -> list[Row]:
    """Return the split; nothing where the files of steps 1, 3 and 6 are not there."""
    labels = dict(_words(artifacts, "out/01-nodes.txt"))
    placed = _words(artifacts, "out/06-placement.txt")
    return [
        Row(node, labels.get(node, ""), resource, int(amount), _holders(placed, node))
        for node, resource, amount in _words(artifacts, "out/03-resources.txt")
        if amount.isdigit()
    ]


def waiting(artifacts: Artifacts) -> dict[str, str] | None:
    """Return the Pod of step 7 that waits: name, what it asks for, where, the scheduler's words."""
    cross = _values(artifacts, "out/07-cross.txt")
    if cross.get("NODE") != "none":
        return None
    return {
        "pod": JOB_CROSS.name,
        "resource": JOB_CROSS.resource,
        "selector": f"{LABEL_KEY}={JOB_CROSS.selects}",
        "message": cross.get("MESSAGE", ""),
    }


def data(artifacts: Artifacts) -> dict[str, Any]:
    """Return the split as the JSON document has it."""
    nodes = [{**vars(row), "pods": list(row.pods)} for row in rows(artifacts)]
    return {"nodes": nodes, "waiting": waiting(artifacts)}


def picture(artifacts: Artifacts) -> list[tuple[str, str]]:
    """Return the split as lines with their styles: a box a slot, who holds it, who waits for what."""
    table = rows(artifacts)
    if not table:
        return []
    head = tuple(text(f"lab.column_{name}") for name in ("node", "label", "resource", "slots"))
    body = [
        (row.node, row.label, row.resource, f"{_boxes(row)} {', '.join(row.pods)}") for row in table
    ]
    styles = ["bold", *(STYLES.get(row.label, "") for row in table)]
    return [*zip(layout.columns([head, *body]), styles, strict=True), *_queue(artifacts)]


def _queue(artifacts: Artifacts) -> list[tuple[str, str]]:
    waits = waiting(artifacts)
    if waits is None:
        return []
    words = text(
        "lab.waits", pod=waits["pod"], resource=waits["resource"], selector=waits["selector"]
    )
    return [(line, "yellow") for line in layout.line(words)]


def _boxes(row: Row) -> str:
    held, free = BOXES if layout.can_show("".join(BOXES)) else PLAIN_BOXES
    taken = min(len(row.pods), row.amount)
    if row.amount > MOST_BOXES:
        return f"{taken}/{row.amount}"
    return held * taken + free * (row.amount - taken)


def _holders(placed: list[list[str]], node: str) -> tuple[str, ...]:
    return tuple(words[0] for words in placed if words[1:] == [node])


def _words(artifacts: Artifacts, relative: str) -> list[list[str]]:
    path = artifacts.path(relative)
    lines = path.read_text(errors="replace").splitlines() if path.is_file() else []
    return [line.split() for line in lines]


def _values(artifacts: Artifacts, relative: str) -> dict[str, str]:
    path = artifacts.path(relative)
    lines = path.read_text(errors="replace").splitlines() if path.is_file() else []
    return {key: value for key, _, value in (line.partition("=") for line in lines)}


def _arrows(relative: str) -> Callable[[Artifacts], list[str]]:
    return lambda artifacts: [" -> ".join(words) for words in _words(artifacts, relative)]


def _resources(artifacts: Artifacts) -> list[str]:
    return [
        f"{n}: {name}={amount}" for n, name, amount in _words(artifacts, "out/03-resources.txt")
    ]


def _placed(pod: str, relative: str) -> Callable[[Artifacts], list[str]]:
    return lambda artifacts: [f"{pod} -> {_values(artifacts, relative).get('NODE', '?')}"]


def _refused(artifacts: Artifacts) -> list[str]:
    waits = waiting(artifacts)
    return [text("lab.no_node", pod=waits["pod"], message=waits["message"])] if waits else []


def _lines(relative: str) -> Callable[[Artifacts], list[str]]:
    return lambda artifacts: [" ".join(words) for words in _words(artifacts, relative)]


def _operands(artifacts: Artifacts) -> list[str]:
    counted = _values(artifacts, "out/operands.txt")
    return [
        text("lab.operands", value=value, count=len(names.split(",")))
        for value, names in list(counted.items())[:3]
    ]


_FOUND: dict[str, Callable[[Artifacts], list[str]]] = {
    "labels": _arrows("out/01-nodes.txt"),
    "operands": _operands,
    "resources": _resources,
    "container": _placed("job-container", "out/04-container.txt"),
    "passthrough": _placed("vmi-passthrough", "out/05-passthrough.txt"),
    "vgpu": _arrows("out/06-placement.txt"),
    "cross": _refused,
    "consistency": _lines("out/consistency.txt"),
}
