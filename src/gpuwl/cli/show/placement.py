"""Rendering of `gpuwl place`: where each Pod goes, why not elsewhere, before against after."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gpuwl.placement.world import label_of

if TYPE_CHECKING:
    from gpuwl.cli.console import Reporter
    from gpuwl.placement.arena import Outcome
    from gpuwl.placement.reasons import Group, Why
    from gpuwl.placement.session import Side
    from gpuwl.placement.suggestions import Suggestion
    from gpuwl.placement.whatif import Change

SHOWN = 3
"""Names of nodes that a group shows."""


def data(before: "Side", after: "Side | None", changes: "Sequence[Change]") -> dict[str, Any]:
    """Return what the JSON document shows."""
    return {
        "before": _side(before),
        "changes": [str(change) for change in changes],
        "after": _side(after) if after else None,
    }


def _side(side: "Side") -> dict[str, Any]:
    return {
        "pods": [_pod(side, outcome) for outcome in side.outcomes],
        "resources": [
            {"name": name, "allocatable": most, "requested": taken, "free": most - taken}
            for name, (most, taken) in side.free.items()
        ],
    }


def _pod(side: "Side", outcome: "Outcome") -> dict[str, Any]:
    label = label_of(outcome.pod)
    namespace, _, name = label.partition("/")
    why = side.why.get(label)
    return {
        "namespace": namespace,
        "name": name,
        "node": outcome.node,
        "message": outcome.message or None,
        "evicted": label in side.evicted,
        "preempts": {"node": outcome.preempts, "pods": list(outcome.victims)}
        if outcome.preempts
        else None,
        "reasons": [_group(group) for group in why.groups] if why else None,
        "exact": why.exact if why else None,
    }


def _group(group: "Group") -> dict[str, Any]:
    return {
        "count": len(group.nodes),
        "nodes": list(group.nodes),
        "reasons": list(group.reasons),
        "change": group.change,
        "option": group.option,
        "tried": group.tried,
        "hint": group.hint,
    }


def show(
    reporter: "Reporter", before: "Side", after: "Side | None", changes: "Sequence[Change]"
) -> None:
    """Print the answer for people."""
    if after is None:
        _show_side(reporter, before)
        return
    _show_side(reporter, before, why=False)
    reporter.result(f"after {' '.join(str(change) for change in changes)}:")
    _show_side(reporter, after)
    _show_difference(reporter, before, after)


def _show_side(reporter: "Reporter", side: "Side", *, why: bool = True) -> None:
    names = _names(side)
    shown: set[int] = set()
    for outcome in sorted(side.outcomes, key=lambda one: names[label_of(one.pod)]):
        label = label_of(outcome.pod)
        reporter.result(f"{names[label]} {outcome.node or f'none {outcome.message}'.rstrip()}")
        if outcome.preempts:
            victims = ", ".join(outcome.victims) or "other Pods"
            reporter.detail(f"  it would preempt on {outcome.preempts}: {victims}")
        found = side.why.get(label) if why else None
        if found is not None and id(found) not in shown:
            shown.add(id(found))
            _show_why(reporter, found)


def _names(side: "Side") -> dict[str, str]:
    """Return what to call each Pod: by its name alone where all are in one namespace."""
    labels = [label_of(one.pod) for one in side.outcomes]
    alone = len({label.partition("/")[0] for label in labels}) == 1
    return {label: label.partition("/")[2] if alone else label for label in labels}


def _show_why(reporter: "Reporter", why: "Why") -> None:
    if not why.exact:
        reporter.detail("  which node has which reason could not be told with certainty")
        return
    for group in why.groups:
        count = len(group.nodes)
        names = ", ".join(group.nodes[:SHOWN]) + (", …" if count > SHOWN else "")
        nodes = "node" if count == 1 else "nodes"
        reporter.detail(f"  {count} {nodes} ({names}): {'; '.join(group.reasons)}")
        if group.hint:
            reporter.detail(f"    {group.hint}")
        if group.change:
            option = f" ({group.option})" if group.option else ""
            reporter.detail(
                f"    it would fit on {group.tried} with one change: {group.change}{option}"
            )


def _show_difference(reporter: "Reporter", before: "Side", after: "Side") -> None:
    had = {label_of(one.pod): one.node for one in before.outcomes}
    for outcome in after.outcomes:
        label = label_of(outcome.pod)
        if label in after.evicted:
            where = f"goes to {outcome.node}" if outcome.node else "finds no other node"
            reporter.result(f"evicted: {label} {where}")
        elif outcome.node and not had.get(label):
            reporter.result(f"gets in: {label}")
        elif not outcome.node and had.get(label):
            reporter.result(f"falls out: {label}")
    rows = []
    for name in sorted({**before.free, **after.free}):
        (most, taken), (later, used) = before.free.get(name, (0, 0)), after.free.get(name, (0, 0))
        rows.append((name, f"{most - taken} of {most}", f"{later - used} of {later}"))
    if rows:
        reporter.table(("free", "before", "after"), rows)


def suggestion_data(found: "Suggestion") -> dict[str, Any]:
    """Return a suggestion as data."""
    return {
        "changes": [str(change) for change in found.changes],
        "placesAll": found.places_all,
        "tried": found.tried,
        "evicted": list(found.evicted),
        "lost": found.lost,
    }


def show_suggestion(reporter: "Reporter", found: "Suggestion") -> None:
    """Print a suggestion for people."""
    if not found.changes:
        words = "nothing has to change" if found.places_all else "no such change was found"
        reporter.result(f"suggestion: {words} ({found.tried} tried)")
        return
    reporter.result(f"suggestion: {' '.join(str(change) for change in found.changes)}")
    reporter.detail(f"  the scheduler places everything then ({found.tried} tried)")
    reporter.detail(f"  evicted: {', '.join(found.evicted) or 'no Pod'}")
    for name, count in found.lost.items():
        reporter.detail(f"  lost: {count} {name}")
