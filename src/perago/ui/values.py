"""JSON values as a page shows them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

LONGEST: Final = 2000


def pairs(values: Mapping[str, object]) -> list[tuple[str, str]]:
    """Turn an object into names and short texts, in the order of the names."""
    return [(str(name), text_of(values[name])) for name in sorted(values, key=str)]


def text_of(value: object) -> str:
    """Write a value as people would: a text as it is, all else as JSON, both cut."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"
