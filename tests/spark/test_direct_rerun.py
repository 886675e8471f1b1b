"""A rerun on lakeFS itself changes nothing (X13): files sent from here, and by executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from perago.dev import LakeFSEndpoint
from perago.protocol.parts import part_of
from perago.settings import SparkSettings
from perago.spark.direct import need_of
from perago.spark.jvm import JVM
from perago.spark.session import AttemptSession
from perago.testing import Lab
from tests.lakefs_lab import ArrangedLakeFS, new_name
from tests.spark import rerun_tasks as tasks
from tests.spark.direct_tasks import DIRECT

Task = Callable[..., Any]


@pytest.fixture(scope="module")
def server(lakefs_server: LakeFSEndpoint) -> Iterator[LakeFSEndpoint]:
    session = AttemptSession(need_of(DIRECT.need, SparkSettings()), "x", SparkSettings())
    session.open().range(10).groupBy("id").count().collect()
    session.close()
    yield lakefs_server
    JVM.stop()


@pytest.fixture
def lab(server: LakeFSEndpoint, tmp_path: Path) -> Iterator[Lab]:
    store = ArrangedLakeFS(server, tmp_path / "worker")
    lab = Lab(tmp_path / "lab", store=store, repository=new_name())
    yield lab
    lab.close()


@pytest.mark.parametrize("what", ["tables", "formats", "own_writer"])
@pytest.mark.parametrize("task", [tasks.direct, tasks.magic], ids=["sent from here", "magic"])
def test_x13_a_rerun_makes_no_commit(lab: Lab, task: Task, what: str) -> None:
    first, second = (lab.run(task, {"what": what}) for _ in range(2))
    assert second.completed, second.reason
    assert second.ref == first.ref == lab.head.id
    assert "committed" not in second.events
    third = lab.run(task, {"what": what, "rows": 13})
    assert third.ref != first.ref
    # On the embedded store and on the branch a table has the same names.
    by_us = task is tasks.direct and what != "own_writer"
    assert all(part.is_random != by_us for name in third.files if (part := part_of(name)))


@pytest.mark.parametrize("task", [tasks.direct, tasks.magic], ids=["sent from here", "magic"])
def test_x13_equal_rows_appended_again_are_kept_again(lab: Lab, task: Task) -> None:
    for times in (2, 4, 6):
        run = lab.run(task, {"what": "append"})
        assert run.completed, run.reason
        assert len(run.files) == times


def test_x13_one_partition_written_again_makes_no_commit(lab: Lab) -> None:
    first = lab.run(tasks.direct, {"what": "tables"})
    again = lab.run(tasks.direct, {"what": "partition"})
    assert again.completed, again.reason
    assert set(again.files) <= set(first.files)
    assert lab.run(tasks.direct, {"what": "partition"}).ref == again.ref
