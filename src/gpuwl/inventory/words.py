"""What is said of an inventory, in the chosen language: the verdict, what to ask next, the marks."""

import shlex
from collections.abc import Sequence

from gpuwl.inventory import document, stranded, sums
from gpuwl.inventory.model import Inventory, Use
from gpuwl.texts import text

NAMED = 2
"""Nodes that a sentence names."""


def headline(found: Inventory, use: Use | None = None) -> str:
    """Say the verdict in one sentence."""
    if not any(node.supplies for node in found.in_view()) and not found.queues:
        return text("inventory.none", nodes=len(found.nodes))
    if not found.knows_pods:
        return text("inventory.headline_unknown")
    verdicts = stranded.stranded(found, use)
    if not verdicts:
        return text("inventory.headline_none")
    first = verdicts[0]
    free = sum(idle.free for idle in first.idle)
    return counted(
        "inventory.headline_stranded",
        first.pods,
        asked=first.asked,
        resource=first.resource,
        free=free,
    )


def counted(key: str, pods: int, **values: object) -> str:
    """Return a text that counts Pods: that of one Pod has a key of its own."""
    return text(f"{key}_one" if pods == 1 else key, pods=pods, **values)


def sentences(one: stranded.Stranded) -> list[str]:
    """Say of a queue what stands idle meanwhile, and what is free under its own name."""
    waits = counted(
        "inventory.stranded", one.pods, asked=one.asked, resource=one.resource, idle=_idle(one)
    )
    own = text("inventory.stranded_own", free=one.own, resource=one.resource) if one.own else ""
    return [line for line in (waits, own) if line]


def _idle(one: stranded.Stranded) -> str:
    parts = [
        text(
            "inventory.idle_one" if idle.free == 1 else "inventory.idle",
            free=idle.free,
            resource=idle.resource,
            nodes=", ".join(idle.nodes[:NAMED]) + (" …" if len(idle.nodes) > NAMED else ""),
        )
        for idle in one.idle
    ]
    return "; ".join(parts)


def figures(row: sums.ResourceRow | sums.NodeRow) -> str:
    """Say in one line what is there, held, free and asked for."""
    if row.used is None:
        amount = text("inventory.unknown") if row.advertised is None else row.advertised
        return text("inventory.figures_unknown", advertised=amount)
    parts = [text("inventory.figures", used=row.used, advertised=row.advertised, free=row.free)]
    if row.closed:
        parts.append(text("inventory.figures_closed", closed=row.closed))
    if row.over:
        parts.append(text("inventory.figures_over", over=row.over))
    if isinstance(row, sums.ResourceRow) and row.waiting:
        parts.append(counted("inventory.figures_waiting", row.waiting, asked=row.asked))
    return " · ".join(parts)


def place_command(one: stranded.Stranded, options: Sequence[str]) -> str | None:
    """Return the command that asks the scheduler what a move would change."""
    if one.move is None:
        return None
    return shlex.join(["gpuwl", "place", "--move", one.move, *options])


def mark_words(found: Inventory) -> list[tuple[str, list[str]]]:
    """Return each mark's words with the nodes that carry it."""
    return [
        (text(f"inventory.mark_{mark}"), nodes) for mark, nodes in document.marked(found).items()
    ]


def notes(found: Inventory) -> list[str]:
    """Return what is to be told once."""
    told = []
    if not found.knows_pods:
        told.append(text("inventory.note_no_pods"))
    strays = sum(share.pods for share in found.strays.values())
    if strays:
        told.append(text("inventory.note_strays", pods=strays))
    if found.unclaimed:
        told.append(text("inventory.note_claims_unknown", pods=found.unclaimed))
    if found.refused:
        told.append(text("inventory.note_no_slices", reason=found.refused))
    return told
