"""What data guardrails make of the numbers they are given (X5)."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from perago import TaskDefinitionError, data
from perago.protocol.data import (
    DataGuard,
    GuardResult,
    Mean,
    Measure,
    Measured,
    Nulls,
    Outside,
    Repeated,
    Table,
    refuse,
    summary,
)

COLUMNS = {"a": "bigint", "b": "string", "c": "array<int>", "d": "double"}


def _table(rows: int, found: dict[Measure, Measured] | None = None, **more: Any) -> Table:
    return Table(COLUMNS, rows, found or {}, **more)


def _violation(guard: DataGuard, table: Table | None, before: Table | None = None) -> str | None:
    return guard.verdict(table, before).violation


def test_rows_are_counted() -> None:
    guard = data.require_rows("t", 2, 4)
    assert _violation(guard, _table(1)) == "1 rows, at least 2 required"
    assert _violation(guard, _table(2)) is None
    assert _violation(guard, _table(5)) == "5 rows, at most 4 allowed"


def test_a_table_that_is_missing_or_broken_breaks_every_rule() -> None:
    guard = data.max_drift("t", rows=9)
    assert _violation(guard, None) == "there is no table at 't'"
    assert _violation(guard, _table(0, problem="cannot be read: x")) == "'t' cannot be read: x"


def test_few_rows_may_break_a_rule_that_allows_a_share() -> None:
    guard = data.require_not_null("t", "a", max_share=0.1)
    assert _violation(guard, _table(10, {Nulls("a"): Measured(1)})) is None
    told = _violation(guard, _table(10, {Nulls("a"): Measured(2)}))
    assert told == "2 of 10 rows have no 'a', at most 0.1 of them allowed"


def test_a_verdict_carries_counts_and_samples() -> None:
    guard = data.require_unique("t", "a", "b")
    found: dict[Measure, Measured] = {Repeated(("a", "b")): Measured(3, samples=("a=1, b=x",))}
    verdict = guard.verdict(_table(9, found))
    assert verdict.violation == "3 of 9 rows repeat a key (a, b)"
    facts = {"table": "t", "rows": 9, "offending": 3, "samples": ["a=1, b=x"]}
    assert verdict.facts() == facts
    assert verdict.guard == "require_unique('t', 'a', 'b')"


def test_a_measure_that_could_not_be_taken_is_a_violation() -> None:
    guard = data.require_values("t", "z", min=0)
    (measure,) = guard.measures()
    found = {measure: Measured(problem="column 'z' is missing")}
    assert _violation(guard, _table(3, found)) == "column 'z' is missing"


@pytest.mark.parametrize(
    ("column", "bound", "problem"),
    [
        ("a", 1, None),
        ("a", "x", "bigint, which is not compared with a text"),
        ("b", 1, None),
        ("b", dt.date(2026, 1, 1), None),
        ("b", True, "string, which is not compared with a truth"),
        ("c", 1, "array<int>, which is not compared with a number"),
        ("z", 1, "column 'z' is missing"),
    ],
)
def test_what_can_be_compared(column: str, bound: Any, problem: str | None) -> None:
    (measure,) = data.require_values("t", column, allowed=[bound]).measures()
    assert isinstance(measure, Outside)
    found = refuse(measure, COLUMNS)
    assert found is None if problem is None else problem in (found or "")


def test_schemas_are_compared_by_name_and_type() -> None:
    guard = data.require_schema("t", {"a": "long", "b": "bigint", "e": "date"})
    assert _violation(guard, _table(1)) == (
        "column 'e' is missing, column 'b' is string, not bigint, column 'c' is not expected, "
        "column 'd' is not expected"
    )
    assert _violation(data.require_schema("t", {"a": "int64"}, extra=True), _table(1)) is None


def test_drift_is_a_share_of_what_was() -> None:
    guard = data.max_drift("t", rows=0.5, mean={"d": 0.1})
    before = _table(10, {Mean("d"): Measured(value=2.0)})
    after = _table(15, {Mean("d"): Measured(value=2.2)})
    assert _violation(guard, after, before) is None
    assert _violation(guard, after, None) is None
    wild = _table(16, {Mean("d"): Measured(value=2.3)})
    assert _violation(guard, wild, before) == (
        "10 rows became 16, at most 50% allowed, the mean of 'd' went from 2 to 2.3, at most 10% "
        "allowed"
    )
    empty = _table(10, {Mean("d"): Measured(value=None)})
    assert "went from 2 to none" in (_violation(guard, empty, before) or "")


def test_a_commit_says_what_was_checked() -> None:
    verdicts = [
        GuardResult("g", "t", rows=1200),
        GuardResult("h", "t", rows=1200),
        GuardResult("i", "u"),
    ]
    assert summary(verdicts) == "3 passed: t 1,200 rows"


@pytest.mark.parametrize(
    "declare",
    [
        lambda: data.require_rows("../t"),
        lambda: data.require_rows("/t"),
        lambda: data.require_rows("t", -1),
        lambda: data.require_rows("t", 3, 2),
        lambda: data.require_schema("t", {}),
        lambda: data.require_schema("t", {"a": "bigeint"}),
        lambda: data.require_not_null("t"),
        lambda: data.require_not_null("t", "a", max_share=1.0),
        lambda: data.require_unique("t", ""),
        lambda: data.require_values("t", "a"),
        lambda: data.require_values("t", "a", min=1, allowed={2}),
        lambda: data.require_values("t", "a", min=1, max="x"),
        lambda: data.require_values("t", "a", min=float("nan")),
        lambda: data.require_foreign_key("t", ["a", "b"], "u", "a"),
        lambda: data.max_drift("t"),
        lambda: data.max_drift("t", rows=-1),
        lambda: data.expect("t", " "),
    ],
)
def test_t1_a_wrong_rule_is_refused_at_import(declare: Any) -> None:
    with pytest.raises(TaskDefinitionError) as refused:
        declare()
    assert refused.value.remedy
