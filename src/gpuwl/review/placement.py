"""Findings about where a workload can go: names, amounts and rules against the nodes in view.

An error is what the scheduler would say too; what could be otherwise for something that was not in
view (a DeviceClass, an admission plugin, a RuntimeClass) is a warning that says so.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from gpuwl.checker import shown
from gpuwl.findings import Finding, Severity
from gpuwl.k8s import pods
from gpuwl.k8s.names import is_extended, near, sizes_of
from gpuwl.k8s.pods import Amounts
from gpuwl.review import amounts, constraints
from gpuwl.review.constraints import Rule
from gpuwl.review.nodes import Nodes, many, size
from gpuwl.review.surroundings import Surroundings
from gpuwl.review.workload import Unit, Workload, is_placeholder

SCHEDULABLE = "kubevirt.io/schedulable"
OF_OTHER_SCHEDULERS = frozenset(
    f"nvidia.com/{name}" for name in ("gpumem", "gpumem-percentage", "gpucores", "priority", "vgpu")
)
"""Names of HAMi and Volcano; their own scheduler counts them, and nodes need not advertise them."""
DEFAULT_SCHEDULER = "default-scheduler"


@dataclass(frozen=True)
class _Case:
    """One unit against the nodes: what it asks for that device plugins give, and its rules."""

    work: Workload
    unit: Unit
    known: Surroundings
    asked: Amounts
    rules: list[Rule]

    @property
    def severity(self) -> Severity:
        """The weight of what keeps every Pod away; a template of no Pods keeps nobody."""
        return Severity.ERROR if self.unit.template.count else Severity.WARNING

    def enough(self) -> Nodes:
        """Return the nodes that have all of it at once."""
        nodes = self.known.nodes.all
        for name, amount in self.asked.items():
            nodes &= self.known.nodes.with_amount(name, amount)
        return nodes


def is_scheduled_by_others(unit: Unit) -> bool:
    """Tell whether another scheduler decides, or none: findings about placement do not apply."""
    scheduler = unit.spec.get("schedulerName")
    return bool(unit.spec.get("nodeName")) or scheduler not in (None, "", DEFAULT_SCHEDULER)


def check(work: Workload, unit: Unit, known: Surroundings) -> Iterator[Finding]:
    """Return what keeps a unit's Pods from every node in view."""
    if not known.nodes.seen or is_scheduled_by_others(unit):
        return
    unknown = [name for name in unit.asked if name not in known.nodes.advertised]
    by_class = [name for name in unknown if known.extended_by_class(name)]
    lost = [name for name in unknown if name not in by_class]
    for name in lost:
        yield from _unknown(work, unit, known, name)
    if lost:
        return
    asked = {name: amount for name, amount in unit.asked.items() if name not in by_class}
    rules = constraints.rules(unit.spec, known.nodes, daemon=unit.template.per_node)
    case = _Case(work, unit, known, asked, rules)
    if asked:
        yield from _place(case)


def _unknown(work: Workload, unit: Unit, known: Surroundings, name: str) -> Iterator[Finding]:
    if is_placeholder(name):
        return
    near_names = near(name, known.nodes.advertised)
    severity, remark = _certainty(unit, known, name)
    what = (
        f"no node of {size(known.nodes.all)} advertises {shown(name)}{_known_sizes(name)}{remark}"
    )
    options = [
        f"{shown(each.name)} ({_count(known, each.name)}; {each.why})" for each in near_names
    ]
    yield work.finding(
        "unknown-name",
        unit.paths[name],
        what,
        severity=severity,
        found=shown(name),
        expected=shown(near_names[0].name) if near_names else None,
        fix=f"did you mean {' or '.join(options)}?" if options else _advertised(known),
    )


def _certainty(unit: Unit, known: Surroundings, name: str) -> tuple[Severity, str]:
    """Return how sure it is that a name which no node advertises is nowhere to be had."""
    if name in OF_OTHER_SCHEDULERS:
        return Severity.WARNING, "; HAMi and Volcano count it in a scheduler of their own"
    if known.classes_seen:
        count = many(len(known.classes), "DeviceClass").replace("DeviceClasss", "DeviceClasses")
        remark = f", and none of {count} in view gives it"
    else:
        remark = "; no DeviceClass was in view"
    unsure = (known.shows_dra and not known.classes_seen) or not unit.template.count
    return Severity.WARNING if unsure else Severity.ERROR, remark


def _known_sizes(name: str) -> str:
    sizes = sizes_of(name)
    if not sizes or any(name.endswith(size) for size in sizes):
        return ""
    return f", and NVIDIA publishes no such profile of the card (it has {', '.join(sizes)})"


def _count(known: Surroundings, name: str) -> str:
    return many(size(known.nodes.advertised[name]), "node")


def _advertised(known: Surroundings) -> str:
    names = sorted(known.nodes.advertised, key=lambda name: (not name.startswith("nvidia"), name))
    listed = ", ".join(f"{shown(name)} ({_count(known, name)})" for name in names[:6])
    return f"advertised are: {listed or 'no extended resources'}"


def _place(case: _Case) -> Iterator[Finding]:
    """Go from what no rule can help to what is only taken for now; the first that applies is said."""
    for step in (_too_many, _together, _nowhere, _plain_resources):
        found = list(step(case))
        if found:
            yield from found
            return
    yield from _not_all(case)
    yield from _taken(case)


def _too_many(case: _Case) -> Iterator[Finding]:
    index = case.known.nodes
    for name, amount in case.asked.items():
        if index.with_amount(name, amount):
            continue
        most = index.most(name, index.all)
        parts = [] if case.unit.is_vm else amounts.sums(case.unit, name)
        is_sum = len(parts) > 1 and max(parts) <= most
        counted = f" ({' + '.join(map(str, parts))} in {len(parts)} containers)" if is_sum else ""
        yield case.work.finding(
            "sum-of-containers" if is_sum else "too-many",
            case.unit.paths[name],
            f"a Pod asks for {amount} {shown(name)}{counted}, and no node has more than {most}",
            severity=case.severity,
            found=str(amount),
            expected=f"{most} at most",
        )


def _together(case: _Case) -> Iterator[Finding]:
    index = case.known.nodes
    if case.enough():
        return
    nodes = index.all
    for name in case.asked:
        nodes &= index.advertised[name]
    names = [shown(name) for name in case.asked]
    each = "; ".join(
        f"{shown(name)} on {index.listed(index.advertised[name])}" for name in case.asked
    )
    what = "no node has them together" if not nodes else "no node has that much of both"
    yield case.work.finding(
        "two-kinds" if not nodes else "too-many",
        case.unit.paths[list(case.asked)[-1]],
        f"a Pod asks for {' and '.join(names)}, and {what}: {each}",
        severity=case.severity,
    )


def _nowhere(case: _Case) -> Iterator[Finding]:
    index, enough = case.known.nodes, case.enough()
    rules = [*case.rules, *_of_vm(case)]
    if constraints.left(rules, index) & enough:
        return
    costs = sorted(
        ((size(enough & ~rule.leaves), rule) for rule in rules), key=lambda cost: -cost[0]
    )
    costs = [(cost, rule) for cost, rule in costs if cost]
    said = "; ".join(f"{rule.text} rules out {cost}" for cost, rule in costs[:5])
    unsure = _could_be_tolerated(case, rules)
    names = " and ".join(shown(name) for name in case.asked)
    yield case.work.finding(
        "nowhere",
        (*case.unit.template.path, *costs[0][1].path),
        f"{index.listed(enough)} would do for {names}, and none is left by the Pod's own rules:"
        f" {said}{unsure}",
        severity=Severity.WARNING if unsure else case.severity,
    )


def _of_vm(case: _Case) -> list[Rule]:
    """Return the rule that KubeVirt adds to the Pod of every VM."""
    nodes = case.known.nodes.labelled(SCHEDULABLE, "true")
    return (
        [Rule(f"{SCHEDULABLE}: true, which KubeVirt asks for,", (), nodes)]
        if case.unit.is_vm
        else []
    )


def _could_be_tolerated(case: _Case, rules: list[Rule]) -> str:
    """Say what could still let the Pod in, if only taints keep it out."""
    others = [rule for rule in rules if not rule.taint]
    by_class = case.unit.spec.get("runtimeClassName") and not case.unit.is_vm
    if by_class and constraints.left(others, case.known.nodes) & case.enough():
        return "; whether its RuntimeClass tolerates that was not in view"
    others = [rule for rule in rules if not rule.taint or rule.taint not in case.asked]
    if constraints.left(others, case.known.nodes) & case.enough():
        return "; the admission plugin ExtendedResourceToleration, where it is on, adds toleration"
    return ""


def _fitting(case: _Case) -> Nodes:
    return case.enough() & constraints.left([*case.rules, *_of_vm(case)], case.known.nodes)


def _plain_resources(case: _Case) -> Iterator[Finding]:
    """Compare cpu, memory and the like on the nodes that have the devices."""
    index, fitting = case.known.nodes, _fitting(case)
    requests = {} if case.unit.is_vm else pods.requests(case.unit.spec)
    plain = {name: amount for name, amount in requests.items() if not is_extended(name) and amount}
    nodes = fitting
    for name, amount in {**plain, "pods": 1}.items():
        nodes &= index.with_amount(name, amount) | index.without(name)
    if nodes:
        return
    said = [
        f"{name} {_plain(amount)} of {_plain(index.most(name, fitting))} at most"
        for name, amount in {**plain, "pods": 1}.items()
    ]
    yield case.work.finding(
        "too-many",
        (*case.unit.template.path, "containers", 0, "resources"),
        f"{index.listed(fitting)} would do for the devices, and none has the rest: {', '.join(said)}",
        severity=case.severity,
    )


def _plain(amount: object) -> str:
    return f"{float(amount):g}" if not isinstance(amount, int) else str(amount)  # type: ignore[arg-type] # a Fraction


def _not_all(case: _Case) -> Iterator[Finding]:
    """Find templates of more Pods than all nodes together have room for."""
    count, nodes = case.unit.template.count, _fitting(case)
    if case.unit.template.per_node or count < 2:
        return
    for name, amount in case.asked.items():
        room = case.known.nodes.room(name, amount, nodes)
        if room < count:
            yield case.work.finding(
                "not-all",
                case.unit.paths[name],
                f"{count} Pods ask for {amount} {shown(name)} each, and all nodes together have room"
                f" for {room}",
                severity=Severity.WARNING,
            )
            return


def _taken(case: _Case) -> Iterator[Finding]:
    index, fitting = case.known.nodes, _fitting(case)
    if not index.pods_seen:
        return
    free = fitting
    for name, amount in case.asked.items():
        free &= index.with_free(name, amount)
    if free:
        return
    names = " and ".join(f"{amount} {shown(name)}" for name, amount in case.asked.items())
    yield case.work.finding(
        "taken",
        case.unit.paths[list(case.asked)[-1]],
        f"{index.listed(fitting)} would do, and other Pods leave on none of them {names}",
        severity=Severity.WARNING,
    )
