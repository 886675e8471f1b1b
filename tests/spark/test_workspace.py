"""``SparkWorkspace``: tables by path, nothing outside of the workspace (X1, V6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from perago.errors import UnsafePathError, UsageError
from perago.protocol.values import ChangeSet
from perago.spark import SparkWorkspace
from perago.spark.places import LocalPlace
from perago.spark.session import AttemptSession


@pytest.fixture
def workspace(attempt: AttemptSession, tmp_path: Path) -> SparkWorkspace:
    root = tmp_path / "with blank, ünïcode & 100%"
    root.mkdir()
    return SparkWorkspace(attempt, LocalPlace(root, {}), lambda: ChangeSet(("x",)))


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../../b", "a//b", "./a", "a\\b", "a\0"])
def test_v6_no_path_leads_out(workspace: SparkWorkspace, path: str) -> None:
    for attempt in (workspace.path, workspace.exists, workspace.read.parquet, workspace.table):
        with pytest.raises(UnsafePathError, match="below the workspace"):
            attempt(path)
    with pytest.raises(UnsafePathError):
        workspace.write(workspace.spark.range(1), path)


@pytest.mark.parametrize("kind", ["parquet", "csv", "json", "orc"])
def test_x1_what_is_written_is_read_in_every_format(workspace: SparkWorkspace, kind: str) -> None:
    df = workspace.spark.range(6).selectExpr("id", "cast(id % 2 AS int) AS k")
    workspace.write(df, "a/table", format=kind, partition_by="k")
    found = workspace.table("a/table")
    assert found.count() == workspace.spark.sql("SELECT * FROM table").count() == 6
    assert {"id", "k"} == set(found.columns)


def test_x1_save_modes_do_what_they_say(workspace: SparkWorkspace) -> None:
    df = workspace.spark.range(4).coalesce(1)
    assert not workspace.exists("t")
    workspace.write(df, "t")
    assert workspace.exists("t")
    with pytest.raises(Exception, match="PATH_ALREADY_EXISTS"):
        workspace.write(df, "t")
    workspace.write(df, "t", mode="append")
    assert workspace.read.parquet("t").count() == 8
    workspace.write(df, "t", mode="ignore")
    assert workspace.read.parquet("t").count() == 8
    workspace.write(df, "t", mode="overwrite")
    assert workspace.read.parquet("t").count() == 4
    with pytest.raises(UsageError, match="mode='replace'"):
        workspace.write(df, "t", mode="replace")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="not a place"):
        workspace.write(df, "t*")


def test_x1_overwriting_with_fewer_partitions_leaves_none_behind(
    workspace: SparkWorkspace,
) -> None:
    df = workspace.spark.range(9).selectExpr("id", "id % 3 AS k")
    workspace.write(df, "t", partition_by="k")
    workspace.write(df.where("k = 1"), "t", mode="overwrite", partition_by="k")
    assert workspace.read.parquet("t").count() == 3
    assert not workspace.exists("t/k=0")


def test_x1_dynamic_overwrite_replaces_only_the_partitions_it_writes(
    workspace: SparkWorkspace,
) -> None:
    df = workspace.spark.range(9).selectExpr("id", "id % 3 AS k")
    workspace.write(df, "t", partition_by=["k"])
    dynamic = {"partitionOverwriteMode": "dynamic"}
    changed = df.where("k = 1").selectExpr("id + 100 AS id", "k")
    workspace.write(changed, "t", mode="overwrite", partition_by=["k"], options=dynamic)
    rows = {(row["id"], row["k"]) for row in workspace.read.parquet("t").collect()}
    expected = {(n + 100 if n % 3 == 1 else n, n % 3) for n in range(9)}
    assert rows == expected


def test_x1_readers_take_options_schemas_and_patterns(workspace: SparkWorkspace) -> None:
    df = workspace.spark.range(3).selectExpr("id", "'x' AS name")
    workspace.write(df.coalesce(1), "in/a", format="csv")
    workspace.write(df.coalesce(1), "in/b", format="csv")
    read = workspace.read.option("header", value=True).schema("id int, name string")
    assert read.csv("in/*").count() == 6
    assert workspace.read.options(header=True).csv("in/a", "in/b").count() == 6
    assert workspace.read.text("in/a").count() == 4


def test_x1_the_diff_is_that_of_the_attempt(workspace: SparkWorkspace) -> None:
    assert workspace.diff() == ChangeSet(("x",))
