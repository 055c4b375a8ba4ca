"""Which rows of an inventory somebody wants to see, and in which order."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from gpuwl.inventory import selector, sums
from gpuwl.inventory.collect import Selects, every_node
from gpuwl.inventory.model import Inventory, Use

Row = sums.ResourceRow | sums.NodeRow | sums.HolderRow


class By(StrEnum):
    """What a row stands for."""

    RESOURCE = "resource"
    NODE = "node"
    NAMESPACE = "namespace"
    WORKLOAD = "workload"


class Sort(StrEnum):
    """By what rows are sorted; figures from the largest to the smallest, the unknown last."""

    USE = "use"
    NAME = "name"
    ADVERTISED = "advertised"
    USED = "used"
    FREE = "free"
    WAITING = "waiting"


@dataclass(frozen=True)
class View:
    """`use` None: all uses. `selects` tells by its labels whether a node is in view."""

    by: By = By.RESOURCE
    use: Use | None = None
    sort: Sort = Sort.USE
    selects: Selects = every_node

    @property
    def kind(self) -> type[Row]:
        """The type of the rows."""
        return {By.RESOURCE: sums.ResourceRow, By.NODE: sums.NodeRow}.get(self.by, sums.HolderRow)

    def rows(self, found: Inventory) -> list[Row]:
        """Return the rows in their order."""
        rows = self._rows(found)
        return rows if self.sort is Sort.USE else sorted(rows, key=_sorting(self.sort))

    def _rows(self, found: Inventory) -> list[Row]:
        if self.by is By.RESOURCE:
            return list(sums.by_resource(found, self.use))
        if self.by is By.NODE:
            return list(sums.by_node(found, self.use))
        return list(sums.by_holder(found, self.use, workloads=self.by is By.WORKLOAD))


def view(by: str, use: str | None, sort: str, labels: str | None) -> View:
    """Return the view of the options as they were written. Raises InputError for a bad selector."""
    return View(
        By(by),
        Use[_USES[use]] if use else None,
        Sort(sort),
        selector.parse(labels) if labels else every_node,
    )


_USES = {
    "container": "CONTAINER",
    "container-slice": "SLICE",
    "vm-passthrough": "PASSTHROUGH",
    "vm-vgpu": "VGPU",
    "dra": "DRA",
    "unknown": "UNKNOWN",
}
USES = tuple(_USES)
"""The uses as an option writes them."""


def _sorting(sort: Sort) -> Callable[[Row], tuple[object, ...]]:
    if sort is Sort.NAME:
        return _name
    return lambda row: (*_largest_first(row, sort), _name(row))


def _name(row: Row) -> tuple[str, ...]:
    names = ("node", "namespace", "workload", "resource")
    return tuple(str(getattr(row, name, None) or "") for name in names)


def _largest_first(row: Row, sort: Sort) -> tuple[bool, int]:
    """Return a key; a holder has `held` for what is used, and nothing advertised or free."""
    name = "held" if sort is Sort.USED and isinstance(row, sums.HolderRow) else str(sort)
    amount: int | None = getattr(row, name, None)
    return amount is None, -(amount or 0)
