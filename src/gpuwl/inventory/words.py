"""What is said of an inventory, in the chosen language: the verdict, what to ask next, the marks."""

import shlex
from collections.abc import Sequence

from gpuwl.inventory import document, stranded
from gpuwl.inventory.model import Inventory, Use
from gpuwl.texts import text

NAMED = 3
"""Nodes that a sentence names."""


def headline(found: Inventory, use: Use | None = None) -> str:
    """Say the verdict in one sentence."""
    if not any(node.supplies for node in found.in_view()) and not found.queues:
        return text("inventory.none", nodes=len(found.nodes))
    if not found.knows_pods:
        return text("inventory.headline_unknown")
    verdicts = stranded.stranded(found, use)
    return sentences(verdicts[0])[0] if verdicts else text("inventory.headline_none")


def sentences(one: stranded.Stranded) -> list[str]:
    """Say of a queue what stands idle meanwhile, and what is free under its own name."""
    waits = text(
        "inventory.stranded", pods=one.pods, asked=one.asked, resource=one.resource, idle=_idle(one)
    )
    own = text("inventory.stranded_own", free=one.own, resource=one.resource) if one.own else ""
    return [line for line in (waits, own) if line]


def _idle(one: stranded.Stranded) -> str:
    parts = [
        text(
            "inventory.idle",
            free=idle.free,
            resource=idle.resource,
            nodes=", ".join(idle.nodes[:NAMED]) + (" …" if len(idle.nodes) > NAMED else ""),
        )
        for idle in one.idle
    ]
    return "; ".join(parts)


def place_command(one: stranded.Stranded, options: Sequence[str]) -> str | None:
    """Return the command that asks the scheduler what a move would change."""
    if one.move is None:
        return None
    return shlex.join(["gpuwl", "place", "--move", one.move, *options])


def mark_words(found: Inventory) -> list[tuple[str, list[str]]]:
    """Return each mark's words with the nodes that carry it."""
    return [(text(f"inventory.mark_{mark}"), nodes) for mark, nodes in document.marked(found).items()]


def notes(found: Inventory) -> list[str]:
    """Return what is to be told once."""
    told = [text(f"inventory.{key}", **values) for key, values in found.notes]
    if not found.knows_pods:
        told.append(text("inventory.note_no_pods"))
    strays = sum(share.pods for share in found.strays.values())
    if strays:
        told.append(text("inventory.note_strays", pods=strays))
    return told
