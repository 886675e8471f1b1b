"""Tasks a second through a real Conductor: 300 queued tasks, two executors each.

The server says itself when each task began and ended, so that nobody's imports are counted.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.comparison import Comparison, Fact, Options, Ratio, Work
from bench.peer import python_of_peer
from bench.workers import free, tiny
from perago.brokers.conductor.client import ConductorClient
from perago.brokers.conductor.taskdef import taskdef
from perago.dev import Instance, start
from perago.dev.endpoints import variables
from perago.protocol.values import Staging
from perago.settings import ConductorSettings, LakeFSSettings
from perago.stores.lakefs import LakeFSStore
from perago.stores.lakefs.admin import create_repository
from perago.stores.lakefs.manifests import Manifests
from perago.tasks.declaration import definition_of
from perago.transfer.cache import ContentCache

TASKS = 300
EXECUTORS = 2
FREE, TINY = "bench_free", "bench_tiny"
OURS, PEER, SDK, NOTHING = "perago", "perago 0.6.1", "SDK worker", "a client that does nothing"
IDLE_SECONDS = 20.0
QUEUES = 3
WARM = 4
"""How often each empties a queue first: a server that was just started is still compiling."""
_LAST_POLL_SECONDS = 2.0
"""The server goes on with a poll whose client is dead, and would hand out a task to nobody."""
_PATIENCE_SECONDS = 120.0
_WORKERS = Path(__file__).with_name("workers")


@dataclass(frozen=True)
class Floor:
    """Both servers, and what it takes to fill a queue and see it emptied."""

    instance: Instance
    conductor: ConductorClient
    store: LakeFSStore
    root: Path

    def free(self) -> list[str]:
        """Queue tasks without a workspace."""
        return self._queue(FREE, [{"params": {"number": n}} for n in range(TASKS)])

    def tiny(self) -> list[str]:
        """Queue tasks on a new repository; each has a branch to itself, as writers must.

        A server gets slower with every branch, and not everybody runs equally often.
        """
        repository = f"bench-{uuid.uuid4().hex[:12]}"
        place = self.instance.lakefs.storage_namespace(repository)
        create_repository(self.store.client, repository, place, "main")
        ref = self.store.head(repository, "main").id

        def given(number: int) -> dict[str, Any]:
            branch = f"b{number}"
            self.store.open_staging(Staging(repository, branch), ref)
            where = {"repository": repository, "branch": branch, "ref": ref}
            return {"workspace": {**where, "refType": "commit"}, "params": {"number": number}}

        return self._queue(TINY, [given(number) for number in range(TASKS)])

    def _queue(self, name: str, inputs: Sequence[Mapping[str, Any]]) -> list[str]:
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda given: self.conductor.start_workflow(name, given), inputs))

    def emptied(self, workflows: Sequence[str]) -> float:
        """Wait until all are completed; returns the seconds from first start to last end."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        for workflow in reversed(workflows):
            while (found := self._found(workflow))["status"] == "RUNNING":
                if time.monotonic() > deadline:
                    last = (self.root / "worker.log").read_text(errors="replace")[-500:]
                    raise SystemExit(f"workflow {workflow} is still running: {last}")
                time.sleep(0.5)
            if found["status"] != "COMPLETED":
                raise SystemExit(f"workflow {workflow}: {found.get('reasonForIncompletion')}")
        tasks = [self._found(workflow)["tasks"][0] for workflow in workflows]
        began = min(task["startTime"] for task in tasks)
        return float(max(task["endTime"] for task in tasks) - began) / 1000

    def environment(self) -> dict[str, str]:
        """Say where the servers are, as every contender reads it."""
        own = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        return {
            **own,
            **variables(self.instance.record),
            "PYTHONPATH": str(_WORKERS),
            "PERAGO_HOME": str(self.root / "home"),
            "PERAGO_WORKSPACE_ROOT": str(self.root / f"rooms-{uuid.uuid4().hex[:8]}"),
            "PERAGO_LOG_ROOT": str(self.root / "logs"),
            "PERAGO_CACHE_ROOT": str(self.root / "cache"),
        }

    def _found(self, workflow: str) -> dict[str, Any]:
        return self.conductor.execution(workflow) or {}


