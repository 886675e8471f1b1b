"""What a page has space for: it stays small whatever is shown on it (Z5). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from markupsafe import escape

from perago.protocol.printable import printable

T = TypeVar("T")


def weight(text: object) -> int:
    """Count the bytes that a text takes on a page: made printable, and escaped."""
    return len(str(escape(printable(text))).encode("utf-8", "replace"))


def fitting(items: Iterable[T], weigh: Callable[[T], int], most: int) -> list[T]:
    """Take items from the beginning as long as together they weigh no more."""
    found: list[T] = []
    for item in items:
        most -= weigh(item)
        if most < 0:
            break
        found.append(item)
    return found


def cut(text: str, most: int) -> str:
    """Shorten a text to so many characters, and show that it was."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def table_fitting(
    columns: Sequence[T], rows: Iterable[Sequence[str | None]], most: int
) -> list[Sequence[str | None]]:
    """Take rows as long as the table fits; at least what its columns take is spent."""
    tags = 40
    spent = sum(weight(column) + tags for column in columns)
    return fitting(rows, lambda row: sum(weight(cell) + tags for cell in row), most - spent)
