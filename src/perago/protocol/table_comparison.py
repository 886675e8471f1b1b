"""How alike two versions of one table are, beyond the bytes of their files (X13)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Alike = Literal["names", "rows", "schema", "different", "unknown"]


@dataclass(frozen=True, slots=True)
class TableComparison:
    """What two versions of a table have in common; the order of rows does not count.

    ``names``: every byte, only files are called otherwise. ``rows``: the schema and every row.
    ``schema``: the columns and their types, but not the rows. ``different``: not even the schema.
    ``unknown``: they were not compared, and ``why`` says the reason.
    """

    table: str
    alike: Alike
    before: int | None = None
    """How many rows there were."""
    after: int | None = None
    why: str = ""

    def __str__(self) -> str:
        match self.alike:
            case "names":
                return "only the names of files differ"
            case "rows":
                return f"the same schema and the same rows ({self.after:,}), in other files"
            case "schema":
                return f"the same schema, other rows ({self.before:,} before, {self.after:,} after)"
            case "different":
                return "another schema"
            case "unknown":
                return f"not compared: {self.why}"

    def as_json(self) -> dict[str, object]:
        """Return it as plain values."""
        return {
            "table": self.table,
            "alike": self.alike,
            "rows": None if self.before is None else [self.before, self.after],
            "why": self.why,
        }


def choose_key(asked: str, common: Sequence[str], unique: Sequence[str]) -> tuple[str | None, str]:
    """Choose the column that tells which row is which, and say why; None compares rows as a whole.

    ``common`` are the columns that both versions have with the same type, ``unique`` those of them
    that have no value twice and none missing, in either version.
    """
    if asked:
        if asked in unique:
            return asked, f"rows are told apart by {asked!r}"
        if asked not in common:
            return None, f"{asked!r} is not a column of both with the same type"
        return None, f"{asked!r} does not tell rows apart: a value is there twice, or missing"
    if len(unique) == 1:
        return unique[0], f"rows are told apart by {unique[0]!r}, the only column without repeats"
    if unique:
        return None, "several columns could tell rows apart: choose one to see which rows changed"
    return None, "no column tells rows apart, so a changed row is one removed and one added"
