"""Guardrails on tables, for ``WorkspaceSpec(pre=[...], post=[...])`` (X5).

They look at what will be published. On a Spark task Spark measures, elsewhere pyarrow does; the
verdict is the same. A wrong argument is refused at import.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Collection, Mapping, Sequence

from perago.errors import TaskDefinitionError
from perago.protocol.data import Bound, kind_of
from perago.protocol.data_rules import (
    Expect,
    MaxDrift,
    RequireForeignKey,
    RequireNotNull,
    RequireRows,
    RequireSchema,
    RequireUnique,
    RequireValues,
)
from perago.protocol.paths import refuse_path

__all__ = [
    "expect",
    "max_drift",
    "require_foreign_key",
    "require_not_null",
    "require_rows",
    "require_schema",
    "require_unique",
    "require_values",
]

Value = int | float | str | bool | dt.date | dt.datetime
_ALIASES = {
    "long": "bigint",
    "int64": "bigint",
    "integer": "int",
    "int32": "int",
    "short": "smallint",
    "byte": "tinyint",
    "text": "string",
    "bool": "boolean",
    "float64": "double",
    "float32": "float",
    "decimal": "decimal(10,0)",
}


def require_schema(table: str, columns: Mapping[str, str], *, extra: bool = False) -> RequireSchema:
    """Demand columns with types as Spark writes them: ``bigint``, ``string``, ``decimal(10,2)``."""
    if not isinstance(columns, Mapping) or not columns:
        raise _wrong("require_schema", table, "columns", "give a dict of names to types")
    named = []
    for name, type_name in columns.items():
        text = _type(str(type_name))
        if kind_of(text) is None and not text.startswith(("array<", "map<", "struct<", "binary")):
            raise _wrong(
                "require_schema", table, f"{name}={type_name!r}", "use a type such as bigint"
            )
        named.append((str(name), text))
    return RequireSchema(_table("require_schema", table), tuple(named), extra)


def require_rows(table: str, min: int = 1, max: int | None = None) -> RequireRows:  # noqa: A002 - as authors say it
    """Demand a number of rows."""
    if not isinstance(min, int) or not isinstance(max, int | None):
        raise _wrong("require_rows", table, f"min={min!r}, max={max!r}", "use whole numbers")
    if min < 0 or (max is not None and max < min):
        raise _wrong("require_rows", table, f"min={min}, max={max}", "use 0 <= min <= max")
    return RequireRows(_table("require_rows", table), min, max)


def require_not_null(table: str, *columns: str, max_share: float = 0.0) -> RequireNotNull:
    """Demand a value in every row of each column, or in all but a share of them."""
    name = _table("require_not_null", table)
    return RequireNotNull(name, _columns("require_not_null", table, columns), _share(max_share))


def require_unique(table: str, *columns: str) -> RequireUnique:
    """Demand that no two rows have the same values in these columns together."""
    name = _table("require_unique", table)
    return RequireUnique(name, _columns("require_unique", table, columns))


def require_values(
    table: str,
    column: str,
    *,
    min: Value | None = None,  # noqa: A002 - as authors say it
    max: Value | None = None,  # noqa: A002 - as authors say it
    allowed: Collection[Value] | None = None,
    max_share: float = 0.0,
) -> RequireValues:
    """Demand values in a range, ends included, or among some; a missing value passes.

    A datetime without a time zone is UTC where the column has one.
    """
    name = _table("require_values", table)
    low, high = (None if end is None else _bound(table, end) for end in (min, max))
    among = None
    if allowed is not None:
        among = tuple(sorted((_bound(table, value) for value in allowed), key=str))
    given = [bound for bound in (low, high, *(among or ())) if bound is not None]
    if not given or (among is not None and (low or high)):
        raise _wrong("require_values", table, column, "give min and max, or allowed")
    if len({(bound.kind, bound.zoned) for bound in given}) > 1:
        raise _wrong("require_values", table, column, "give values of one type")
    if given[0].kind == "truth" and among is None:
        raise _wrong("require_values", table, column, "give allowed={True} or allowed={False}")
    (column,) = _columns("require_values", table, (column,))
    return RequireValues(name, column, low, high, among, _share(max_share))


def require_foreign_key(
    table: str, columns: str | Sequence[str], other: str, other_columns: str | Sequence[str] = ()
) -> RequireForeignKey:
    """Demand that every key is in another table; the other's columns have the same names, or these.

    A key with a missing part passes.
    """
    ours = (columns,) if isinstance(columns, str) else tuple(columns)
    theirs = (other_columns,) if isinstance(other_columns, str) else tuple(other_columns)
    ours = _columns("require_foreign_key", table, ours)
    theirs = theirs or ours
    if len(ours) != len(theirs):
        raise _wrong("require_foreign_key", table, "columns", "name as many columns on both sides")
    return RequireForeignKey(
        _table("require_foreign_key", table), ours, _table("require_foreign_key", other), theirs
    )


def max_drift(
    table: str, *, rows: float | None = None, mean: Mapping[str, float] | None = None
) -> MaxDrift:
    """Demand that the number of rows, or means of columns, stay within a share of the input's."""
    shares = [*(mean or {}).values(), *([] if rows is None else [rows])]
    if not shares or any(not (share >= 0 and math.isfinite(share)) for share in shares):
        raise _wrong("max_drift", table, "rows, mean", "give a share such as rows=0.2")
    if mean:
        _columns("max_drift", table, tuple(mean))
    return MaxDrift(_table("max_drift", table), rows, tuple((mean or {}).items()))


