"""Guardrails on tables (X5): what is measured, and what the numbers mean.

A guard names measures; an engine (Spark, or pyarrow) takes all measures of a table together, and
the guard reads its verdict from them. So two engines can differ in numbers only.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Literal

Kind = Literal["number", "text", "date", "moment", "truth"]
WHOLE_TYPES: Mapping[str, int] = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
"""Types of whole numbers, and their bits."""
_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys((*WHOLE_TYPES, "float", "double"), "number"),
    "string": "text",
    "date": "date",
    "timestamp": "moment",
    "timestamp_ntz": "moment",
    "boolean": "truth",
}
SAMPLES = 3
"""How many offending rows a violation shows."""
SHOWN = 5
"""How many columns of such a row."""
_DATE = (
    r"(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
    r"|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))"
    r"|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
# How a value is written in text: a CSV file, or the name of a partition. Bounded, so that every
# engine reads every number it accepts; to the very end, because "$" lets a line break pass in Java.
WRITTEN: Mapping[Kind, str] = {
    "number": r"^[+-]?[0-9]{1,200}(\.[0-9]{0,200})?([eE][+-]?[0-9]{1,2})?\z",
    "date": rf"^{_DATE}\z",
    "moment": rf"^{_DATE}[ T](?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{1,9}})?\z",
    "truth": r"^(true|false)\z",
    "text": r"",
}
MOMENT_WIDTH = len("2026-03-02 12:00:00.000000000")
"""How long the text of a moment is when it is compared: down to nanoseconds."""
NOT_UTF8 = "its text is not UTF-8"
"""What engines say of a CSV file in which U+FFFD stands, or would stand for bytes."""
_DECIMAL = re.compile(r"decimal\(([0-9]+),([0-9]+)\)")
_MOST_DIGITS = 38


@dataclass(frozen=True, slots=True)
class Bound:
    """A value to compare with; dates and moments as ISO text, which sorts as they do."""

    kind: Kind
    value: int | float | str | bool
    zoned: bool = False
    """Whether a moment was given with its time zone."""

    def __str__(self) -> str:
        return repr(self.value)


def kind_of(type_name: str) -> Kind | None:
    """Tell what the values of a column can be compared with; None for nested and raw types."""
    return "number" if decimal_of(type_name) else _KINDS.get(type_name)


def decimal_of(type_name: str) -> tuple[int, int] | None:
    """Return precision and scale of a decimal type."""
    found = _DECIMAL.fullmatch(type_name)
    return (int(found[1]), int(found[2])) if found else None


# --- what is measured ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Nulls:
    """Rows without a value in a column."""

    column: str


@dataclass(frozen=True, slots=True)
class Outside:
    """Rows whose value is below, above, or not among; a missing value is not outside."""

    column: str
    low: Bound | None = None
    high: Bound | None = None
    allowed: tuple[Bound, ...] | None = None

    @property
    def kind(self) -> Kind:
        """Tell how values are compared."""
        return self._given.kind

    @property
    def zoned(self) -> bool:
        """Return whether the bounds have a time zone."""
        return self._given.zoned

    @property
    def _given(self) -> Bound:
        return self.low or self.high or (self.allowed or (Bound("text", ""),))[0]


@dataclass(frozen=True, slots=True)
class NotOfType:
    """Rows whose text does not say a value of the type."""

    column: str
    type_name: str

    pattern: str
    """The form that the text must have."""


@dataclass(frozen=True, slots=True)
class Repeated:
    """Rows beyond the first with the same key; keys with a missing part do not count."""

    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Orphans:
    """Rows whose key is not in another table; keys with a missing part do not count."""

    columns: tuple[str, ...]
    other: str
    other_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NotTrue:
    """Rows for which a SQL expression is not true."""

    sql: str


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of a column."""

    column: str


Measure = Nulls | Outside | NotOfType | Repeated | Orphans | NotTrue | Mean


