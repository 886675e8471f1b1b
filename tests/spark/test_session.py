"""One JVM, a session for each attempt, cancelled with it, gone with its process (X3, X4)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from perago.errors import RuntimeConfigError, StaleAttemptError, TaskFailed
from perago.ports import Site
from perago.protocol.spark import SparkNeed
from perago.settings import SparkSettings
from perago.spark.engine import SparkEngine
from perago.spark.errors import explained
from perago.spark.jvm import JVM
from perago.spark.launch import sweep
from perago.spark.session import AttemptSession
from perago.tasks.cancellation import CancellationToken, holding
from perago.workspace.owner import is_alive
from tests.patience import LIMIT, until
from tests.spark.conftest import new_session
from tests.spark.tasks import SMALL

# Some tests here start a JVM of their own.
SECONDS = LIMIT


def _busy(session: AttemptSession, seconds: int = 600) -> None:
    """Run a job that takes long, unless it is cancelled."""
    numbers = session.open().sparkContext.parallelize(range(1), 1)
    numbers.map(lambda _: time.sleep(seconds)).count()  # the job


def _wait(what: str, true: Callable[[], bool]) -> None:
    until(true, what, every=0.05)


def _has_jobs(session: AttemptSession) -> bool:
    return bool(session.open().sparkContext.statusTracker().getActiveJobsIds())


@pytest.mark.usefixtures("jvm")
def test_w4_a_lost_attempt_cancels_its_jobs_and_no_others() -> None:
    other, token = new_session("other"), CancellationToken()
    ended: list[BaseException | str] = []

    def body() -> None:
        with holding(token, whole_process=False):
            mine = new_session("lost")
            try:
                with explained():
                    _busy(mine)
            except StaleAttemptError as error:
                ended.append(error)
            try:
                mine.open()
            except StaleAttemptError:
                ended.append("refused")
            mine.close()

    def neighbour() -> None:
        ended.append(f"neighbour {_quick(other)}")

    working = threading.Thread(target=body)
    working.start()
    _wait("the job began", lambda: _has_jobs(other))
    beside = threading.Thread(target=neighbour)
    beside.start()
    beside.join(SECONDS)
    token.cancel()
    working.join(SECONDS)
    assert not working.is_alive()
    assert ended[0] == "neighbour 5"
    assert isinstance(ended[1], StaleAttemptError)
    assert ended[2] == "refused"
    other.close()


def _quick(session: AttemptSession) -> int:
    return session.open().range(5).count()


@pytest.mark.usefixtures("jvm")
def test_x3_another_application_waits_for_no_one_but_needs_its_own_jvm() -> None:
    """In one process with threads, two applications cannot live beside each other."""
    first = new_session("first")
    first.open()
    second = new_session("second", SparkNeed("local[1]"))
    with pytest.raises(RuntimeConfigError, match="other settings"):
        second.open()
    first.close()


@pytest.mark.usefixtures("jvm")
def test_a_setting_that_spark_does_not_take_is_told() -> None:
    wrong = {**SMALL.conf, "spark.sql.shuffle.partitions": "many"}
    with pytest.raises(RuntimeConfigError, match=r"spark\.sql\.shuffle\.partitions='many'"):
        new_session("wrong", SparkNeed(conf=wrong)).open()


@pytest.mark.usefixtures("jvm")
def test_x3_python_functions_run_with_the_interpreter_of_the_driver() -> None:
    session = new_session("python")
    rdd = session.open().sparkContext.parallelize([1], 1)
    assert rdd.map(lambda _: __import__("pydantic").__name__).collect() == ["pydantic"]
    session.close()


def test_x2_a_directory_of_this_machine_is_no_place_for_other_machines(tmp_path: Path) -> None:
    need, site = SparkNeed("spark://elsewhere:7077"), Site("x", tmp_path)
    with pytest.raises(RuntimeConfigError, match="do not see the attempt directory"):
        SparkEngine(need, site, SparkSettings())
    SparkEngine(need, site, SparkSettings(shared_root=True)).close()
    SparkEngine(need, Site("x"), SparkSettings()).close()


@pytest.mark.usefixtures("jvm")
def test_a_dead_jvm_is_replaced() -> None:
    """A JVM may run out of memory; the next attempt in this process works."""
    session = new_session("dies")
    session.open()
    pid = JVM.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(TaskFailed, match="the JVM is gone"), explained():
        session.open().range(5).count()
    session.close()
    again = new_session("again")
    assert _quick(again) == 5
    assert JVM.pid not in {None, pid}
    again.close()


def test_w5_the_jvm_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    """kill -9 of the executor alone is enough; its process group holds the JVM too."""
    executor = subprocess.Popen(
        [sys.executable, "-m", "tests.spark.executor", str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert executor.stdout is not None
    try:
        jvm, worker = map(int, executor.stdout.readline().split())
        assert os.getpgid(jvm) == executor.pid
        assert [path.name for path in tmp_path.iterdir()] == [f"{executor.pid}-0"]
        executor.kill()
        executor.wait(SECONDS)
        _wait("the JVM ended", lambda: not is_alive(jvm, ""))
        _wait("its Python worker ended", lambda: not is_alive(worker, ""))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(executor.pid, signal.SIGKILL)
        executor.stdout.close()
        executor.wait(SECONDS)
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []
