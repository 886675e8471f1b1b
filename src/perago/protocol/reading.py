"""JSON that others wrote, within bounds: what is deeper or longer than that is no honest input."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from perago.protocol.plain import MOST_DEPTH, MOST_DIGITS

MOST_CHARACTERS = 64_000_000


class OutOfBoundsError(ValueError):
    """It may be JSON, but it is too deep, too long or too large; the message says which."""


def read_json(text: str | bytes) -> object:
    """Read a document; ``ValueError`` (of which ``JSONDecodeError`` is one) when it is none."""
    if len(text) > MOST_CHARACTERS:
        raise OutOfBoundsError(f"it has more than {MOST_CHARACTERS:,} characters")
    try:
        found = json.loads(text, parse_int=_integer, parse_float=_number)
    except RecursionError:
        raise _too_deep() from None
    if depth(found) > MOST_DEPTH:
        raise _too_deep()
    if _may_hold_halves(text):
        refuse_halves(json.dumps(found, ensure_ascii=False))
    return found


def refuse_halves(text: str) -> None:
    """Refuse a text that no encoding can carry: with half of a surrogate pair in it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise OutOfBoundsError("it has half of a character, a lone surrogate") from None


def _may_hold_halves(text: str | bytes) -> bool:
    if isinstance(text, bytes):
        return b"\\ud" in text or b"\\uD" in text or b"\xed" in text
    return "\\ud" in text or "\\uD" in text or not text.isascii()


def depth(value: object) -> int:
    """Count how many lists and objects stand in each other, without recursion."""
    level, here = 0, [value]
    while here := [inner for each in here for inner in _inside(each)]:
        level += 1
        if level > MOST_DEPTH:
            break
    return level


def _inside(value: object) -> list[object]:
    """Return what a value holds; an empty list or object counts as deep as one that is not."""
    if isinstance(value, Mapping):
        return [*value.values()] or [None]
    if isinstance(value, list | tuple):
        return [*value] or [None]
    return []


def _too_deep() -> OutOfBoundsError:
    return OutOfBoundsError(f"it is nested more than {MOST_DEPTH} deep")


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise OutOfBoundsError(f"a number in it has more than {MOST_DIGITS:,} digits")
    return int(text)


def _number(text: str) -> float:
    if len(text) > MOST_DIGITS:
        raise OutOfBoundsError(f"a number in it has more than {MOST_DIGITS:,} digits")
    found = float(text)
    if math.isinf(found):
        raise OutOfBoundsError(f"the number {text} in it is too large")
    return found