@contextmanager
def comparison(options: Options) -> Iterator[Comparison]:
    """Compare workers on the same server, one after the other."""
    with _floor() as floor:
        ours = ["-m", "perago", "start", "--jobs", str(EXECUTORS)]
        theirs = ["start", "-j", str(EXECUTORS)]
        python = sys.executable
        queues: dict[str, Callable[[], float]] = {
            f"{OURS}, free": lambda: _race(floor, floor.free(), [python, *ours, "free"]),
            SDK: lambda: _race(floor, floor.free(), [python, str(_WORKERS / "sdk.py")]),
            NOTHING: lambda: _nothing(floor),
        }
        for _ in range(WARM):
            for race in queues.values():
                race()
        contenders: dict[str, Work] = {name: _often(race) for name, race in queues.items()}
        contenders[f"{OURS}, tiny"] = lambda: _race(floor, floor.tiny(), [python, *ours, "tiny"])
        # Either is enough: neither of the two reads a result back (R2).
        to_sdk, to_nothing = "free tasks: SDK worker / perago", "free tasks: nothing / perago"
        free_ = f"{OURS}, free"
        ratios = [
            Ratio(to_sdk, SDK, free_, at_least=0.95, or_else=to_nothing),
            Ratio(to_nothing, NOTHING, free_, at_least=0.9, or_else=to_sdk),
        ]
        slow: dict[str, int] = {}
        if options.peer:
            peer = str(python_of_peer().with_name("perago"))
            contenders |= {
                f"{PEER}, free": lambda: _race(floor, floor.free(), [peer, *theirs, "free"]),
                f"{PEER}, tiny": lambda: _race(floor, floor.tiny(), [peer, *theirs, "tiny"]),
            }
            ratios += [
                Ratio("free tasks: 0.6.1 / perago", f"{PEER}, free", f"{OURS}, free"),
                Ratio("tiny: 0.6.1 / perago", f"{PEER}, tiny", f"{OURS}, tiny", at_least=3),
            ]
            slow = {f"{PEER}, free": 2, f"{PEER}, tiny": 3}
        yield Comparison(
            name="conductor",
            what=f"{TASKS} queued tasks, {EXECUTORS} executors, first start to last end",
            contenders=contenders,
            ratios=ratios,
            slow=slow,
            facts=lambda: _idle(floor, [python, *ours, "free"]),
        )


def _often(race: Callable[[], float]) -> Work:
    """Take the middle one of a few: a queue is empty after two seconds, and each is different."""
    return lambda: statistics.median(race() for _ in range(QUEUES))


def _race(floor: Floor, workflows: Sequence[str], command: Sequence[str]) -> float:
    """Have a worker empty the queue; it is killed, because one contender ignores SIGTERM."""
    with _worker(floor, command):
        return floor.emptied(workflows)


def _nothing(floor: Floor) -> float:
    """Poll and complete, without running anything: what the server can do."""
    workflows = floor.free()

    def work(number: int) -> None:
        client = ConductorClient(ConductorSettings(floor.instance.conductor.url))
        while tasks := client.poll(FREE, f"nothing-{number}", 1):
            for task in tasks:
                client.update(
                    {
                        "workflowInstanceId": task["workflowInstanceId"],
                        "taskId": task["taskId"],
                        "status": "COMPLETED",
                        "outputData": {"result": {"total": 0}},
                    }
                )
        client.close()

    with ThreadPoolExecutor(EXECUTORS) as pool:
        list(pool.map(work, range(EXECUTORS)))
    return floor.emptied(workflows)


def _idle(floor: Floor, command: Sequence[str]) -> list[Fact]:
    """Look at what a worker without work costs."""
    with _worker(floor, command) as process:
        time.sleep(5 + IDLE_SECONDS / 4)
        before = _cpu_seconds(process.pid)
        time.sleep(IDLE_SECONDS)
        used = _cpu_seconds(process.pid) - before
    return [Fact("idle worker, percent of a core", 100 * used / IDLE_SECONDS, at_most=1.0)]


@contextmanager
def _worker(floor: Floor, command: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
    with (
        (floor.root / "worker.log").open("ab") as log,
        subprocess.Popen(
            command,
            env=floor.environment(),
            cwd=_WORKERS,
            stdout=log,
            stderr=log,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield process
        finally:
            for pid in _family(process.pid):
                os.kill(pid, signal.SIGKILL)
            time.sleep(_LAST_POLL_SECONDS)


def _family(pid: int) -> list[int]:
    """Find a process and all its descendants."""
    found = [pid]
    for parent in found:
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            found += [int(child) for child in task.read_text().split()]
    return found


def _cpu_seconds(pid: int) -> float:
    ticks = 0
    for member in _family(pid):
        fields = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def _floor() -> Iterator[Floor]:
    with TemporaryDirectory(prefix="perago-bench-") as temporary:
        root = Path(temporary)
        with start("bench", root, ["lakefs", "conductor"]) as instance:
            lakefs = instance.lakefs
            conductor = ConductorClient(ConductorSettings(instance.conductor.url))
            store = LakeFSStore(
                LakeFSSettings(lakefs.endpoint, lakefs.access_key_id, lakefs.secret),
                ContentCache(root / "none", 0),
                Manifests(root / "seed.sqlite"),
            )
            for module in (free.free, tiny.tiny):
                definition = definition_of(module)
                conductor.put_taskdefs([taskdef(definition)])
                conductor.put_workflows([_one_task(definition.name)])
            yield Floor(instance, conductor, store, root)
            store.close()
            conductor.close()


def _one_task(name: str) -> dict[str, Any]:
    inputs = ["params"] if name == FREE else ["workspace", "params"]
    return {
        "name": name,
        "version": 1,
        "schemaVersion": 2,
        "ownerEmail": "bench@example.com",
        "tasks": [
            {
                "name": name,
                "taskReferenceName": name,
                "type": "SIMPLE",
                "inputParameters": {key: f"${{workflow.input.{key}}}" for key in inputs},
            }
        ],
    }