def expect(table: str, sql: str, *, max_share: float = 0.0) -> Expect:
    """Demand that a SQL expression is true for every row; on Spark tasks only."""
    if not isinstance(sql, str) or not sql.strip():
        raise _wrong("expect", table, repr(sql), "give an expression such as 'fare >= 0'")
    return Expect(_table("expect", table), sql.strip(), _share(max_share))


# --- what is refused -------------------------------------------------------------------------


def _table(guard: str, path: object) -> str:
    problem = refuse_path(path) if isinstance(path, str) else "is not a text"
    if problem:
        raise TaskDefinitionError(
            f"{guard}({path!r}): the path {problem}", remedy="use a '/' path below the workspace"
        )
    return str(path)


def _type(text: str) -> str:
    """Write a type as Spark does; the fields of a struct keep their names."""
    text = re.sub(r"\s*([<>,:()])\s*", r"\1", text.strip())
    outer, bracket, inner = text.partition("<")
    outer = outer.lower()
    return _ALIASES.get(outer, outer) + bracket + inner


def _columns(guard: str, table: str, columns: Sequence[object]) -> tuple[str, ...]:
    if not columns or not all(isinstance(name, str) and name for name in columns):
        raise _wrong(guard, table, repr(columns), "name one or more columns")
    return tuple(map(str, columns))


def _share(share: float) -> float:
    if not 0 <= share < 1:
        raise TaskDefinitionError(f"max_share={share!r}", remedy="use a share from 0 to below 1")
    return float(share)


def _bound(table: str, value: object) -> Bound:
    match value:
        case bool():
            return Bound("truth", value)
        case int():
            return Bound("number", int(value))
        case float() if math.isfinite(value):
            return Bound("number", float(value))
        case str():
            return Bound("text", value)
        case dt.datetime():
            zoned = value.utcoffset() is not None
            if zoned:
                value = value.astimezone(dt.UTC)
            return Bound("moment", value.replace(tzinfo=None).isoformat(sep=" "), zoned)
        case dt.date():
            return Bound("date", value.isoformat())
        case _:
            raise _wrong(
                "require_values", table, repr(value), "use numbers, texts, dates or datetimes"
            )


def _wrong(guard: str, table: object, what: str, remedy: str) -> TaskDefinitionError:
    return TaskDefinitionError(f"{guard}({table!r}): {what}", remedy=remedy)
