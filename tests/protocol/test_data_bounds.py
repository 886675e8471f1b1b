"""Bounds in the type of a column decide exactly (X5): nothing is rounded on the way."""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perago.data import require_schema, require_values
from perago.protocol.data import NotOfType, Outside
from perago.protocol.data_bounds import ColumnBounds, fit

BIG = st.integers(-(10**40), 10**40) | st.integers(2**53 - 2, 2**53 + 2) | st.integers(-130, 130)
REAL = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.1, -2.5, 2.0**53])
BOUNDS = BIG | REAL


def _exact(bound: float) -> Fraction:
    """Take a float for what is written, as an author means it."""
    return Fraction(bound) if isinstance(bound, int) else Fraction(repr(bound))


def _fits(fitted: ColumnBounds, value: float | Decimal) -> bool:
    if fitted.allowed is not None and value not in fitted.allowed:
        return False
    low, high = fitted.low, fitted.high
    return (low is None or low <= value) and (high is None or value <= high)  # type: ignore[operator]


def _measure(**given: object) -> Outside:
    (measure,) = require_values("t", "a", **given).measures()  # type: ignore[arg-type]
    assert isinstance(measure, Outside)
    return measure


@pytest.mark.parametrize(("type_name", "bits"), [("tinyint", 8), ("int", 32), ("bigint", 64)])
@given(data=st.data(), bound=BOUNDS)
def test_whole_numbers(data: st.DataObject, type_name: str, bits: int, bound: float) -> None:
    edges = st.sampled_from([-(2 ** (bits - 1)), 2 ** (bits - 1) - 1])
    value = data.draw(st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) | edges)
    assert _fits(fit(_measure(min=bound), type_name), value) == (value >= _exact(bound))
    assert _fits(fit(_measure(max=bound), type_name), value) == (value <= _exact(bound))
    assert _fits(fit(_measure(allowed={bound}), type_name), value) == (value == _exact(bound))


@given(digits=st.integers(-(10**38) + 1, 10**38 - 1), scale=st.integers(0, 38), bound=BOUNDS)
def test_decimals(digits: int, scale: int, bound: float) -> None:
    value = Decimal(digits).scaleb(-scale)
    type_name = f"decimal(38,{scale})"
    assert _fits(fit(_measure(min=bound), type_name), value) == (Fraction(value) >= _exact(bound))
    assert _fits(fit(_measure(max=bound), type_name), value) == (Fraction(value) <= _exact(bound))
    same = _fits(fit(_measure(allowed={bound}), type_name), value)
    assert same == (Fraction(value) == _exact(bound))


@given(value=st.floats(allow_nan=False), bound=BIG)
def test_doubles_against_whole_bounds(value: float, bound: int) -> None:
    assert _fits(fit(_measure(min=bound), "double"), value) == (value >= bound)
    assert _fits(fit(_measure(max=bound), "double"), value) == (value <= bound)
    assert _fits(fit(_measure(allowed={bound}), "double"), value) == (value == bound)


def test_bounds_beyond_every_double() -> None:
    huge = 10**400
    assert not _fits(fit(_measure(min=huge), "double"), 1.7e308)
    assert _fits(fit(_measure(min=huge), "double"), math.inf)
    assert _fits(fit(_measure(min=-huge), "double"), -1.7e308)
    assert not _fits(fit(_measure(min=-huge), "double"), -math.inf)
    assert _fits(fit(_measure(max=huge), "double"), 1.7e308)
    assert not _fits(fit(_measure(max=huge), "double"), math.inf)


@given(bound=st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_double_bound_stays_what_it_is(bound: float) -> None:
    (again,) = struct.unpack("<d", struct.pack("<d", bound))
    assert fit(_measure(allowed={bound}), "float") == ColumnBounds(allowed=(again,))


def _says(text: str, type_name: str) -> bool:
    (measure,) = require_schema("t", {"a": type_name}).measures(written=True)
    assert isinstance(measure, NotOfType)
    return re.search(measure.pattern.replace(r"\z", r"\Z"), text) is not None


@given(number=st.integers(-(2**65), 2**65) | st.integers(-40000, 40000))
@pytest.mark.parametrize(
    ("type_name", "bits"), [("tinyint", 8), ("smallint", 16), ("int", 32), ("bigint", 64)]
)
def test_text_that_says_a_whole_number_is_in_its_range(
    type_name: str, bits: int, number: int
) -> None:
    inside = -(2 ** (bits - 1)) <= number < 2 ** (bits - 1)
    assert _says(str(number), type_name) == inside
    if number >= 0:
        assert _says(f"+000{number}", type_name) == inside


def test_text_that_says_a_value_of_a_type() -> None:
    for type_name, good, bad in (
        ("tinyint", ["127", "-128", "0", "007"], ["128", "-129", "1.0", "", "1\n", " 1", "1e1"]),
        ("bigint", ["9223372036854775807", "-9223372036854775808"], ["9223372036854775808", "٣"]),
        ("decimal(4,2)", ["99.99", "-1", "+1.5", "1.500", "01.5"], ["100", "1.555", ".5", "1e2"]),
        ("decimal(2,2)", ["0.99", "0"], ["1", "0.999"]),
        ("double", ["1", "-1.5e10", "+2."], ["NaN", "inf", "0x1", "1,5", "1e999"]),
        ("boolean", ["true", "false"], ["True", "1", "true\n"]),
        ("date", ["2024-02-29", "2000-02-29", "2026-12-31"],
            ["2026-02-29", "1900-02-29", "2026-02-30", "2026-04-31", "2026-1-1", "2026-01-01\n"]),
        ("timestamp", ["2026-01-01 00:00:00", "2026-01-01T23:59:59.123456789"],
            ["2026-01-01", "2026-02-30 00:00:00", "2026-01-01 24:00:00", "2026-01-01 00:00:00Z"]),
    ):  # fmt: skip
        assert [text for text in good if not _says(text, type_name)] == [], type_name
        assert [text for text in bad if _says(text, type_name)] == [], type_name
