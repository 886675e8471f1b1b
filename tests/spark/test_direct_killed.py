"""Killed with -9 in the middle of a write: nothing partial is published, the retry is exact (X2).

The network is a proxy that sees each request, so the kill comes at a named one and not at a time.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from perago.dev import LakeFSEndpoint
from perago.spark import direct
from perago.spark.jvm import JVM
from perago.testing import Lab
from tests.faults.paths import ALL
from tests.faults.proxy import Exchange, Pass, Proxy, Rule
from tests.lakefs_lab import ArrangedLakeFS, new_name
from tests.patience import LIMIT
from tests.spark import direct_tasks as tasks

ROWS = {"rows": 60, "mode": "append"}
ENOUGH_SECONDS = 2 * LIMIT
# Two JVMs and a proxy take their time on a loaded machine.

# Each a request that belongs to the moment; the fault is put in later.
SENDING = Rule(Pass(), "POST", r"/objects\?path=.*numbers/k(?:=|%3D)", skip=1)
TASK_COMMIT = Rule(Pass(), "PUT", r"__magic.*\.pendingset")
JOB_COMMIT = Rule(Pass(), "POST", r"numbers/k(?:=|%3D).*[?&]uploadId=", skip=2)
AFTER_JOB_COMMIT = Rule(Pass(), "POST", r"branches/perago-staging-.*/commits")


@dataclasses.dataclass(frozen=True)
class Kill:
    """Somebody dies when this request is on its way; the server may still get it."""

    victim: subprocess.Popen[str]
    forward: bool
    jvm: bool = False
    done: threading.Event = dataclasses.field(default_factory=threading.Event)

    def meet(self, exchange: Exchange) -> None:
        process = self.victim
        os.kill(_java_of(process.pid) if self.jvm else process.pid, signal.SIGKILL)
        if not self.jvm:
            process.wait(LIMIT)
        if self.forward:
            exchange.forward()
        exchange.reset()
        self.done.set()


@pytest.fixture(scope="module")
def server(lakefs_server: LakeFSEndpoint) -> Iterator[LakeFSEndpoint]:
    yield lakefs_server
    JVM.stop()


@pytest.fixture
def lab(server: LakeFSEndpoint, tmp_path: Path) -> Iterator[Lab]:
    """Give a repository with a table of 12 rows, and what really is in it."""
    lab = Lab(
        tmp_path / "lab", store=ArrangedLakeFS(server, tmp_path / "worker"), repository=new_name()
    )
    lab.commit({"other/kept.txt": "kept"})
    made = lab.run(tasks.write, {"rows": 12})
    assert made.completed, made.reason
    yield lab
    lab.close()


@pytest.fixture
def proxy(server: LakeFSEndpoint) -> Iterator[Proxy]:
    with Proxy(server.endpoint) as proxy:
        yield proxy


@pytest.fixture
def executor(
    lab: Lab,
    proxy: Proxy,
    server: LakeFSEndpoint,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[subprocess.Popen[str]]:
    """Give a process that is warm and waits for a line to begin; it may be given a committer."""
    committer = getattr(request, "param", "")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.spark.direct_executor"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    told = {
        "root": str(tmp_path / "killed"),
        "url": proxy.url,
        "endpoint": dataclasses.asdict(server),
        "repository": lab.repository,
        "params": ROWS,
        "conf": {direct.NAME: committer} if committer else {},
    }
    with process:
        say(process, json.dumps(told))
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def say(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


PLACES = {
    "task commit": (direct.MAGIC, TASK_COMMIT, False),
    "job commit": (direct.MAGIC, JOB_COMMIT, True),
    "after job commit": (direct.MAGIC, AFTER_JOB_COMMIT, True),
    "sending": ("", SENDING, False),
    "sent": ("", SENDING, True),
    "all sent": ("", AFTER_JOB_COMMIT, True),
}
CHOSEN = [*PLACES] if ALL else ["task commit", "sent"]
"""One of each committer; ``make faults`` has them all."""


@pytest.mark.parametrize(
    ("executor", "at", "forward"),
    [PLACES[name] for name in CHOSEN],
    ids=CHOSEN,
    indirect=["executor"],
)
def test_x2_an_executor_killed_there_publishes_nothing_and_the_retry_is_exact(
    lab: Lab, proxy: Proxy, executor: subprocess.Popen[str], at: Rule, *, forward: bool
) -> None:
    head, before = lab.head.id, lab.files(lab.head.id)
    kill = Kill(executor, forward)
    proxy.add(dataclasses.replace(at, fault=kill))
    say(executor, "go")
    assert executor.wait(ENOUGH_SECONDS) == -signal.SIGKILL
    assert kill.done.wait(ENOUGH_SECONDS)
    assert lab.head.id == head
    assert lab.files(head) == before
    retried = lab.run(tasks.write, ROWS)
    assert retried.completed, retried.reason
    assert (retried.result["before"], retried.result["after"]) == (12, 72)
    assert lab.run(tasks.look).result == {"rows": 72}
    names = {info.key for info in lab.store.listing(lab.repository, lab.head.id, "lake/")}
    assert {name.rpartition(".")[2] for name in names} == {"parquet"}


@pytest.mark.parametrize("executor", [direct.MAGIC], indirect=True)
def test_x3_a_jvm_killed_at_task_commit_fails_the_attempt_and_the_next_has_a_new_one(
    lab: Lab, proxy: Proxy, executor: subprocess.Popen[str]
) -> None:
    proxy.add(dataclasses.replace(TASK_COMMIT, fault=Kill(executor, forward=True, jvm=True)))
    say(executor, "go")
    assert executor.stdout is not None
    found = json.loads(executor.stdout.readline())
    assert "the JVM is gone" in found["reason"]
    assert found["completed"]
    assert found["result"]["after"] == 72
    assert lab.run(tasks.look).result == {"rows": 72}


def _java_of(pid: int) -> int:
    """Find the JVM that a process has started."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().partition(" (")[2].rpartition(") ")
        except OSError:
            continue
        if name == "java" and int(rest.split()[1]) == pid:
            return int(stat.parent.name)
    raise AssertionError("it has no JVM")
