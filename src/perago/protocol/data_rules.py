"""The guardrails on tables that come with Perago (X5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from perago.protocol.data import (
    WRITTEN,
    Bound,
    DataGuard,
    Mean,
    Measure,
    NotOfType,
    NotTrue,
    Nulls,
    Orphans,
    Outside,
    Repeated,
    Table,
    kind_of,
    missing,
)
from perago.protocol.data_bounds import written_pattern

_SHOWN = 5


@dataclass(frozen=True)
class RequireSchema(DataGuard):
    """The table has these columns with these types, and no others unless ``extra``."""

    table: str
    columns: tuple[tuple[str, str], ...]
    extra: bool = False

    def __str__(self) -> str:
        return f"require_schema({self.table!r}, {len(self.columns)} columns)"

    def measures(self, *, written: bool = False) -> tuple[Measure, ...]:
        """In a table of text, every value must say what its type demands."""
        if not written:
            return ()
        return tuple(
            NotOfType(name, kind, written_pattern(kind) or WRITTEN[kind_of(kind) or "text"])
            for name, kind in self.columns
            if kind_of(kind) != "text"
        )

    def problem(self, table: Table, before: Table | None) -> str | None:  # noqa: ARG002 - the port
        """Compare names and types."""
        wanted = dict(self.columns)
        found = [missing(name, table.columns) for name in wanted if name not in table.columns]
        for name, type_name in table.columns.items():
            if name not in wanted and not self.extra:
                found.append(f"column {name!r} is not expected")
            elif not table.written and type_name != wanted.get(name, type_name):
                found.append(f"column {name!r} is {type_name}, not {wanted[name]}")
        found += [
            f"{count} values of {measure.column!r} are not {measure.type_name}"
            for measure in self.measures(written=table.written)
            if isinstance(measure, NotOfType) and (count := table.found[measure].count)
        ]
        return _listed(found)


@dataclass(frozen=True)
class RequireRows(DataGuard):
    """The table has at least and at most so many rows."""

    table: str
    least: int = 1
    most: int | None = None

    def __str__(self) -> str:
        most = "" if self.most is None else f", max={self.most}"
        return f"require_rows({self.table!r}, min={self.least}{most})"

    def problem(self, table: Table, before: Table | None) -> str | None:  # noqa: ARG002 - the port
        """Compare the count."""
        if table.rows < self.least:
            return f"{table.rows} rows, at least {self.least} required"
        if self.most is not None and table.rows > self.most:
            return f"{table.rows} rows, at most {self.most} allowed"
        return None


class _Counting(DataGuard):
    """A rule that few or no rows may break."""

    max_share: float

    def problem(self, table: Table, before: Table | None) -> str | None:  # noqa: ARG002 - the port
        """Name each measure that too many rows break."""
        found = []
        for measure in self.measures(written=table.written):
            count = table.found[measure].count
            # As it was written: of 100 rows, 29 are not more than a share of 0.29.
            if count > Decimal(repr(self.max_share)) * table.rows:
                allowed = f", at most {self.max_share:.4g} of them allowed" * bool(self.max_share)
                found.append(f"{count} of {table.rows} rows {self.said(measure)}{allowed}")
        return _listed(found)

    def said(self, measure: Measure) -> str:
        """Return what is wrong with the rows."""
        raise NotImplementedError


@dataclass(frozen=True)
class RequireNotNull(_Counting):
    """Every row has a value in these columns."""

    table: str
    columns: tuple[str, ...]
    max_share: float = 0.0

    def __str__(self) -> str:
        return f"require_not_null({self.table!r}, {', '.join(map(repr, self.columns))})"

    def measures(self, *, written: bool = False) -> tuple[Measure, ...]:  # noqa: ARG002 - the port
        """Look at each column."""
        return tuple(Nulls(column) for column in self.columns)

    def said(self, measure: Measure) -> str:
        """Name the column."""
        return f"have no {measure.column!r}" if isinstance(measure, Nulls) else ""


@dataclass(frozen=True)
class RequireUnique(_Counting):
    """No two rows have the same key."""

    table: str
    columns: tuple[str, ...]
    max_share: float = 0.0

    def __str__(self) -> str:
        return f"require_unique({self.table!r}, {', '.join(map(repr, self.columns))})"

    def measures(self, *, written: bool = False) -> tuple[Measure, ...]:  # noqa: ARG002 - the port
        """Count what is there more than once."""
        return (Repeated(self.columns),)

    def said(self, measure: Measure) -> str:  # noqa: ARG002 - the port
        """Name the key."""
        return f"repeat a key ({', '.join(self.columns)})"


@dataclass(frozen=True)
class RequireValues(_Counting):
    """Values of a column lie in a range, or among some."""

    table: str
    column: str
    low: Bound | None = None
    high: Bound | None = None
    allowed: tuple[Bound, ...] | None = None
    max_share: float = 0.0

    def __str__(self) -> str:
        return f"require_values({self.table!r}, {self.column!r}, {self._limits})"

    @property
    def _limits(self) -> str:
        if self.allowed is not None:
            more = f", … {len(self.allowed) - _SHOWN} more" * (len(self.allowed) > _SHOWN)
            return f"allowed={{{', '.join(map(str, self.allowed[:_SHOWN]))}{more}}}"
        ends = {"min": self.low, "max": self.high}
        return ", ".join(f"{name}={bound}" for name, bound in ends.items() if bound)

    def measures(self, *, written: bool = False) -> tuple[Measure, ...]:  # noqa: ARG002 - the port
        """Count what lies outside."""
        return (Outside(self.column, self.low, self.high, self.allowed),)

    def said(self, measure: Measure) -> str:  # noqa: ARG002 - the port
        """Name the column and its limits."""
        return f"have a {self.column!r} outside of {self._limits}"


@dataclass(frozen=True)
class RequireForeignKey(_Counting):
    """Every key is in another table of the workspace."""

    table: str
    columns: tuple[str, ...]
    other: str
    other_columns: tuple[str, ...]
    max_share: float = 0.0

    def __str__(self) -> str:
        return f"require_foreign_key({self.table!r}, {', '.join(self.columns)} -> {self.other!r})"

    def measures(self, *, written: bool = False) -> tuple[Measure, ...]:  # noqa: ARG002 - the port
        """Count keys that lead nowhere."""
        return (Orphans(self.columns, self.other, self.other_columns),)

    def said(self, measure: Measure) -> str:  # noqa: ARG002 - the port
        """Name both ends."""
        return f"have a {', '.join(self.columns)} that is not in {self.other!r}"


@dataclass(frozen=True)
class Expect(_Counting):
    """A SQL expression is true for every row; unknown (NULL) is not true."""

    table: str
    sql: str
    max_share: float = 0.0
    needs_spark = True

    def __str__(self) -> str:
        return f"expect({self.table!r}, {self.sql!r})"

    def measures(self, *, written: bool = False) -> tuple[Measure, ...]:  # noqa: ARG002 - the port
        """Count rows of which it is not true."""
        return (NotTrue(self.sql),)

    def said(self, measure: Measure) -> str:  # noqa: ARG002 - the port
        """Quote it."""
        return f"do not satisfy {self.sql}"


@dataclass(frozen=True)
class MaxDrift(DataGuard):
    """Rows and means stay within a share of the input's; a table that is new may be anything."""

    table: str
    rows: float | None
    means: tuple[tuple[str, float], ...]
    needs_before = True

    def __str__(self) -> str:
        given = {"rows": self.rows, **dict(self.means)}
        told = ", ".join(f"{name}={share:g}" for name, share in given.items() if share is not None)
        return f"max_drift({self.table!r}, {told})"

    def measures(self, *, written: bool = False) -> tuple[Measure, ...]:  # noqa: ARG002 - the port
        """Take the mean of each column."""
        return tuple(Mean(column) for column, _ in self.means)

    def problem(self, table: Table, before: Table | None) -> str | None:
        """Compare with what the attempt was given; what cannot be compared has drifted (G2)."""
        if before is None:
            return None
        if before.problem:
            return f"cannot be compared with the input, where it {before.problem}"
        found = []
        if self.rows is not None and _drift(before.rows, table.rows) > self.rows:
            found.append(f"{before.rows} rows became {table.rows}, at most {self.rows:.0%} allowed")
        for column, share in self.means:
            old, new = before.found[Mean(column)], table.found[Mean(column)]
            if old.problem:
                found.append(f"cannot be compared with the input: {old.problem}")
            elif not _is_within(old.value, new.value, share):
                found.append(
                    f"the mean of {column!r} went from {_shown(old.value)} to {_shown(new.value)}, "
                    f"at most {share:.0%} allowed"
                )
        return _listed(found)

    def witnesses(self, table: Table, before: Table | None) -> tuple[Measure, ...]:
        """Look for rows beyond what a mean may be, on the side to which it went."""
        if before is None or before.problem:
            return ()
        found = []
        for column, share in self.means:
            old, new = before.found[Mean(column)].value, table.found[Mean(column)].value
            if old is None or new is None or not math.isfinite(old):
                continue
            if not _is_within(old, new, share):
                attempt_dir = abs(old) * share
                low, high = Bound("number", old - attempt_dir), Bound("number", old + attempt_dir)
                found.append(
                    Outside(column, None if new > old else low, None if new < old else high)
                )
        return tuple(found)


def _is_within(old: float | None, new: float | None, share: float) -> bool:
    """Return whether a mean stayed where it was; NaN and infinity are nowhere, so nothing is."""
    if old is None or new is None:
        return old is new
    return math.isfinite(old) and math.isfinite(new) and _drift(old, new) <= share


def _drift(old: float, new: float) -> float:
    """Return the change as a share of the old value; from nothing to something is endless.

    Rounded: the order in which an engine sums must not decide.
    """
    if old == new:
        return 0.0
    return round(abs(new - old) / abs(old), 9) if old else float("inf")


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.6g}"


def _listed(found: list[str]) -> str | None:
    if not found:
        return None
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return ", ".join(found[:_SHOWN]) + more
