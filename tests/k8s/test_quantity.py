"""Quantities: the grammar of Kubernetes, its cap and its rounding."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuwl.k8s import objects, quantity


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, 0),
        ("", 0),
        (0, 0),
        ("0k", 0),
        ("-0.0", 0),
        ("0e999999999999", 0),
        (4, 4),
        (1.5, Fraction(3, 2)),
        ("16384", 16384),
        ("1k", 1000),
        ("250m", Fraction(1, 4)),
        ("1.5Gi", 3 << 29),
        (".5Ki", 512),
        ("2.", 2),
        ("+3", 3),
        ("-1500m", Fraction(-3, 2)),
        ("1E", 10**18),
        ("12e6", 12_000_000),
        ("1E-3", Fraction(1, 1000)),
        ("1n", Fraction(1, 10**9)),
        ("0.1n", Fraction(1, 10**9)),
        ("1e-99999999999999", Fraction(1, 10**9)),
        ("9223372036854775807", quantity.LARGEST),
        ("8Ei", quantity.LARGEST),
        ("-10E", -quantity.LARGEST),
        ("1e99999999999999", quantity.LARGEST),
        ("0." + "0" * 50 + "1e60", 10**9),
    ],
)
def test_an_amount(value: object, expected: int | Fraction) -> None:
    assert quantity.amount(value) == expected
    assert quantity.is_zero(value) == (expected == 0)


@pytest.mark.parametrize(
    "value",
    ["abc", "1 ", "1kk", "1K", "ki", "--1", "+-1", "1.2.3", ".", "-", "1e", "1e+", "1ki", "1/2", "1_0",
     "0x1", "infinity", "nan", True, False, [], {}, float("inf"), "\u0661", "1" * 1001],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_read(value: object) -> None:
    assert quantity.amount(value) is None
    assert not quantity.is_zero(value)
    for read in (quantity.whole, quantity.milli):
        with pytest.raises(ValueError, match="is not a Kubernetes quantity"):
            read(value)


@pytest.mark.parametrize(
    ("value", "whole", "milli"),
    [("1", 1, 1000), ("100m", 1, 100), ("1500m", 2, 1500), ("1u", 1, 1), ("-1500m", -2, -1500)],
)
def test_rounds_up(value: str, whole: int, milli: int) -> None:
    assert (quantity.whole(value), quantity.milli(value)) == (whole, milli)


@given(
    st.from_regex(
        r"\A[+-]?([0-9]{1,9}(\.[0-9]{0,9})?|\.[0-9]{1,9})([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?\Z"
    )
)
@settings(max_examples=200)
def test_every_quantity_of_the_grammar_is_read(text: str) -> None:
    found = quantity.amount(text)
    assert found is not None
    assert abs(found) <= quantity.LARGEST
    assert (found * 10**9).denominator == 1
    assert (found == 0) == quantity.is_zero(text)


@pytest.mark.parametrize("amount", ["0k", "0.0", "0", 0, None, ""], ids=repr)
def test_zero_in_any_form_is_not_advertised(amount: object) -> None:
    node = {"status": {"allocatable": {"nvidia.com/gpu": amount, "nvidia.com/A": "1k"}}}
    assert objects.advertised(node) == {"nvidia.com/A": "1k"}
