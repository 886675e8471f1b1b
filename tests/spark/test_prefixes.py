"""Huge prefixes as Spark jobs: X6."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bench.crowd import NEW, OLD, crowd
from perago.dev import LakeFSEndpoint
from perago.errors import UnsafePathError
from perago.history.event_log import EventLog
from perago.history.figures import AttemptFilter, figures
from perago.history.rows import attempt_row
from perago.protocol.paths import Selection
from perago.spark import figures as by_spark
from perago.spark import prefixes
from perago.spark.copying import Copy, copy
from perago.spark.origin import Origin
from perago.spark.session import AttemptSession
from perago.stores.embedded import EmbeddedStore
from perago.testing import FailAt, Lab, MoveHeadAt, StaleAt
from tests.lakefs_lab import ArrangedLakeFS, new_name
from tests.lifecycle.tasks import GIVEN, misbehave, touch, write

CROWD = Origin("/nowhere", "/", "bench.crowd:crowd")


@pytest.fixture
def spark(attempt: AttemptSession) -> SparkSession:
    return attempt.open()


def test_x6_a_huge_listing_is_compared_without_being_held(spark: SparkSession) -> None:
    left = prefixes.objects(spark, CROWD, "any", OLD)
    right = prefixes.objects(spark, CROWD, "any", NEW)
    assert left.rdd.getNumPartitions() >= 8
    rows = prefixes.diff(left, right).groupBy("kind").count().collect()
    assert {row["kind"]: row["count"] for row in rows} == crowd().kinds


def test_x6_a_huge_listing_is_checked_in_parts(spark: SparkSession) -> None:
    found = prefixes.objects(spark, CROWD, "any", NEW, "lake/z")
    total = prefixes.verify(found.limit(20_000), prefixes.Check(CROWD, "any", NEW), 4)
    assert total.objects == 20_000
    assert total.corrupt == total.damaged == len(total.named) > 0
    assert all(damage.key.endswith("777.parquet") for damage in total.named)


def test_g2_an_unknown_checksum_is_never_equal(spark: SparkSession) -> None:
    columns = "key STRING, size LONG, checksum STRING"
    left = spark.createDataFrame([("a", 1, ""), ("b", 1, "md5:1"), ("c", 1, "md5:1")], columns)
    right = spark.createDataFrame([("a", 1, ""), ("b", 1, "md5:1"), ("c", 2, "md5:1")], columns)
    rows = prefixes.diff(left, right).collect()
    assert {(row["key"], row["kind"]) for row in rows} == {("a", "changed"), ("c", "changed")}


def test_x6_what_is_damaged_in_the_embedded_store_is_named(
    spark: SparkSession, tmp_path: Path
) -> None:
    store = EmbeddedStore(tmp_path / "store")
    store.create_repository("data")
    entries = store.put_all("data", "main", {f"k/{n}": f"{n}".encode() for n in range(40)})
    commit = store.commit_branch("data", "main", "files").id
    paths = [store._objects.path(entry) for entry in entries]  # noqa: SLF001 - to damage them
    paths[7].unlink()
    paths[8].chmod(0o644)
    paths[8].write_bytes(b"x")
    origin = Origin(str(tmp_path), str(tmp_path))
    found = prefixes.objects(spark, origin, "data", commit)
    total = prefixes.verify(found, prefixes.Check(origin, "data", commit), 3)
    assert (total.objects, total.missing, total.corrupt) == (40, 1, 1)
    assert {(each.key, each.problem) for each in total.named} == {
        ("k/7", "missing"),
        ("k/8", "corrupt"),
    }


@pytest.fixture
def served(lakefs_server: LakeFSEndpoint, tmp_path: Path) -> Iterator[ArrangedLakeFS]:
    (tmp_path / ".env").write_text(
        f"LAKECTL_SERVER_ENDPOINT_URL={lakefs_server.endpoint}\n"
        f"LAKECTL_CREDENTIALS_ACCESS_KEY_ID={lakefs_server.access_key_id}\n"
        f"LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY={lakefs_server.secret}\n"
        f"PERAGO_CACHE_ROOT={tmp_path / 'workers'}\n"
    )
    store = ArrangedLakeFS(lakefs_server, tmp_path / "cache")
    yield store
    store.close()


def test_x6_objects_on_lakefs_are_read_again_and_compared_across_stores(
    spark: SparkSession, served: ArrangedLakeFS, tmp_path: Path
) -> None:
    repository = new_name()
    served.create_repository(repository)
    for number in range(30):
        served.put(repository, "main", f"k/{number:02}", f"{number}".encode())
    old = served.commit_branch(repository, "main", "files").id
    served.put(repository, "main", "k/05", b"other")
    served.remove(repository, "main", "k/06")
    new = served.commit_branch(repository, "main", "others").id
    origin = Origin(str(tmp_path), str(tmp_path), "lakefs")
    left = prefixes.objects(spark, origin, repository, old)
    right = prefixes.objects(spark, origin, repository, new)
    rows = prefixes.diff(left, right).orderBy("key").collect()
    assert [(row["key"], row["kind"]) for row in rows] == [
        ("k/05", "changed"),
        ("k/06", "removed"),
    ]
    well = prefixes.verify(right, prefixes.Check(origin, repository, new), 2)
    assert (well.objects, well.damaged, well.unchecked) == (29, 0, 0)
    # The listing of one commit checked against another: what verify must notice.
    ill = prefixes.verify(left, prefixes.Check(origin, repository, new), 2)
    assert [(each.key, each.problem) for each in ill.named] == [
        ("k/05", "corrupt"),
        ("k/06", "missing"),
    ]


def test_spark_and_one_process_count_the_same(spark: SparkSession, tmp_path: Path) -> None:
    lab = Lab(tmp_path / "home")
    lab.run(write, {"text": "one"}, files=GIVEN)
    lab.run(touch)
    lab.retry(lab.run(write, {"text": "two"}, faults=[FailAt("after publish")]))
    lab.run(write, {"text": "3"}, faults=[StaleAt("before second attempt fence")])
    strangers = [MoveHeadAt("before stage"), MoveHeadAt("after stage", {"more.txt": "more"})]
    lab.run(write, {"text": "4"}, faults=strangers)
    lab.run(misbehave, {"how": "raise"})
    log = EventLog(tmp_path / "home" / "events.sqlite")
    plain = figures(attempt_row(found) for found in log.by_execution(0, log.last()))
    options = {"home": str(tmp_path / "home"), "what": "attempts"}
    attempts = spark.read.format("perago").options(**options).load()
    counted, points = by_spark.report(attempts, AttemptFilter(), 100)
    assert [each.as_json() for each in counted] == [each.as_json() for each in plain]
    writes = next(each for each in plain if each.task == "write")
    assert writes.tallies.refused == 2
    assert writes.tallies.replaced == 1
    assert len(points) == sum(each.publish.count for each in plain if each.publish)


@pytest.fixture
def filled(tmp_path: Path) -> tuple[EmbeddedStore, Origin]:
    store = EmbeddedStore(tmp_path / "store")
    store.create_repository("data")
    files = {f"k/{n % 3}/{n}": f"{n}".encode() for n in range(30)}
    store.put_all("data", "main", {**files, "k/marker/": b"", "other": b"other"})
    store.commit_branch("data", "main", "files")
    return store, Origin(str(tmp_path), str(tmp_path))


def copied(spark: SparkSession, filled: tuple[EmbeddedStore, Origin], to: Path) -> tuple[int, int]:
    store, origin = filled
    commit = store.head("data", "main").id
    found = prefixes.objects(spark, origin, "data", commit, "k")
    work = Copy(origin, "data", commit, Selection("k"), str(to))
    return copy(found, work, 3)


def test_x6_a_prefix_is_copied_to_files(
    spark: SparkSession, filled: tuple[EmbeddedStore, Origin], tmp_path: Path
) -> None:
    to = tmp_path / "to"
    assert copied(spark, filled, to) == (30, 50)
    assert {path.relative_to(to).as_posix() for path in to.rglob("*") if path.is_file()} == {
        f"{n % 3}/{n}" for n in range(30)
    }
    assert (to / "2" / "29").read_bytes() == b"29"


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("k/0/../up", "segment '..'"),
        ("k/ONE/1", "one name to some file systems|differ only by case"),
        ("k/0/3/deeper", "one name to some file systems|both a file and a directory"),
    ],
)
def test_d2_nothing_is_copied_when_a_name_cannot_be_a_file(
    spark: SparkSession,
    filled: tuple[EmbeddedStore, Origin],
    tmp_path: Path,
    key: str,
    words: str,
) -> None:
    store, _ = filled
    store.put_all("data", "main", {key: b"x", "k/one/1": b"x"})
    store.commit_branch("data", "main", "bad")
    with pytest.raises(UnsafePathError, match=words):
        copied(spark, filled, tmp_path / "to")
    assert not (tmp_path / "to").exists()
