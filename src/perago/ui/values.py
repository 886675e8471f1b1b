"""JSON values as a page shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from perago.redaction import hide

LONGEST: Final = 1000
MOST: Final = 30


def pairs(values: Mapping[str, object]) -> list[tuple[str, str]]:
    """Turn an object into names and short texts, in the order of the names."""
    names = sorted(values, key=str)
    shown = [(str(name), text_of(values[name])) for name in names[:MOST]]
    left = len(names) - len(shown)
    return [*shown, *([("…", f"{left:,} more")] if left else [])]


def text_of(value: object) -> str:
    """Write a value as people would: a text as it is, all else as JSON, both cut."""
    text = hide(value) if isinstance(value, str) else hide(_as_json(value))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
