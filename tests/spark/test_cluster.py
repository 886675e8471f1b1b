"""The same task on every kind of master, unchanged (X4); lost, it is cancelled there too (W4)."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from perago.errors import TaskFailed
from perago.protocol.spark import SparkNeed
from perago.protocol.values import Status
from perago.settings import SparkSettings
from perago.spark.connect import CONNECT
from perago.spark.jvm import JVM
from perago.spark.session import AttemptSession
from perago.tasks.cancellation import CancellationToken, holding
from perago.testing import Lab
from tests.patience import LIMIT, until
from tests.spark import cluster_tasks as tasks
from tests.spark.tasks import STATIC

# Each kind starts a JVM, some of them several.
SECONDS = LIMIT
KINDS = ["local[*]", "standalone", "connect"]
"""A local cluster differs from a standalone one in how it is started alone."""
QUICK = {"spark.executor.extraJavaOptions": STATIC["spark.driver.extraJavaOptions"]}
RESULT = {
    "fares": [(1, "H", 3.5), (2, "O", 14.5), (3, "H", 22.5), (4, "U", 1.0)],
    "zone": "UTC",
}


@pytest.fixture
def settings(kind: str, request: pytest.FixtureRequest) -> SparkSettings:
    """Give the settings of a worker for a kind of master; its servers start when first used."""
    if kind == "standalone":
        return _remote(request.getfixturevalue("standalone_master"))
    if kind == "connect":
        return _remote(request.getfixturevalue("connect_server"))
    return SparkSettings(master=kind, conf=QUICK)


def _remote(master: str) -> SparkSettings:
    conf = {
        "spark.pyspark.python": sys.executable,
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "600m",
        **QUICK,
    }
    return SparkSettings(master=master, conf=conf, shared_root=True)


@pytest.mark.parametrize("kind", KINDS, scope="module")
def test_x4_the_same_task_passes_unchanged_and_is_published(
    settings: SparkSettings, tmp_path: Path
) -> None:
    lab = Lab(tmp_path, spark=settings)
    try:
        run = lab.run(tasks.fares, files=tasks.FILES)
        assert run.completed, run.reason
        assert {**run.result, "fares": [tuple(row) for row in run.result["fares"]]} == RESULT
        tables = [name for name in run.files if name.startswith("taxi/gold/fares/zone=")]
        assert {name.split("/")[3] for name in tables} == {
            "zone=harbour",
            "zone=old town",
            "zone=unknown",
        }
        assert run.files.keys() - set(tables) == tasks.FILES.keys()
        refused = lab.run(tasks.bad_fares)
        assert refused.status is Status.FAILED
        assert "3 of 4 rows" in refused.reason
        assert "trip=" in refused.reason
        # What was shipped is for executors: here the modules themselves are used.
        assert not [path for path in sys.path if path.endswith(".zip") and "perago-" in path]
    finally:
        lab.close()


@pytest.mark.parametrize("kind", KINDS[1:], scope="module")
def test_w4_a_lost_attempt_is_cancelled_where_it_runs(
    settings: SparkSettings, tmp_path: Path
) -> None:
    lab, token = Lab(tmp_path, spark=settings), CancellationToken()
    marker = tmp_path / "marker"
    ended: list[Status | None] = []

    def attempt() -> None:
        with holding(token, whole_process=False):
            run = lab.run(tasks.busy, {"marker": str(marker)})
        ended.append(run.status)
        assert "cancel" in run.reason.lower(), run.reason

    working = threading.Thread(target=attempt)
    working.start()
    _wait("the job began", marker.exists)
    token.cancel()
    working.join(SECONDS)
    assert not working.is_alive()
    assert ended == [Status.FAILED]
    assert marker.read_text() == "begun"
    assert CONNECT.users == JVM.users == 0
    # The cluster works on for the others.
    after = lab.run(tasks.bad_fares)
    assert "3 of 4 rows" in after.reason
    lab.close()


def test_x4_a_master_that_is_not_there_is_told_at_once() -> None:
    session = AttemptSession(SparkNeed("spark://127.0.0.1:9"), "x", SparkSettings())
    with pytest.raises(TaskFailed, match=r"no Spark master answers at spark://127\.0\.0\.1:9: "):
        session.open()


def _wait(what: str, true: Callable[[], bool]) -> None:
    until(true, what, every=0.05)
