"""What a drawing is made of, and how wide words are."""

import unicodedata
from dataclasses import dataclass

ELLIPSIS = "…"


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle, as wide as `w` and as high as `h`, with what a pointer on it shows."""

    x: float
    y: float
    w: float
    h: float
    css: str
    title: str = ""
    kind: str = "box"


@dataclass(frozen=True, slots=True)
class Squares:
    """Equal squares of one meaning: `d` is an SVG path."""

    d: str
    css: str
    title: str = ""
    kind: str = "squares"


@dataclass(frozen=True, slots=True)
class Words:
    """A line of text whose baseline begins (`css` may say: ends) at x, y.

    `name` follows it in a face of equal widths.
    """

    x: float
    y: float
    text: str
    css: str
    title: str = ""
    name: str = ""
    kind: str = "words"


Shape = Box | Squares | Words


def squares(places: list[tuple[float, float]], side: float) -> str:
    """Return the path of squares with these upper left corners."""
    return "".join(f"M{x:g} {y:g}h{side:g}v{side:g}h-{side:g}z" for x, y in places)


def cells(text: str) -> int:
    """Return how many cells a text takes where Korean takes two each."""
    return sum(1 + (unicodedata.east_asian_width(one) in "WF") for one in text)


def shortened(text: str, most: int) -> str:
    """Cut a name in its middle: nodes of one pool begin alike, and their ends tell them apart."""
    if cells(text) <= most:
        return text
    tail = (most - 1) // 2
    head = most - 1 - tail
    return text[:head] + ELLIPSIS + text[len(text) - tail :]


def wrapped(text: str, width: int, most: int) -> list[str]:
    """Return at most `most` lines of `width` cells; what is left out shows as an ellipsis."""
    lines = [""]
    for word in text.split():
        for piece in _pieces(word, width):
            joined = f"{lines[-1]} {piece}".strip()
            if cells(joined) <= width:
                lines[-1] = joined
            else:
                lines.append(piece)
    kept = lines[:most]
    if len(lines) > most:
        kept[-1] = kept[-1][: width - 1] + ELLIPSIS
    return [line for line in kept if line]


def _pieces(word: str, width: int) -> list[str]:
    step = width // 2 if cells(word) > len(word) else width
    return [word[start : start + step] for start in range(0, len(word), step)]
