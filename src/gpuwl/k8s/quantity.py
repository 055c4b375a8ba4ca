"""Kubernetes quantities, as the API server and the scheduler read them.

The one reader outside the checker. The grammar, the cap and the rounding are those of
https://pkg.go.dev/k8s.io/apimachinery/pkg/api/resource#Quantity: a signed decimal number with a
suffix (n, u, m, k, M … or Ki, Mi …) or an exponent.
"""

import functools
import math
from typing import TYPE_CHECKING

from gpuwl import checker

if TYPE_CHECKING:
    from fractions import Fraction

LARGEST = 2**63 - 1
"""What the API server makes of any larger number."""
_NANO = 10**9
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_LONGEST = 1000  # characters; int() refuses 4300 digits
_FURTHEST = 40  # decimal places: beyond, a number is capped, or rounded up to the smallest


def amount(value: object) -> "Fraction | None":
    """Return what a quantity of JSON (a string or a number) amounts to; None: it cannot be read.

    null and "" are zero. As the API server does, it caps at LARGEST and rounds up to billionths.
    """
    if value is None or value == "":
        return _amount("0")
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    return _amount(str(value))


def is_zero(value: object) -> bool:
    """Tell whether a quantity is nothing; one that cannot be read is not."""
    return checker.is_present(value) is False


def whole(value: object) -> int:
    """Return a quantity in whole units, rounded up as the scheduler's Value() does.

    Raises ValueError where it cannot be read.
    """
    return _rounded_up(value, 1)


def milli(value: object) -> int:
    """Return a quantity in thousandths, rounded up as the scheduler's MilliValue() does: for cpu.

    Raises ValueError where it cannot be read.
    """
    return _rounded_up(value, 1000)


def _rounded_up(value: object, units: int) -> int:
    found = amount(value)
    if found is None:
        raise ValueError(f"{value!r} is not a Kubernetes quantity")
    return min(_away_from_zero(found * units), LARGEST)


@functools.lru_cache(maxsize=4096)  # the Pods of a large dump ask for few different amounts
def _amount(text: str) -> "Fraction | None":
    if checker.is_present(text) is None or len(text) > _LONGEST:
        return None
    from fractions import Fraction  # it would double the time that importing this module takes

    figures, suffix = checker.parts_of_quantity(text)
    if suffix in _BINARY:
        return _limited(Fraction(figures) * 2 ** _BINARY[suffix])
    places = _DECIMAL[suffix] if suffix in _DECIMAL else _exponent(suffix[1:])
    digits = figures.lstrip("+-0.")
    if digits and places > _FURTHEST + len(figures):
        return Fraction(-LARGEST if figures.startswith("-") else LARGEST)
    if digits and places < -_FURTHEST - len(figures):
        return Fraction(-1 if figures.startswith("-") else 1, _NANO)
    return _limited(Fraction(figures) * (Fraction(10) ** places if digits else 0))


def _exponent(text: str) -> int:
    """Return an exponent, or one that leads to the same."""
    digits = text.lstrip("+-").lstrip("0")
    size = 10**9 if len(digits) > 9 else int(digits or 0)
    return -size if text.startswith("-") else size


def _limited(found: "Fraction") -> "Fraction":
    """Cap a number, and round it up to billionths."""
    if abs(found) >= LARGEST:
        return type(found)(LARGEST if found > 0 else -LARGEST)
    return type(found)(_away_from_zero(found * _NANO), _NANO)


def _away_from_zero(found: "Fraction") -> int:
    return math.ceil(found) if found > 0 else math.floor(found)
