"""Spark tasks as attempts on the embedded store (X1, X3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from perago.dev import LakeFSEndpoint
from perago.protocol.values import Status
from perago.spark.jvm import JVM
from perago.testing import FailAt, Lab
from tests.lakefs_lab import ArrangedLakeFS, new_name
from tests.spark import tasks

pytestmark = pytest.mark.usefixtures("jvm")


def test_x1_a_spark_task_publishes_what_it_wrote(perago_lab: Lab) -> None:
    run = perago_lab.run(tasks.make, {"rows": 100})
    assert run.completed, run.reason
    assert run.result == {"rows": 100}
    # Data only: neither _SUCCESS nor checksum files.
    assert {name.rpartition(".")[2] for name in run.files} == {"parquet"}
    assert {name.split("/")[3] for name in run.files} == {"k=0", "k=1", "k=2"}


def test_x1_the_workspace_may_be_a_plain_path(perago_lab: Lab) -> None:
    run = perago_lab.run(tasks.on_path, {"rows": 4})
    assert run.completed, run.reason
    lines = b"".join(run.files.values()).decode().splitlines()
    assert sorted(set(lines)) == ["0", "1", "2", "3", "id"]


def test_x1_a_task_without_a_workspace_has_a_session(perago_lab: Lab) -> None:
    assert perago_lab.run(tasks.without_workspace, {"rows": 7}).result == {"rows": 7}


def test_x3_views_and_settings_of_one_attempt_are_not_in_the_next(perago_lab: Lab) -> None:
    first = perago_lab.run(tasks.views)
    jvm = JVM.pid
    second = perago_lab.run(tasks.views)
    assert first.completed, first.reason
    assert first.result == second.result == {"views": [], "partitions": "7", "zone": "UTC"}
    assert JVM.pid == jvm


def test_x3_a_second_attempt_begins_its_body_at_once(perago_lab: Lab) -> None:
    """It needs no new JVM, which takes many seconds; ``bench spark`` measures how soon that is."""
    perago_lab.run(tasks.without_workspace)
    jvm = JVM.pid
    assert perago_lab.run(tasks.views).completed
    assert JVM.pid == jvm


def test_an_error_of_spark_is_one_sentence(perago_lab: Lab) -> None:
    run = perago_lab.run(tasks.broken)
    assert run.status is Status.FAILED
    assert run.reason.startswith("body: TaskFailed: Spark: ")
    assert "too big" in run.reason
    assert "\n" not in run.reason
    assert "traceback" in run.events
    assert run.files == {}


def test_leftovers_are_not_published(perago_lab: Lab) -> None:
    run = perago_lab.run(tasks.leftovers)
    assert run.completed, run.reason
    assert run.result == {"rows": 1}
    assert [name.rpartition(".")[2] for name in run.files] == ["parquet"]


def test_what_is_only_named_like_a_leftover_is_data(perago_lab: Lab) -> None:
    run = perago_lab.run(tasks.leftovers, {"rows": 1})
    assert run.completed, run.reason
    assert {"__magic_numbers.json", "t/.own.crc"} <= run.files.keys()
    assert len(run.files) == 3
    assert "leftovers removed" in run.events


def test_what_the_input_had_is_content_whatever_its_name(perago_lab: Lab) -> None:
    run = perago_lab.run(tasks.leftovers, files={"old/_SUCCESS": b"", "old/.x.crc": b"1"})
    assert run.completed, run.reason
    assert {"old/_SUCCESS", "old/.x.crc"} <= run.files.keys()


def test_p2_a_retry_replaces_what_a_crashed_spark_attempt_published(perago_lab: Lab) -> None:
    crashed = perago_lab.run(tasks.make, {"rows": 9}, faults=[FailAt("after publish")])
    retried = crashed.retry()
    assert retried.completed, retried.reason
    assert len(retried.history) == 2


def test_x2_on_lakefs_it_is_the_same(lakefs_server: LakeFSEndpoint, tmp_path: Path) -> None:
    store = ArrangedLakeFS(lakefs_server, tmp_path)
    lab = Lab(tmp_path / "lab", store=store, repository=new_name())
    try:
        crashed = lab.run(tasks.make, {"rows": 30}, faults=[FailAt("after publish")])
        retried = crashed.retry()
        assert retried.completed, retried.reason
        assert retried.result == {"rows": 30}
        assert len(retried.history) == 2
        assert {name.split("/")[3] for name in retried.files} == {"k=0", "k=1", "k=2"}
    finally:
        lab.close()
