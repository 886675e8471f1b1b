"""Guardrails on tables in an attempt, without Spark (X5)."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import BaseModel

from perago import WorkspaceSpec, require_file, task
from perago.brokers.conductor.taskdef import taskdef
from perago.data import max_drift, require_not_null, require_rows, require_unique, require_values
from perago.protocol.values import Status
from perago.tasks.declaration import definition_of
from perago.testing import Lab

GOOD = "id,price\n1,2.5\n2,3.5\n3,4.5\n"


class Given(BaseModel):
    content: str


@task(
    name="guarded",
    owner_email="data@example.com",
    workspace=WorkspaceSpec(
        prefix="shop",
        pre=[require_rows("in.csv")],
        post=[
            require_not_null("out.csv", "id"),
            require_unique("out.csv", "id"),
            require_file("out.csv"),
            require_values("out.csv", "price", min=0, max=100),
            max_drift("out.csv", rows=0.5, mean={}),
        ],
    ),
)
def guarded(workspace: Path, params: Given) -> Given:
    (workspace / "out.csv").write_text(params.content)
    return params


def test_x5_a_good_table_is_published_and_the_commit_says_so(perago_lab: Lab) -> None:
    run = perago_lab.run(guarded, {"content": GOOD}, files={"shop/in.csv": "id\n1\n"})
    assert run.completed, run.reason
    assert run.history[0].metadata["perago.data_guards"] == "4 passed: out.csv 3 rows"
    said = run.guards
    assert [each["table"] for each in said] == ["in.csv", *["out.csv"] * 4]
    assert not any(each["violation"] for each in said)


def test_x5_the_output_of_a_refused_attempt_shows_the_offending_rows(perago_lab: Lab) -> None:
    bad = "id,price\n1,-2\n1,5\n"
    run = perago_lab.run(guarded, {"content": bad}, files={"shop/in.csv": "id\n1\n"})
    assert run.status is Status.FAILED
    unique, values = run.guards[2:4]
    assert unique["violation"] == "1 of 2 rows repeat a key (id)"
    assert unique["samples"] == ["id=1, times=2"]
    assert (values["rows"], values["offending"]) == (2, 1)


def test_x5_a_taskdef_tells_of_guards_where_there_are_some() -> None:
    schema = taskdef(definition_of(guarded))["outputSchema"]["data"]
    assert schema["properties"]["guards"]["type"] == "array"
    assert "guards" not in schema["required"]


def test_x5_one_failed_try_shows_all_that_is_wrong(perago_lab: Lab) -> None:
    bad = "id,price\n1,-2\n1,abc\n,3\n"
    run = perago_lab.run(guarded, {"content": bad}, files={"shop/in.csv": "id\n1\n"})
    assert run.status is Status.FAILED
    assert "require_not_null('out.csv', 'id'): 1 of 3 rows have no 'id'" in run.reason
    assert "require_unique('out.csv', 'id'): 1 of 3 rows repeat a key (id)" in run.reason
    assert "(for example id=1, times=2)" in run.reason
    assert "2 of 3 rows have a 'price' outside of min=0, max=100" in run.reason
    assert "look at these rows" in run.reason
    assert run.events.count("guard") == 6
    assert "shop/out.csv" not in run.files


def test_x5_a_bad_input_is_terminal(perago_lab: Lab) -> None:
    run = perago_lab.run(guarded, {"content": GOOD}, files={"shop/in.csv": "id\n"})
    assert run.status is Status.FAILED_WITH_TERMINAL_ERROR
    assert "require_rows('in.csv', min=1): 0 rows, at least 1 required" in run.reason


def test_x5_drift_is_against_the_input_not_against_what_the_body_left(perago_lab: Lab) -> None:
    files = {"shop/in.csv": "id\n1\n", "shop/out.csv": GOOD}
    twice = GOOD + "4,1\n5,1\n"
    run = perago_lab.run(guarded, {"content": twice}, files=files)
    assert "max_drift('out.csv', rows=0.5): 3 rows became 5, at most 50% allowed" in run.reason
    assert perago_lab.run(guarded, {"content": GOOD + "4,1\n"}).completed


class Fares(BaseModel):
    fares: list[float]


@task(
    name="fared",
    owner_email="data@example.com",
    workspace=WorkspaceSpec(post=[max_drift("trips.parquet", rows=5, mean={"fare": 0.25})]),
)
def fared(workspace: Path, params: Fares) -> Fares:
    table = pa.table({"trip": list(range(len(params.fares))), "fare": params.fares})
    pq.write_table(table, workspace / "trips.parquet")
    return Fares(fares=[])


@pytest.mark.parametrize(
    ("fares", "rows"),
    [
        ([10.0, 900.0, 12.0], "(for example fare=900.0, trip=1)"),
        ([10.0, 1.0, 2.0], "(for example fare=1.0, trip=1 | fare=2.0, trip=2)"),
        ([10.0, float("inf")], "(for example fare=inf, trip=1)"),
    ],
)
def test_x5_a_mean_that_drifted_shows_rows_to_look_at(
    perago_lab: Lab, fares: list[float], rows: str
) -> None:
    first = perago_lab.run(fared, {"fares": [10.0, 11.0]})
    assert first.completed, first.reason
    run = perago_lab.run(fared, {"fares": [str(fare) for fare in fares]})
    assert run.status is Status.FAILED
    assert f"allowed {rows}; look at these rows, then correct" in run.reason
    assert run.guards[0]["samples"]


def test_x5_a_count_that_drifted_has_no_rows_to_look_at(perago_lab: Lab) -> None:
    assert perago_lab.run(fared, {"fares": [10.0]}).completed
    run = perago_lab.run(fared, {"fares": [10.0] * 9})
    assert run.reason.endswith(
        "1 rows became 9, at most 500% allowed; correct the data or the task"
    )


@task(
    name="wide",
    owner_email="data@example.com",
    workspace=WorkspaceSpec(post=[require_values("wide.csv", "n", max=1)]),
)
def wide(workspace: Path, params: Fares) -> Fares:
    names = ",".join(f"column_{number}" for number in range(9))
    (workspace / "wide.csv").write_text(f"n,{names}\n2,{','.join(['x' * 30] * 9)}\n")
    return params


def test_x5_rows_leave_room_for_what_to_do(perago_lab: Lab) -> None:
    run = perago_lab.run(wide, {"fares": []})
    assert f"(for example n=2, column_0={'x' * 30}, …); look at these rows" in run.reason
    assert len(run.guards[0]["samples"][0]) > 150
