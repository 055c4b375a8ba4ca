"""The picture as files: one HTML page that needs nothing else, or one SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from gpuwl.errors import SetupError
from gpuwl.inventory import document, palette, stranded, sums
from gpuwl.inventory.drawing import Drawing, draw
from gpuwl.inventory.model import Inventory, Use
from gpuwl.inventory.words import headline, mark_words, notes, place_command, sentences
from gpuwl.texts import language, text

MOST_FINDINGS = 30
"""Findings that the page lists; the rest is counted, with the command that lists all."""

PRINTED_ROWS, PRINTED_FINDINGS = 14, 3
"""What of the table and of the findings is printed: the page fits on one A4."""


@dataclass(frozen=True)
class Caption:
    """What stands beside the picture: where it is from, when it was taken (UTC, as text).

    `options` make `gpuwl place` look at the same cluster or files.
    """

    source: str
    taken: str
    options: tuple[str, ...] = ()


def svg(found: Inventory, caption: Caption, use: Use | None = None) -> str:
    """Return the picture as SVG. Raises SetupError without the extra `html`."""
    lines = (headline(found, use), f"{caption.source} · {caption.taken}")
    return _rendered("picture.svg", drawing=draw(found, use, lines), alone=True, **_words())


def html(found: Inventory, caption: Caption, use: Use | None = None) -> str:
    """Return the page. Raises SetupError without the extra `html`."""
    verdicts = stranded.stranded(found, use)
    findings = document.findings(found)
    rows = sums.by_resource(found, use)
    drawing = draw(found, use)
    marks, told = mark_words(found), notes(found)
    return _rendered(
        "page.html",
        drawing=drawing,
        alone=False,
        lang=language(),
        headline=headline(found, use),
        caption=caption,
        table=[_cells(row) for row in rows],
        verdicts=[
            (sentences(one), place_command(one, caption.options), one.message) for one in verdicts
        ],
        marks=marks,
        findings=findings[:MOST_FINDINGS],
        hidden=max(0, len(findings) - MOST_FINDINGS),
        notes=told,
        print_height=_print_height(drawing, len(rows), len(findings), [*marks, *told]),
        print_rows=PRINTED_ROWS,
        print_findings=PRINTED_FINDINGS,
        **_words(),
    )


def _cells(row: sums.ResourceRow) -> dict[str, str]:
    values = {**vars(row), "use": text(f"inventory.use_{palette.key(row.use)}")}
    unknown = text("inventory.unknown")
    cells = {name: unknown if value is None else str(value) for name, value in values.items()}
    return {**cells, "css": palette.key(row.use)}


def _print_height(drawing: Drawing, rows: int, findings: int, told: Sequence[object]) -> int:
    """Return how high the picture may be, in millimetres, so that all of it prints on one A4.

    Every line that prints beside the picture has a known height; `told` are the other paragraphs:
    marks, verdicts, notes.
    """
    lists = 13 + 4.8 * min(rows, PRINTED_ROWS) + 8 + 4 * min(findings, PRINTED_FINDINGS)
    others = 22 + 18 + 4 * len(told)
    whole = round(drawing.height / drawing.width * 192) + 1
    return max(60, min(whole, round(275 - lists - others)))


def _words() -> dict[str, Any]:
    shades = [(use, palette.key(use), palette.main(use), palette.tint(use)) for use in Use]
    return {"text": text, "shades": shades, "rules": list(palette.rules())}


def _rendered(template: str, **values: object) -> str:
    jinja2 = _jinja2()
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("gpuwl.inventory"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    rendered: str = environment.get_template(f"{template}.jinja").render(**values)
    return rendered


def _jinja2() -> ModuleType:
    try:
        import jinja2  # noqa: PLC0415 - an extra: only these two files need it
    except ImportError:
        raise SetupError(
            "--html and --svg need the extra html, which is not installed",
            hint="pip install 'gpuwl[html]'",
        ) from None
    return jinja2