@dataclass(frozen=True, slots=True)
class Measured:
    """What an engine found: a number of rows, or a value, or why it could not look."""

    count: int = 0
    value: float | None = None
    samples: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table, measured. ``written`` tells that its values are text (CSV)."""

    columns: Mapping[str, str]
    rows: int
    found: Mapping[Measure, Measured] = field(default_factory=dict)
    written: bool = False
    problem: str = ""


def refuse(measure: Measure, columns: Mapping[str, str]) -> str | None:
    """Return why a measure cannot be taken of a table with these columns, or None."""
    for name in _columns_of(measure):
        if name not in columns:
            return missing(name, columns)
    match measure:
        case Outside(column):
            return _refuse_comparison(measure, column, columns[column])
        case Mean(column) if kind_of(columns[column]) != "number":
            return f"column {column!r} is of type {columns[column]}, not a number"
        case NotOfType(column, type_name) if kind_of(type_name) is None:
            return f"column {column!r} is text, which cannot hold a value of type {type_name}"
        case Repeated(keys) | Orphans(keys):
            return next(filter(None, (_refuse_key(key, columns[key]) for key in keys)), None)
    return None


def missing(name: str, columns: Iterable[str]) -> str:
    """Say that a column is missing, and which one differs from it only by case."""
    twin = next((other for other in columns if other.casefold() == name.casefold()), None)
    return f"column {name!r} is missing" + (f" (there is {twin!r})" if twin else "")


def refuse_pair(ours: str, theirs: str) -> str | None:
    """Return why keys of two types cannot be told to be the same, or None.

    They are compared as text, which is the same on every engine for equal types, and for whole
    numbers, dates and booleans beside text (a CSV file, or the name of a partition).
    """
    first, second = _written_as(ours), _written_as(theirs)
    texts = {"text", "whole", "date", "boolean"}
    if first == second or ("text" in {first, second} and {first, second} <= texts):
        return None
    return f"keys of the types {ours} and {theirs} are not compared"


def _written_as(type_name: str) -> str:
    digits = decimal_of(type_name)
    if type_name in WHOLE_TYPES or (digits and digits[1] == 0):
        return "whole"
    if digits:
        return f"decimal with {digits[1]} places"
    return "text" if type_name == "string" else type_name


def _refuse_key(name: str, type_name: str) -> str | None:
    if kind_of(type_name) is None:
        return f"column {name!r} is of type {type_name}, which cannot be a key"
    return None


def _refuse_comparison(measure: Outside, column: str, type_name: str) -> str | None:
    found = kind_of(type_name)
    if found != measure.kind and not (found == "text" and measure.kind != "truth"):
        return f"column {column!r} is of type {type_name}, which is not compared with a " + (
            measure.kind
        )
    if measure.zoned and type_name != "timestamp":
        return (
            f"column {column!r} is of type {type_name}, without a time zone, and is not compared "
            "with a moment that has one"
        )
    return None


def _columns_of(measure: Measure) -> tuple[str, ...]:
    match measure:
        case Repeated(columns) | Orphans(columns):
            return columns
        case NotTrue():
            return ()
        case _:
            return (measure.column,)


def mean_of(column: str, total: Decimal | float | None, count: int) -> Measured:
    """Make a mean of the sum of ``count`` values; sums of whole numbers and decimals are exact."""
    if not count:
        return Measured()
    if total is None or (isinstance(total, Decimal) and not _is_held(total)):
        return Measured(
            problem=f"the values of {column!r} have a sum of over {_MOST_DIGITS} digits"
        )
    if isinstance(total, Decimal):
        return Measured(value=float(Fraction(total) / count))
    return Measured(value=total / count)


def _is_held(total: Decimal) -> bool:
    """Return whether the widest decimal of every engine holds a sum."""
    return len(total.as_tuple().digits) <= _MOST_DIGITS


# --- what the numbers mean -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GuardResult:
    """What one guard says of one table."""

    guard: str
    table: str
    violation: str | None = None
    rows: int | None = None
    offending: int | None = None
    samples: tuple[str, ...] = ()

    def facts(self) -> dict[str, object]:
        """Return it as plain values for the journal."""
        found: dict[str, object] = {"table": self.table, "rows": self.rows}
        if self.offending is not None:
            found["offending"] = self.offending
        if self.samples:
            found["samples"] = list(self.samples)
        return found

    def as_json(self) -> dict[str, object]:
        """Return it as the output of a task shows it."""
        return {"guard": self.guard, "violation": self.violation, **self.facts()}


def told(verdicts: Iterable[GuardResult]) -> dict[str, object]:
    """Return the part of a task's output that tells what was checked, and what was found (X5)."""
    return {"guards": [verdict.as_json() for verdict in verdicts]}


class DataGuard(ABC):
    """A guardrail on one table of the workspace."""

    __slots__ = ()
    needs_spark = False
    needs_before = False
    table: str

    def measures(self, *, written: bool = False) -> tuple[Measure, ...]:  # noqa: ARG002 - for those that differ
        """Name what has to be measured; of a table of text, where that differs."""
        return ()

    @abstractmethod
    def problem(self, table: Table, before: Table | None) -> str | None:
        """Return what is wrong with a table that could be read, or None."""

    def witnesses(self, table: Table, before: Table | None) -> tuple[Measure, ...]:  # noqa: ARG002 - as above
        """Name what finds rows to look at, where the measures themselves find none."""
        return ()

    def verdict(self, table: Table | None, before: Table | None = None) -> GuardResult:
        """Judge a table; one that is missing or cannot be read breaks every rule."""
        if table is None:
            return GuardResult(str(self), self.table, f"there is no table at {self.table!r}")
        if table.problem:
            return GuardResult(str(self), self.table, f"{self.table!r} {table.problem}")
        wanted = self.measures(written=table.written)
        found = [table.found[measure] for measure in wanted]
        refused = next((item.problem for item in found if item.problem), None)
        return GuardResult(
            guard=str(self),
            table=self.table,
            violation=refused or self.problem(table, before),
            rows=table.rows,
            offending=sum(item.count for item in found) if wanted else None,
            samples=tuple(sample for item in found for sample in item.samples)[:3],
        )


def summary(verdicts: Iterable[GuardResult]) -> str:
    """Say in a few words what was checked, for the metadata of a commit."""
    seen = list(verdicts)
    rows = {verdict.table: verdict.rows for verdict in seen}
    listed = ", ".join(f"{table} {count:,} rows" for table, count in rows.items() if count)
    return f"{len(seen)} passed: {listed}"[:500]
