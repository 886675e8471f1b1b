"""Which files a Delta table consists of, read from its log; only the simple tables (Z2)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from perago.errors import UsageError

LOG = "_delta_log/"
_ENTRY = re.compile(r"([0-9]{20})\.json")
_REMEDY = "read it with a library for Delta tables"


def active_files(log: Mapping[str, str]) -> tuple[str, ...]:
    """Return the paths of the files that count now, as they are written in the log.

    ``log`` has the texts of the log's files by name. Refused is what would take a whole reader of
    Delta: a log whose beginning was folded into a checkpoint, and files with deleted rows.
    """
    numbers = sorted(int(entry[1]) for name in log if (entry := _ENTRY.fullmatch(name)))
    if numbers != list(range(len(numbers))):
        raise UsageError("the log of this Delta table does not begin at 0", remedy=_REMEDY)
    found: dict[str, None] = {}
    for number in numbers:
        for line in log[f"{number:020}.json"].splitlines():
            _play(_action(line), found)
    return tuple(found)


def _action(line: str) -> dict[str, Any]:
    try:
        action = json.loads(line) if line.strip() else {}
    except (ValueError, RecursionError):
        raise UsageError("the log of this Delta table cannot be read", remedy=_REMEDY) from None
    return action if isinstance(action, dict) else {}


def _play(action: dict[str, Any], found: dict[str, None]) -> None:
    for kind in ("remove", "add"):
        told = action.get(kind)
        if not isinstance(told, dict) or not isinstance(path := told.get("path"), str):
            continue
        if told.get("deletionVector"):
            raise UsageError("this Delta table has deletion vectors", remedy=_REMEDY)
        found.pop(path, None)
        if kind == "add":
            found[path] = None
