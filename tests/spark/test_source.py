"""``spark.read.format("perago")``: history and objects as tables (K4, X6)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StructType

from perago.dev import LakeFSEndpoint
from perago.history.rows import AttemptRow, PublicationRow
from perago.spark.session import AttemptSession
from perago.spark.source import _SCHEMAS
from perago.testing import FailAt, Lab
from tests.lakefs_lab import ArrangedLakeFS, new_name
from tests.lifecycle.tasks import GIVEN, touch, write, write_hard


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """Three publications, one replaced, one that changed nothing, one that failed."""
    lab = Lab(tmp_path_factory.mktemp("home"))
    lab.run(write, {"text": "one"}, files=GIVEN)
    lab.run(touch)
    killed = lab.run(write, {"text": "two"}, faults=[FailAt("after publish")])
    lab.retry(killed)
    lab.run(write, {"text": "three"}, faults=[FailAt("before body")])
    lab.run(write_hard, {"text": "three"})
    return lab


@pytest.fixture
def spark(attempt: AttemptSession) -> SparkSession:
    return attempt.open()


def table(spark: SparkSession, lab: Lab, what: str, **options: str) -> DataFrame:
    home = str(lab.attempt_dirs.parent)
    return spark.read.format("perago").options(home=home, what=what, **options).load()


@pytest.mark.parametrize(
    ("what", "kind"), [("attempts", AttemptRow), ("publications", PublicationRow)]
)
def test_the_fields_of_rows_are_the_columns_of_tables(
    spark: SparkSession, what: str, kind: type
) -> None:
    parsed = StructType.fromDDL(_SCHEMAS[what])
    assert isinstance(parsed, StructType)
    assert parsed.names == [each.name for each in fields(kind)]


def test_k4_attempts_are_rows(spark: SparkSession, lab: Lab) -> None:
    rows = table(spark, lab, "attempts").orderBy("started_at").collect()
    assert [row.task for row in rows] == ["write", "touch", "write", "write", "write", "hard"]
    assert [row.status for row in rows].count("DIED") == 2
    assert rows[0].kind == "merge"
    assert rows[0].files_read == 1
    assert rows[0].bytes_written == 3
    assert rows[0].added == 1
    assert rows[0].phases["publish"] == rows[0].publish_seconds > 0
    assert rows[0].after_body_seconds >= rows[0].publish_seconds
    assert rows[4].failed_in == "body"


def test_k4_publications_are_rows_with_what_they_replaced(spark: SparkSession, lab: Lab) -> None:
    options = {"repository": lab.repository, "branch": "main"}
    rows = table(spark, lab, "publications", **options).orderBy("published_at").collect()
    assert [row.kind for row in rows] == ["merge", "keep", "merge", "replace", "merge"]
    killed, retried = rows[2], rows[3]
    assert retried.replaced == killed.ref
    assert retried.parent == killed.parent
    assert (killed.visible, retried.visible, retried.retry) == (False, True, 1)
    assert rows[4].fence == "hard"
    assert rows[4].ref == lab.head.id
    without = table(spark, lab, "publications").orderBy("published_at").collect()
    assert [row.ref for row in without] == [row.ref for row in rows]
    assert {row.visible for row in without} == {None}


def test_k4_a_publication_of_another_machine_is_told_by_its_commit(
    spark: SparkSession, lab: Lab, tmp_path: Path
) -> None:
    (tmp_path / "store").symlink_to(lab.attempt_dirs.parent / "store")
    options = {"home": str(tmp_path), "repository": lab.repository}
    found = spark.read.format("perago").options(**options).load()
    rows = found.orderBy("published_at").collect()
    assert {row.kind for row in rows} == {"merge", "replace"}
    assert all(row.visible and row.publish_seconds is None for row in rows)
    assert rows[-1].ref == lab.head.id
    assert rows[-1].step == "hard"


def test_filters_are_answered_by_the_event_log(spark: SparkSession, lab: Lab) -> None:
    every = table(spark, lab, "attempts")
    first = every.orderBy("started_at").first()
    assert first is not None
    for condition, count in (
        (F.col("task") == "write", 4),
        ((F.col("task") == "write") & (F.col("retry") == 1), 1),
        (F.col("workflow_id") == first.workflow_id, 1),
        (F.col("started_at") > first.started_at, 5),
        ((F.col("started_at") >= first.started_at) & (F.col("kind") == "merge"), 3),
    ):
        assert every.where(condition).count() == count, condition
    plan = every.where(F.col("task") == "write")._jdf.queryExecution().toString()  # noqa: SLF001
    assert "Filter (" not in plan.partition("Physical Plan")[2]  # nothing is left for Spark to do


def test_x6_objects_of_a_commit_and_of_a_part_of_it(spark: SparkSession, lab: Lab) -> None:
    options = {"repository": lab.repository}
    every = table(spark, lab, "objects", **options)
    listed = list(lab.store.listing(lab.repository, "main", ""))
    found = [tuple(row) for row in every.orderBy("key").collect()]
    assert found == [(info.key, info.size, info.checksum) for info in listed]
    below = table(spark, lab, "objects", **options, prefix="ws")
    assert {row.key for row in below.collect()} == {"ws/in.txt", "ws/out.txt"}
    for condition, keys in (
        (F.col("key").startswith("ws/o"), ["ws/out.txt"]),
        (F.col("key") == "ws/in.txt", ["ws/in.txt"]),
        (F.col("key") > "ws/in.txt", ["ws/out.txt", "ws2/near.txt"]),
        (
            (F.col("key") >= "ws/in.txt") & (F.col("key") <= "ws/out.txt"),
            ["ws/in.txt", "ws/out.txt"],
        ),
        (F.col("key").startswith("zzz"), []),
    ):
        assert [row.key for row in every.where(condition).orderBy("key").collect()] == keys


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"what": "nothing"}, "no table 'nothing'"),
        ({"what": "objects", "repository": "nope"}, "nope"),
        ({"home": "/no/such/home"}, "no Perago home"),
        ({"secret_access_key": "hush"}, "no option 'secret_access_key'"),
    ],
)
def test_mistakes_are_told_in_a_sentence(
    spark: SparkSession, lab: Lab, options: dict[str, str], words: str
) -> None:
    given = {"home": str(lab.attempt_dirs.parent), **options}
    with pytest.raises(PySparkException, match=words):
        spark.read.format("perago").options(**given).load().collect()


@pytest.fixture
def served(lakefs_server: LakeFSEndpoint, tmp_path: Path) -> Iterator[tuple[Lab, LakeFSEndpoint]]:
    store = ArrangedLakeFS(lakefs_server, tmp_path / "cache")
    (tmp_path / ".env").write_text(
        f"LAKECTL_SERVER_ENDPOINT_URL={lakefs_server.endpoint}\n"
        f"LAKECTL_CREDENTIALS_ACCESS_KEY_ID={lakefs_server.access_key_id}\n"
        f"LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY={lakefs_server.secret}\n"
        f"PERAGO_CACHE_ROOT={tmp_path / 'workers'}\n"
    )
    yield Lab(tmp_path / "home", store=store, repository=new_name()), lakefs_server
    store.close()


def test_i7_on_lakefs_workers_find_their_own_keys(
    spark: SparkSession, served: tuple[Lab, LakeFSEndpoint], tmp_path: Path
) -> None:
    lab, server = served
    lab.run(write, {"text": "one"}, files=GIVEN)
    killed = lab.run(write, {"text": "two"}, faults=[FailAt("after publish")])
    lab.retry(killed)
    options = {"store": "lakefs", "directory": str(tmp_path), "repository": lab.repository}
    objects = table(spark, lab, "objects", **options, ref=lab.head.id)
    listed = lab.store.listing(lab.repository, lab.head.id, "")
    assert {tuple(row) for row in objects.collect()} == {
        (info.key, info.size, info.checksum) for info in listed
    }
    rows = table(spark, lab, "publications", **options).orderBy("published_at").collect()
    assert [(row.kind, row.visible) for row in rows] == [
        ("merge", True),
        ("merge", False),
        ("replace", True),
    ]
    plan = objects._jdf.queryExecution().toString()  # noqa: SLF001 - what the UI shows
    conf = str(spark.sparkContext.getConf().getAll())
    assert server.secret not in plan + conf


def test_repositories_of_one_name_in_two_stores_are_told_apart(
    spark: SparkSession, served: tuple[Lab, LakeFSEndpoint], tmp_path: Path
) -> None:
    lab, _ = served
    lab.run(write, {"text": "one"}, files=GIVEN)
    local = Lab(tmp_path / "home", repository=lab.repository)
    local.run(write, {"text": "two"}, files=GIVEN)
    local.run(write, {"text": "three"})
    place = {"directory": str(tmp_path), "repository": lab.repository}
    for kind, count, own in (("lakefs", 1, lab), ("embedded", 2, local)):
        rows = table(spark, own, "publications", **place, store=kind).collect()
        assert [(row.store, row.visible) for row in rows] == [(kind, True)] * count
        assert table(spark, own, "attempts", store=kind).count() == count
    both = table(spark, lab, "attempts").collect()
    assert sorted(row.store for row in both) == ["embedded", "embedded", "lakefs"]


def test_a_log_that_does_not_name_the_store_is_told_apart_by_its_commits(
    spark: SparkSession, served: tuple[Lab, LakeFSEndpoint], tmp_path: Path
) -> None:
    lab, _ = served
    lab.run(write, {"text": "one"}, files=GIVEN)
    local = Lab(tmp_path / "home", repository=lab.repository)
    local.run(write, {"text": "two"}, files=GIVEN)
    with sqlite3.connect(tmp_path / "home" / "events.sqlite") as log:
        log.execute("UPDATE events SET facts = json_remove(facts, '$.store')")
    place = {"directory": str(tmp_path), "repository": lab.repository}
    for kind in ("lakefs", "embedded"):
        rows = table(spark, lab, "publications", **place, store=kind).collect()
        assert [row.visible for row in rows] == [True]
