"""Guardrails on tables (X5): what is measured, and what the numbers mean.

A guard names measures; an engine (Spark, or pyarrow) takes all measures of a table together, and
the guard reads its verdict from them. So two engines can differ in numbers only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["number", "text", "date", "moment", "truth"]
_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double"})
_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(_NUMBERS, "number"),
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
# How a value is written in text: a CSV file, or the name of a partition. Bounded, so that every
# engine reads every number it accepts.
WRITTEN: Mapping[Kind, str] = {
    "number": r"^[+-]?[0-9]{1,200}(\.[0-9]{0,200})?([eE][+-]?[0-9]{1,2})?$",
    "date": r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$",
    "moment": r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r" ([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?$",
    "truth": r"^(true|false)$",
    "text": r"",
}
WHOLE = r"^[+-]?[0-9]{1,18}$"
_WHOLE_TYPES = frozenset({"tinyint", "smallint", "int", "bigint"})


@dataclass(frozen=True, slots=True)
class Bound:
    """A value to compare with; dates and moments as ISO text, which sorts as they do."""

    kind: Kind
    value: int | float | str | bool

    def __str__(self) -> str:
        return repr(self.value)


def kind_of(type_name: str) -> Kind | None:
    """Tell what the values of a column can be compared with; None for nested and raw types."""
    if type_name.startswith("decimal"):
        return "number"
    return _KINDS.get(type_name)


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
        given = self.low or self.high or (self.allowed or (Bound("text", ""),))[0]
        return given.kind


@dataclass(frozen=True, slots=True)
class Unwritten:
    """Rows whose text does not say a value of the type."""

    column: str
    type_name: str

    @property
    def pattern(self) -> str:
        """Return the form that the text must have."""
        return WHOLE if self.type_name in _WHOLE_TYPES else WRITTEN[self.kind]

    @property
    def kind(self) -> Kind:
        """Tell what the type's values are."""
        return kind_of(self.type_name) or "text"


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
class Untrue:
    """Rows for which a SQL expression is not true."""

    sql: str


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean of a column."""

    column: str


Measure = Nulls | Outside | Unwritten | Repeated | Orphans | Untrue | Mean


@dataclass(frozen=True, slots=True)
class Found:
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
    found: Mapping[Measure, Found] = field(default_factory=dict)
    written: bool = False
    problem: str = ""


def refuse(measure: Measure, columns: Mapping[str, str]) -> str | None:
    """Say why a measure cannot be taken of a table with these columns, or None."""
    for name in _columns_of(measure):
        if name not in columns:
            return f"column {name!r} is missing"
    if isinstance(measure, Outside):
        found = kind_of(columns[measure.column])
        if found != measure.kind and not (found == "text" and measure.kind != "truth"):
            return (
                f"column {measure.column!r} is of type {columns[measure.column]}, "
                f"which is not compared with a {measure.kind}"
            )
    if isinstance(measure, Mean) and kind_of(columns[measure.column]) != "number":
        return f"column {measure.column!r} is of type {columns[measure.column]}, not a number"
    return None


def _columns_of(measure: Measure) -> tuple[str, ...]:
    match measure:
        case Repeated(columns) | Orphans(columns):
            return columns
        case Untrue():
            return ()
        case _:
            return (measure.column,)


# --- what the numbers mean -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verdict:
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


def told(verdicts: Iterable[Verdict]) -> dict[str, object]:
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
        """Say what is wrong with a table that could be read, or None."""

    def verdict(self, table: Table | None, before: Table | None = None) -> Verdict:
        """Judge a table; one that is missing or cannot be read breaks every rule."""
        if table is None:
            return Verdict(str(self), self.table, f"there is no table at {self.table!r}")
        if table.problem:
            return Verdict(str(self), self.table, f"{self.table!r} {table.problem}")
        wanted = self.measures(written=table.written)
        found = [table.found[measure] for measure in wanted]
        refused = next((item.problem for item in found if item.problem), None)
        return Verdict(
            guard=str(self),
            table=self.table,
            violation=refused or self.problem(table, before),
            rows=table.rows,
            offending=sum(item.count for item in found) if wanted else None,
            samples=tuple(sample for item in found for sample in item.samples)[:3],
        )


def summary(verdicts: Iterable[Verdict]) -> str:
    """Say in a few words what was checked, for the metadata of a commit."""
    seen = list(verdicts)
    rows = {verdict.table: verdict.rows for verdict in seen}
    listed = ", ".join(f"{table} {count:,} rows" for table, count in rows.items() if count)
    return f"{len(seen)} passed: {listed}"[:500]
