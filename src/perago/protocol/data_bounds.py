"""Bounds in the type of the column they are compared with (X5): no value is rounded on the way.

Engines compare a column with values of its own type only, so two engines cannot round differently,
and ``100.00000000000000000001`` is above ``100``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from perago.protocol.data import WHOLE_TYPES, Bound, Outside, decimal_of, kind_of

Value = int | float | str | bool | Decimal
# Wide enough for every finite double, digit by digit.
_EXACT = Context(prec=1100)
_GREATEST = math.nextafter(math.inf, 0)


@dataclass(frozen=True, slots=True)
class ColumnBounds:
    """What to compare a column with; ``allowed`` without a value means that nothing is inside."""

    low: Value | None = None
    high: Value | None = None
    allowed: tuple[Value, ...] | None = None


NOTHING = ColumnBounds(allowed=())


def fit(item: Outside, type_name: str) -> ColumnBounds:
    """Express the bounds of a measure in values of a column's type."""
    to_low, to_high = _rounding(item, type_name)
    if item.allowed is not None:
        both = ((to_low(bound), to_high(bound)) for bound in item.allowed)
        return ColumnBounds(
            allowed=tuple(low for low, high in both if low == high and low is not None)
        )
    low = None if item.low is None else to_low(item.low)
    high = None if item.high is None else to_high(item.high)
    ends = _ends(type_name) if item.kind == "number" else None
    if ends is not None:
        least, most = ends
        if (low is not None and low > most) or (high is not None and high < least):  # type: ignore[operator]
            return NOTHING
        low = None if low is None or low <= least else low  # type: ignore[operator]
        high = None if high is None or high >= most else high  # type: ignore[operator]
    return ColumnBounds(low, high)


Rounded = Callable[[Bound], Value | None]


def _rounding(item: Outside, type_name: str) -> tuple[Rounded, Rounded]:
    """Return how a lower and an upper bound become values of the type; equal ones are exact."""
    if item.kind == "moment" and kind_of(type_name) == "text":
        return _padded, _padded
    if item.kind != "number":
        return _as_it_is, _as_it_is
    if type_name in WHOLE_TYPES:
        return lambda bound: math.ceil(_number(bound)), lambda bound: math.floor(_number(bound))
    if (digits := decimal_of(type_name)) is not None:
        step = Decimal(1).scaleb(-digits[1])
        return (
            lambda bound: _number(bound).quantize(step, ROUND_CEILING, _EXACT),
            lambda bound: _number(bound).quantize(step, ROUND_FLOOR, _EXACT),
        )
    return lambda bound: _real(bound, math.inf), lambda bound: _real(bound, -math.inf)


def _as_it_is(bound: Bound) -> Value:
    return bound.value


def _padded(bound: Bound) -> str:
    """Write a moment with nine digits behind the point, so that text sorts as moments do."""
    seconds, _, fraction = str(bound.value).partition(".")
    return f"{seconds}.{fraction:0<9}"


def _number(bound: Bound) -> Decimal:
    """Take a float for what its author wrote: 0.1 is a tenth."""
    return Decimal(bound.value) if isinstance(bound.value, int) else Decimal(repr(bound.value))


def _real(bound: Bound, towards: float) -> float:
    """Return the nearest double on the inner side of a bound."""
    try:
        found = float(bound.value)
    except OverflowError:
        above = int(bound.value) > 0
        return (math.inf if above else -_GREATEST) if towards > 0 else (
            _GREATEST if above else -math.inf
        )  # fmt: skip
    # Python compares an int and a float exactly.
    wrong = found < bound.value if towards > 0 else found > bound.value  # type: ignore[operator]
    return math.nextafter(found, towards) if wrong else found


def _ends(type_name: str) -> tuple[Value, Value] | None:
    """Return the least and the greatest value of a type that has them."""
    if type_name in WHOLE_TYPES:
        most = 2 ** (WHOLE_TYPES[type_name] - 1)
        return -most, most - 1
    if (digits := decimal_of(type_name)) is not None:
        precision, scale = digits
        most_digits = Decimal(10**precision - 1).scaleb(-scale, _EXACT)
        return -most_digits, most_digits
    return None


def written_pattern(type_name: str) -> str | None:
    """Return the form of a text that says a value of a number type, or None for other types."""
    if type_name in WHOLE_TYPES:
        most = 2 ** (WHOLE_TYPES[type_name] - 1)
        return rf"^(?:\+?0*(?:{_up_to(most - 1)})|-0*(?:{_up_to(most)}))\z"
    if (digits := decimal_of(type_name)) is not None:
        precision, scale = digits
        whole = f"[0-9]{{1,{precision - scale}}}" if precision > scale else "0"
        return rf"^[+-]?0*{whole}(?:\.[0-9]{{0,{scale}}}0*)?\z"
    return None


def _up_to(limit: int) -> str:
    """Write a pattern of the numbers from 0 to a limit."""
    digits = str(limit)
    found = [f"[0-9]{{1,{len(digits) - 1}}}"]
    for place, digit in enumerate(digits):
        if digit != "0":
            rest = len(digits) - place - 1
            found.append(f"{digits[:place]}[0-{int(digit) - 1}]" + f"[0-9]{{{rest}}}" * bool(rest))
    return "|".join([*found, re.escape(digits)])
