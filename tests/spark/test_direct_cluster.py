"""A direct workspace on real executors, one of which is killed while it commits (X2, X4)."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from perago.dev import LakeFSEndpoint
from perago.settings import SparkSettings
from perago.spark import direct
from perago.spark.jvm import JVM
from perago.testing import Lab, Run
from tests.faults.paths import ALL
from tests.faults.proxy import Exchange, Proxy, Rule
from tests.lakefs_lab import ArrangedLakeFS, new_name
from tests.patience import LIMIT
from tests.spark import direct_tasks as tasks
from tests.spark.clusters import free_port
from tests.spark.tasks import STATIC

# Several JVMs each.
SECONDS = LIMIT
ROWS = {"rows": 60, "mode": "append"}
# Files are uploaded where the rows are: by executors. This request commits the task of one.
TASK_COMMIT = r"__magic.*\.pendingset"
STRAGGLERS = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
}


@dataclass
class KillExecutor:
    """The executor that commits dies at this request, which the server never gets."""

    port: int
    killed: list[int] = field(default_factory=list)
    done: threading.Event = field(default_factory=threading.Event)

    def meet(self, exchange: Exchange) -> None:
        mark = f":{self.port}"
        for process in Path("/proc").iterdir():
            if process.name.isdigit() and _is_executor(process, mark):
                os.kill(int(process.name), signal.SIGKILL)
                self.killed.append(int(process.name))
                break
        exchange.reset()
        self.done.set()


@dataclass(frozen=True)
class Cluster:
    """Executors, and the port by which those of our driver are known."""

    settings: SparkSettings
    port: int


KINDS = ["standalone", "local-cluster"] if ALL else ["standalone"]
"""A local cluster differs in how it is started alone: it is in the fault campaign."""


@pytest.fixture(scope="module", params=KINDS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    standalone = request.param == "standalone"
    port = free_port()
    yield Cluster(
        SparkSettings(
            master=request.getfixturevalue("standalone_master")
            if standalone
            else "local-cluster[2,1,1024]",
            conf={
                direct.NAME: direct.MAGIC,
                **STRAGGLERS,
                "spark.pyspark.python": sys.executable,
                "spark.driver.host": "127.0.0.1",
                "spark.driver.port": str(port),
                "spark.executor.memory": "600m",
                "spark.executor.extraJavaOptions": STATIC["spark.driver.extraJavaOptions"],
            },
        ),
        port,
    )
    JVM.stop()


@contextmanager
def laboratory(server: LakeFSEndpoint, place: Path, spark: SparkSettings) -> Iterator[Lab]:
    """Give a lab on a repository of its own, with a file that nobody may touch."""
    store = ArrangedLakeFS(server, place / "worker")
    lab = Lab(place / "lab", store=store, repository=new_name(), spark=spark)
    try:
        lab.commit({"other/kept.txt": "kept"})
        yield lab
    finally:
        lab.close()


def kinds_of_files(lab: Lab) -> set[str]:
    """Tell what is in the published tables: a committer leaves other names than data."""
    names = [info.key for info in lab.store.listing(lab.repository, lab.head.id, "lake/")]
    return {name.rpartition(".")[2] for name in names}


def test_x4_a_direct_write_on_a_cluster_survives_the_death_of_an_executor(
    cluster: Cluster, lakefs_server: LakeFSEndpoint, tmp_path: Path
) -> None:
    with (
        Proxy(lakefs_server.endpoint) as proxy,
        laboratory(replace(lakefs_server, endpoint=proxy.url), tmp_path, cluster.settings) as lab,
    ):
        first = lab.run(tasks.write, {"rows": 12})
        assert first.completed, first.reason
        kill = KillExecutor(cluster.port)
        proxy.add(Rule(kill, "PUT", TASK_COMMIT))
        second = lab.run(tasks.write, ROWS)
        assert kill.done.wait(SECONDS)
        assert kill.killed
        assert second.completed, second.reason
        assert (second.result["before"], second.result["after"]) == (12, 72)
        assert lab.run(tasks.look).result == {"rows": 72}
        assert kinds_of_files(lab) == {"parquet"}


def assert_written_once(run: Run) -> None:
    """A later try of the task is what is there, and every row is there once."""
    assert run.result["before"] >= 1
    assert (run.result["after"], run.result["added"]) == (tasks.UNSTEADY_ROWS,) * 2


# All executors of a local cluster are on one host, where Spark makes no twins.
@pytest.mark.parametrize(
    ("cluster", "how"),
    [*((kind, "fails") for kind in KINDS if ALL), ("standalone", "straggles")],
    indirect=["cluster"],
)
def test_x4_a_task_that_runs_twice_is_written_once(
    cluster: Cluster, lakefs_server: LakeFSEndpoint, tmp_path: Path, how: str
) -> None:
    """A failed task is tried again, a slow one gets a speculative twin; each row is there once."""
    with laboratory(lakefs_server, tmp_path, cluster.settings) as lab:
        run = lab.run(tasks.unsteady, {"where": how})
        assert run.completed, run.reason
        assert_written_once(run)
        assert kinds_of_files(lab) == {"parquet"}


def test_x4_a_task_that_fails_on_this_machine_is_written_once(
    lakefs_server: LakeFSEndpoint, tmp_path: Path
) -> None:
    settings = SparkSettings(master="local[2,4]")
    with laboratory(lakefs_server, tmp_path, settings) as lab:
        run = lab.run(tasks.unsteady, {"where": "fails"})
        JVM.stop()
        assert run.completed, run.reason
        assert_written_once(run)
        assert kinds_of_files(lab) == {"parquet"}


def _is_executor(process: Path, mark: str) -> bool:
    """Tell whether a process is an executor of our own driver: its command line names the port."""
    try:
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return False
    backend = any(word.endswith("ExecutorBackend") for word in words)
    return backend and any(word.endswith(mark) for word in words)
