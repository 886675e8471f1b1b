"""Which values may travel: plain JSON, neither too deep nor with numbers too large to read."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final

MOST_DEPTH: Final = 200
"""Nested deeper than this, a value ends readers that are written recursively, ours among them."""
MOST_DIGITS: Final = 400
_MOST_BITS: Final = 1330
_CUT_DEPTH: Final = MOST_DEPTH + 50
"""An answer wraps the values of an author in some levels of its own."""
UNREADABLE: Final = "\0unreadable: "
"""Begins a text that stands where a value was that cannot be read."""
_TOO_DEEP: Final = f"is nested deeper than {MOST_DEPTH} levels"
_TOO_LONG: Final = f"holds a number of more than {MOST_DIGITS} digits"
_TOKEN: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[{]|[\]}]|-?[0-9][0-9.eE+-]*|"', re.DOTALL)


def refuse(value: object, *, sent: bool = False) -> str | None:
    """Return why a value cannot be taken, or None; what is sent must be JSON for every reader."""
    pending: list[tuple[object, int]] = [(value, 1)]
    while pending:
        item, depth = pending.pop()
        if depth > MOST_DEPTH:
            return _TOO_DEEP
        if isinstance(item, Mapping):
            pending += [(key, depth) for key in item]
            pending += [(inner, depth + 1) for inner in item.values()]
        elif isinstance(item, list | tuple):
            pending += [(inner, depth + 1) for inner in item]
        elif problem := _refuse_scalar(item, sent=sent):
            return problem
    return None


def _refuse_scalar(item: object, *, sent: bool) -> str | None:
    if isinstance(item, str):
        if item.startswith(UNREADABLE):
            return item.removeprefix(UNREADABLE)
        return "holds half of a surrogate pair" if sent and not _encodes(item) else None
    if isinstance(item, float):
        return "holds NaN or infinity" if sent and not math.isfinite(item) else None
    if isinstance(item, int):
        return _TOO_LONG if item.bit_length() > _MOST_BITS else None
    return None if item is None else f"holds a {type(item).__name__}, which is not JSON"


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def readable(text: str) -> str | None:
    """Put a text that begins with ``UNREADABLE`` where JSON is too deep or a number too long.

    None for what is not JSON anyway. Every character is looked at once.
    """
    kept: list[str] = []
    depth, start, cut_at = 0, 0, -1
    for token in _TOKEN.finditer(text):
        first = token[0][0]
        if first in "[{":
            depth += 1
            if depth == _CUT_DEPTH and cut_at < 0:
                cut_at = token.start()
        elif first in "]}":
            depth -= 1
            if cut_at >= 0 and depth < _CUT_DEPTH:
                kept += [text[start:cut_at], _marker(_TOO_DEEP)]
                start, cut_at = token.end(), -1
        elif token[0] == '"':
            return None
        elif first != '"' and cut_at < 0 and len(token[0]) > MOST_DIGITS:
            kept += [text[start : token.start()], _marker(_TOO_LONG)]
            start = token.end()
    return "".join([*kept, text[start:]]) if cut_at < 0 else None


def _marker(why: str) -> str:
    return '"\\u0000' + UNREADABLE[1:] + why + '"'
