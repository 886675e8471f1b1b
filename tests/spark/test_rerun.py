"""The same step on the same input makes the same files, so that a rerun changes nothing (X13)."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from perago.dev import LakeFSEndpoint
from perago.protocol.parts import part_of
from perago.spark.jvm import JVM
from perago.testing import FailAt, Lab, Run
from tests.lakefs_lab import ArrangedLakeFS, new_name
from tests.spark import rerun_tasks as tasks

pytestmark = pytest.mark.usefixtures("jvm")


@pytest.fixture(params=["embedded", "lakefs"])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    if request.param == "embedded":
        yield request.getfixturevalue("perago_lab")
        return
    server: LakeFSEndpoint = request.getfixturevalue("lakefs_server")
    store = ArrangedLakeFS(server, tmp_path / "worker")
    made = Lab(tmp_path / "lab", store=store, repository=new_name())
    yield made
    made.close()


def done(lab: Lab, what: str, rows: int = 12) -> Run:
    run = lab.run(tasks.local, {"what": what, "rows": rows})
    assert run.completed, run.reason
    return run


def rows(files: dict[str, bytes], table: str) -> int:
    found = [content for name, content in files.items() if name.startswith(f"lake/{table}/")]
    return sum(pq.read_metadata(io.BytesIO(content)).num_rows for content in found)


@pytest.mark.parametrize("what", ["tables", "formats", "own_writer"])
def test_x13_a_rerun_makes_no_commit(lab: Lab, what: str) -> None:
    first = done(lab, what)
    second = done(lab, what)
    assert second.ref == first.ref == lab.head.id
    assert "committed" not in second.events
    third = done(lab, what, rows=13)
    assert third.ref != first.ref


def test_x13_a_rerun_in_another_jvm_makes_no_commit(perago_lab: Lab) -> None:
    """Every JVM has its own order of encodings in the footer of a Parquet file."""
    first = done(perago_lab, "tables")
    JVM.stop()
    assert done(perago_lab, "tables").ref == first.ref


def test_x13_one_partition_written_again_makes_no_commit(perago_lab: Lab) -> None:
    done(perago_lab, "tables")
    first = done(perago_lab, "partition")
    assert first.history[0].id == first.ref
    assert done(perago_lab, "partition").ref == first.ref
    assert rows(first.files, "one") == 12


def test_x13_of_two_tables_only_the_one_that_differs_is_written(perago_lab: Lab) -> None:
    before = done(perago_lab, "tables").files
    after = done(perago_lab, "tables", rows=13).files
    new = {name for name in after if before.get(name) != after[name]}
    assert {name.split("/")[2] for name in new if name.startswith("lake/one/")} == {"k=0"}


def test_x13_equal_rows_appended_again_are_kept_again(lab: Lab) -> None:
    for times in (2, 4, 6):
        assert rows(done(lab, "append").files, "log") == 12 * times


def test_x13_a_retry_appends_the_same_files(perago_lab: Lab) -> None:
    params = {"what": "append"}
    crashed = perago_lab.run(tasks.local, params, faults=[FailAt("after publish")])
    left = perago_lab.files(perago_lab.head.id)
    retried = crashed.retry()
    assert retried.completed, retried.reason
    assert retried.files == left


def test_x13_names_that_another_file_mentions_stay(perago_lab: Lab) -> None:
    for _ in range(2):
        files = done(perago_lab, "own_writer_and_list").files
        listed = files["lake/names.txt"].decode().splitlines()
        assert {f"lake/own/{name}" for name in listed} == set(files) - {"lake/names.txt"}


def test_x13_a_file_of_the_authors_own_keeps_its_name(perago_lab: Lab) -> None:
    first = done(perago_lab, "like").files
    assert first[f"lake/{tasks.LIKE}"] == b"id\n1\n"
    parts = [part for name in first if (part := part_of(name))]
    assert sum(not part.is_random for part in parts) == len(parts) - 1


def test_x13_a_cached_table_is_read_under_the_new_names(perago_lab: Lab) -> None:
    done(perago_lab, "cached")
