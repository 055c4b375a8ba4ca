"""Colours of the drawing: a hue for each use, shades of it for who holds a card, light and dark."""

import colorsys
from collections.abc import Iterator

from gpuwl.inventory.model import Use

SHADES = 6
"""Holders told apart by shade; the last shade is for all others."""

_HUES = {
    Use.CONTAINER: (140, 0.62),
    Use.SLICE: (178, 0.60),
    Use.PASSTHROUGH: (214, 0.72),
    Use.VGPU: (276, 0.55),
    Use.DRA: (32, 0.85),
    Use.UNKNOWN: (220, 0.08),
}
_LIGHT = (0.30, 0.44, 0.56, 0.37, 0.50, 0.64)
_DARK = (0.62, 0.46, 0.72, 0.54, 0.38, 0.32)


def key(use: Use) -> str:
    """Return a use as part of a CSS class."""
    return use.name.lower()


def rules() -> Iterator[tuple[str, str, str]]:
    """Yield CSS class, colour in the light and colour in the dark, for every shade of every use."""
    for use in Use:
        for number in range(SHADES):
            light, dark = _colour(use, _LIGHT[number]), _colour(use, _DARK[number])
            yield f"{key(use)}-{number}", light, dark


def main(use: Use) -> tuple[str, str]:
    """Return the colour that stands for a use, in the light and in the dark."""
    return _colour(use, 0.36), _colour(use, 0.66)


def tint(use: Use) -> tuple[str, str]:
    """Return the ground of what is free."""
    return _colour(use, 0.94), _colour(use, 0.17)


def _colour(use: Use, lightness: float) -> str:
    hue, saturation = _HUES[use]
    red, green, blue = colorsys.hls_to_rgb(hue / 360, lightness, saturation)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"
