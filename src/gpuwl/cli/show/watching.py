"""A view of the inventory that is drawn again and again in the same place on a terminal."""

from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from gpuwl.cli.show import inventory as drawn
from gpuwl.texts import text

if TYPE_CHECKING:
    from gpuwl.inventory.model import Inventory
    from gpuwl.inventory.page import Caption
    from gpuwl.inventory.view import View


class Watching:
    """Shows an inventory, and says below it when the cluster could not be read just now."""

    def __init__(self, view: "View", seconds: float) -> None:
        self._view = view
        self._seconds = seconds
        self._console = Console(highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")
        self._last: list[drawn.Line] = []

    def __enter__(self) -> Self:
        """Take the place below the cursor."""
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave what was drawn last, and give the cursor back."""
        self._live.stop()

    def show(self, found: "Inventory", caption: "Caption") -> None:
        """Draw an inventory."""
        head = text(
            "inventory.watching",
            source=caption.source,
            taken=caption.taken,
            seconds=f"{self._seconds:g}",
        )
        width = self._console.width
        self._last = [
            [(head, "dim")],
            [],
            *drawn.bars(found, self._view, width),
            *drawn.remarks(found, self._view, caption),
        ]
        self._draw(self._last)

    def fail(self, message: str) -> None:
        """Keep what was drawn, and say below it what went wrong."""
        self._draw(
            [*self._last, [], [(text("inventory.watch_failed", message=message), "bold red")]]
        )

    def _draw(self, lines: list[drawn.Line]) -> None:
        self._live.update(Group(*(Text.assemble(*line) for line in lines)), refresh=True)
