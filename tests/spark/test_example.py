"""The pipeline of ``make run``: right answers, refused batches, one publication for each step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from examples.trips import tasks
from perago.testing import FailAt, Lab, Run

# Dozens of Spark jobs: seconds on a quiet machine, a minute on a loaded one.
pytestmark = pytest.mark.usefixtures("jvm")
ROWS = 3000


def _day(lab: Lab, batch: int) -> None:
    params: dict[str, object] = {"batch": batch, "rows": ROWS}
    steps: list[tuple[Callable[..., Any], dict[str, object]]] = [
        (tasks.land, params),
        (tasks.clean, params),
        (tasks.daily, {}),
        (tasks.hourly, {}),
        (tasks.routes, {}),
        (tasks.reconcile, {}),
    ]
    for step, given in steps:
        run = lab.run(step, given)
        assert run.completed, run.reason


def _checkout(run: Run, target: Path) -> None:
    for name, content in run.files.items():
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def test_the_gold_tables_are_what_duckdb_makes_of_the_same_files(
    perago_lab: Lab, tmp_path: Path
) -> None:
    _day(perago_lab, 1)
    _day(perago_lab, 2)
    run = perago_lab.run(tasks.draw, {})
    assert run.completed, run.reason
    _checkout(run, tmp_path / "lake")
    lake = tmp_path / "lake"
    db = duckdb.connect()
    files = f"'{lake}/silver/trips/*/*.parquet'"
    options = "hive_partitioning=true, hive_types={'day': VARCHAR}"
    db.execute(f"CREATE VIEW trips AS FROM read_parquet({files}, {options})")
    db.execute(f"CREATE VIEW zones AS FROM '{lake}/silver/zones/*.parquet'")
    for table, query in _QUERIES.items():
        expected = db.execute(query).fetchall()
        found = db.execute(f"FROM '{lake}/gold/{table}/*.parquet'").fetchall()
        assert [_plain(row) for row in found] == [_plain(row) for row in expected], table
    assert (lake / "gold/trips.png").read_bytes().startswith(b"\x89PNG")
    # Some trips of the second day arrived late: they count on the first.
    days = {path.name for path in (lake / "silver/trips").iterdir()}
    assert days == {"day=2026-03-02", "day=2026-03-03"}
    late = db.execute(
        "SELECT count(*) FROM trips WHERE day = '2026-03-02' AND trip_id LIKE '002-%'"
    ).fetchall()
    assert late[0][0] > 0


_QUERIES = {
    "daily": "SELECT CAST(day AS DATE), borough, count(*), sum(fare), round(avg(distance_km), 3)"
    " FROM trips JOIN zones ON pickup_zone = zone_id GROUP BY ALL ORDER BY 1, 2",
    "hourly": "SELECT isodow(pickup_at) - 1, hour(pickup_at), count(*), round(avg(distance_km), 3)"
    " FROM (SELECT timezone('UTC', pickup_at) AS pickup_at, distance_km FROM trips)"
    " GROUP BY ALL ORDER BY 1, 2",
    "routes": "SELECT pickup_zone, dropoff_zone, count(*), sum(fare) FROM trips"
    " GROUP BY ALL ORDER BY 3 DESC, 1, 2 LIMIT 50",
}


def _plain(row: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row)


def test_x5_a_bad_batch_is_refused_and_the_good_one_is_published(perago_lab: Lab) -> None:
    first = {"batch": 1, "rows": ROWS}
    for step in (tasks.land, tasks.clean):
        assert perago_lab.run(step, first).completed
    cents = {"batch": 2, "rows": ROWS, "in_cents": True}
    assert perago_lab.run(tasks.land, cents).completed
    before = perago_lab.head
    refused = perago_lab.run(tasks.clean, cents)
    assert not refused.completed
    assert "max_drift('silver/trips', fare=0.25)" in refused.reason
    assert perago_lab.head == before
    good = {"batch": 2, "rows": ROWS}
    assert perago_lab.run(tasks.land, good).completed
    cleaned = perago_lab.run(tasks.clean, good, faults=[FailAt("after publish")])
    retried = cleaned.retry()
    assert retried.completed, retried.reason
    assert len(retried.history) == 2
    said = retried.history[0].metadata["perago.data_guards"]
    assert said.startswith("8 passed: silver/trips ")
    names = [key for key in retried.files if key.startswith("silver/trips/")]
    assert names
    assert all(key.endswith(".parquet") for key in names)


def test_the_first_batch_may_be_a_whole_week(perago_lab: Lab) -> None:
    week = {"batch": 1, "days": 7, "rows": ROWS}
    landed = perago_lab.run(tasks.land, week)
    assert landed.completed, landed.reason
    cleaned = perago_lab.run(tasks.clean, week)
    assert cleaned.completed, cleaned.reason
    days = {f"day=2026-03-0{day}" for day in range(2, 9)}
    for table in ("bronze/trips/", "silver/trips/"):
        found = [key.split("/")[2] for key in cleaned.files if key.startswith(table)]
        assert sorted(found) == sorted(days), table  # one file for each day
    counted = perago_lab.run(tasks.hourly, {})
    assert counted.completed, counted.reason
    assert perago_lab.run(tasks.daily, {}).completed
    # The next day is landed beside them, and the week stays as it is.
    eighth = perago_lab.run(tasks.land, {"batch": 8, "rows": 500})
    assert {key for key in cleaned.files if key.startswith("bronze/")} < {*eighth.files}


def test_batches_are_the_same_on_every_machine(perago_lab: Lab, tmp_path: Path) -> None:
    first = perago_lab.run(tasks.land, {"batch": 3, "rows": 500})
    lines = b"".join(v for k, v in sorted(first.files.items()) if "trips/" in k).splitlines()
    again = perago_lab.run(tasks.land, {"batch": 3, "rows": 500})
    same = b"".join(v for k, v in sorted(again.files.items()) if "trips/" in k).splitlines()
    assert sorted(lines) == sorted(same)
    assert len(lines) > 500
