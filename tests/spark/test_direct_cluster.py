"""A direct workspace on real executors, one of which is killed while it commits (X2, X4)."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from perago.dev import LakeFSEndpoint
from perago.settings import SparkSettings
from perago.spark import direct
from perago.spark.jvm import JVM
from perago.testing import Lab
from tests.faults.proxy import Exchange, Proxy, Rule
from tests.lakefs_lab import ArrangedLakeFS, new_name
from tests.spark import direct_tasks as tasks
from tests.spark.clusters import free_port
from tests.spark.tasks import STATIC

# Several JVMs each.
pytestmark = pytest.mark.timeout(400)
SECONDS = 100.0
ROWS = {"rows": 60, "mode": "append"}
# Files are uploaded where the rows are: by executors. This request commits the task of one.
TASK_COMMIT = r"__magic.*\.pendingset"


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


@pytest.fixture(scope="module", params=["local-cluster", "standalone"])
def master(request: pytest.FixtureRequest) -> Iterator[str]:
    standalone = request.param == "standalone"
    yield request.getfixturevalue("standalone_master") if standalone else "local-cluster[2,1,1024]"
    JVM.stop()


def test_x4_a_direct_write_on_a_cluster_survives_the_death_of_an_executor(
    master: str, lakefs_server: LakeFSEndpoint, tmp_path: Path
) -> None:
    port = free_port()
    settings = SparkSettings(
        master=master,
        conf={
            direct.NAME: direct.MAGIC,
            "spark.pyspark.python": sys.executable,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.port": str(port),
            "spark.executor.memory": "600m",
            "spark.executor.extraJavaOptions": STATIC["spark.driver.extraJavaOptions"],
        },
    )
    with Proxy(lakefs_server.endpoint) as proxy:
        store = ArrangedLakeFS(lakefs_server, tmp_path / "worker", url=proxy.url)
        lab = Lab(tmp_path / "lab", store=store, repository=new_name(), spark=settings)
        try:
            lab.commit({"other/kept.txt": "kept"})
            first = lab.run(tasks.write, {"rows": 12})
            assert first.completed, first.reason
            kill = KillExecutor(port)
            proxy.add(Rule(kill, "PUT", TASK_COMMIT))
            second = lab.run(tasks.write, ROWS)
            assert kill.done.wait(SECONDS)
            assert kill.killed
            assert second.completed, second.reason
            assert (second.result["before"], second.result["after"]) == (12, 72)
            assert lab.run(tasks.look).result == {"rows": 72}
            names = {info.key for info in lab.store.listing(lab.repository, lab.head.id, "lake/")}
            assert {name.rpartition(".")[2] for name in names} == {"parquet"}
        finally:
            lab.close()


def _is_executor(process: Path, mark: str) -> bool:
    """Tell whether a process is an executor of our own driver: its command line names the port."""
    try:
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return False
    backend = any(word.endswith("ExecutorBackend") for word in words)
    return backend and any(word.endswith(mark) for word in words)
