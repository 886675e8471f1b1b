"""Workers at work while everything around them is killed: ``python -m tests.soak.soak``.

Two supervisors with two executors each; a new workflow every moment; executors, lakeFS and
Conductor are killed at random. At the end every workflow must have ended, and V1 to V9 hold.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import subprocess
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from perago.brokers.conductor.client import ConductorClient
from perago.brokers.conductor.taskdef import taskdef
from perago.dev import Instance, ServerName, start
from perago.dev.endpoints import variables
from perago.errors import PeragoError
from perago.protocol.values import Staging
from perago.settings import ConductorSettings, LakeFSSettings
from perago.stores.lakefs import LakeFSStore
from perago.stores.lakefs.admin import create_repository, staging_branches
from perago.stores.lakefs.manifests import Manifests
from perago.tasks.declaration import definition_of
from perago.transfer.cache import ContentCache
from tests.faults.checker import Checker, Line
from tests.patience import LIMIT
from tests.soak import tasks

ROOT = Path(__file__).parents[2]
REPOSITORY = "soak"
STEPS = (tasks.write, tasks.change, tasks.idle, tasks.look)
SETTLE_SECONDS = 2 * LIMIT
_GROWTH = 1.25
_SLACK_BYTES = 16 << 20


@dataclass
class Report:
    """What happened, and what was wrong."""

    workflows: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    retries: int = 0
    findings: list[str] = field(default_factory=list)
    memory: dict[str, list[int]] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [
            f"{self.workflows} workflows: {dict(self.statuses)}, {self.retries} retries",
            f"killed: {dict(self.kills)}",
        ]
        lines += [
            f"{name}: {found[0] >> 20} MiB at first, {max(found) >> 20} at most, "
            f"{found[-1] >> 20} at last"
            for name, found in self.memory.items()
            if found
        ]
        return "\n".join([*lines, *(self.findings or ["every invariant held"])])


@dataclass
class Worker:
    """One ``perago start`` with a root of its own."""

    name: str
    process: subprocess.Popen[bytes]
    root: Path

    def executors(self) -> list[int]:
        """Find its executor processes."""
        found: list[int] = []
        for children in Path(f"/proc/{self.process.pid}/task").glob("*/children"):
            with suppress(OSError):
                found += [int(pid) for pid in children.read_text().split()]
        return found

    def resident_bytes(self) -> int:
        """Say how much memory the supervisor takes."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


class Soak:
    """The servers, the workers and the chance that kills them."""

    def __init__(self, instance: Instance, root: Path, seed: int) -> None:
        self.instance = instance
        self.root = root
        self.chance = random.Random(seed)
        self.report = Report()
        self.lines: list[Line] = []
        self.workers: list[Worker] = []
        lakefs = instance.lakefs
        self.conductor = ConductorClient(
            ConductorSettings(instance.conductor.url), call_seconds=5.0
        )
        self.store = LakeFSStore(
            LakeFSSettings(lakefs.endpoint, lakefs.access_key_id, lakefs.secret),
            ContentCache(root / "none", 0),
            Manifests(root / "soak.sqlite"),
        )

    def prepare(self) -> None:
        """Make the repository and the definitions."""
        place = self.instance.lakefs.storage_namespace(REPOSITORY)
        create_repository(self.store.client, REPOSITORY, place, "main")
        self.conductor.put_taskdefs([taskdef(definition_of(step)) for step in STEPS])
        self.conductor.put_workflows([_workflow()])

    def go(self, minutes: float) -> Report:
        """Feed and kill until time is up, then let it settle and look."""
        end = time.monotonic() + 60 * minutes
        strike = time.monotonic() + self.chance.uniform(3, 8)
        while time.monotonic() < end:
            self._feed()
            if time.monotonic() >= strike:
                self._strike()
                strike = time.monotonic() + self.chance.uniform(3, 12)
            self._measure()
            time.sleep(self.chance.uniform(0.2, 1.0))  # the pace of the soak
        self._settle()
        return self.report

    def check(self) -> None:
        """Read everything once it is quiet."""
        checker = Checker(self.conductor, self.store)
        report = self.report
        report.workflows = len(self.lines)
        for line in self.lines:
            execution = self.conductor.execution(line.workflow_id) or {}
            report.statuses[str(execution.get("status"))] += 1
            report.retries += sum(task["retryCount"] > 0 for task in execution.get("tasks", []))
            report.findings += checker.findings(line)
        report.findings += self._leftovers()
        report.findings += self._growth()
        report.findings += self._secrets()

    # --- the pressure -----------------------------------------------------------------------

    def _feed(self) -> None:
        number = len(self.lines)
        branch = f"line-{number}-{uuid.uuid4().hex[:6]}"
        params = {"number": number, "seconds": self.chance.uniform(0, 1.5)}
        with suppress(PeragoError):  # A server is down just now.
            base = self.store.head(REPOSITORY, "main").id
            self.store.open_staging(Staging(REPOSITORY, branch), base)
            where = {"repository": REPOSITORY, "branch": branch, "ref_type": "commit", "ref": base}
            workflow = self.conductor.start_workflow("soak", {"workspace": where, "params": params})
            trees = {
                "soak_write": tasks.after_write(number),
                "soak_change": tasks.after_change(number),
            }
            self.lines.append(Line(workflow, REPOSITORY, branch, base, trees))

    def _strike(self) -> None:
        strikes: list[tuple[str, Callable[[], None]]] = [
            ("executor", self._kill_executor),
            ("executor", self._kill_executor),
            ("executor", self._kill_executor),
            ("lakefs", lambda: self._kill_server("lakefs")),
            ("conductor", lambda: self._kill_server("conductor")),
        ]
        name, strike = self.chance.choices(strikes, weights=[3, 3, 3, 2, 1])[0]
        strike()
        self.report.kills[name] += 1

    def _kill_executor(self) -> None:
        executors = [pid for worker in self.workers for pid in worker.executors()]
        if executors:
            with suppress(ProcessLookupError):
                os.kill(self.chance.choice(executors), signal.SIGKILL)

    def _kill_server(self, server: ServerName) -> None:
        self.instance.kill(server)
        time.sleep(self.chance.uniform(0, 2))  # the pace of the soak
        self.instance.restart(server)

    def _measure(self) -> None:
        for worker in self.workers:
            if worker.process.poll() is not None:
                said = (self.root / "logs" / f"{worker.name}.log").read_text(errors="replace")
                code = worker.process.returncode
                raise SystemExit(f"{worker.name} ended with {code}:\n{said[-2000:]}")
            self.report.memory.setdefault(worker.name, []).append(worker.resident_bytes())

    def _settle(self) -> None:
        """Wait until every workflow has ended (V5)."""
        deadline = time.monotonic() + SETTLE_SECONDS
        waiting = list(self.lines)
        while waiting and time.monotonic() < deadline:
            self._measure()
            waiting = [line for line in waiting if self._runs(line)]
            time.sleep(1)  # the pace of the soak

    def _runs(self, line: Line) -> bool:
        try:
            found = self.conductor.execution(line.workflow_id) or {}
        except PeragoError:
            return True
        return found.get("status") == "RUNNING"

    # --- what is left -----------------------------------------------------------------------

    def _leftovers(self) -> Iterator[str]:
        """Find what the workers should have removed, and the sweep what they could not (V7)."""
        for worker in self.workers:
            attempt_dirs = [path.name for path in worker.root.iterdir() if path.is_dir()]
            if attempt_dirs:
                yield f"V7: {worker.name} left directories {attempt_dirs}"
        subprocess.run(
            [sys.executable, "-m", "perago", "gc", "--repo", REPOSITORY, "--delete"],
            env=self.environment("gc"),
            cwd=self.root,
            check=True,
            capture_output=True,
        )
        left = list(staging_branches(self.store.client, REPOSITORY))
        if left:
            yield f"V7: staging branches are left after the sweep: {left}"

    def _growth(self) -> Iterator[str]:
        for name, found in self.report.memory.items():
            quarter = len(found) // 4
            if quarter < 5:
                continue
            early = statistics.median(found[quarter : 2 * quarter])
            late = statistics.median(found[-quarter:])
            if late > early * _GROWTH + _SLACK_BYTES:
                yield f"{name} grew from {early / 2**20:.0f} to {late / 2**20:.0f} MiB"

    def _secrets(self) -> Iterator[str]:
        secret = self.instance.lakefs.secret.encode()
        for path in (self.root / "logs").rglob("*"):
            if path.is_file() and secret in path.read_bytes():
                yield f"V8: the secret key is in {path.name}"

    # --- processes --------------------------------------------------------------------------

    @contextmanager
    def worker(self, name: str) -> Iterator[Worker]:
        """Start a worker; it is asked to end, and must."""
        root = self.root / name
        root.mkdir()
        with (self.root / "logs" / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "perago", "start", "tests.soak.tasks", "-j", "2"],
                env=self.environment(name),
                cwd=self.root,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            worker = Worker(name, process, root)
            try:
                yield worker
            finally:
                process.terminate()
                try:
                    process.wait(LIMIT)
                except subprocess.TimeoutExpired:
                    self.report.findings.append(f"W6: {name} did not end on SIGTERM")
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    process.wait(LIMIT)

    def environment(self, name: str) -> dict[str, str]:
        """Say where things are."""
        return {
            **os.environ,
            **variables(self.instance.record),
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}",
            "PERAGO_HOME": str(self.root / "home"),
            "PERAGO_WORKSPACE_ROOT": str(self.root / name),
            "PERAGO_LOG_ROOT": str(self.root / "logs"),
            "PERAGO_CACHE_ROOT": str(self.root / "cache"),
            "PERAGO_WORKER_ID_PREFIX": f"{name}-",
        }


def soak(minutes: float, seed: int, root: Path) -> Report:
    """Run it all."""
    (root / "logs").mkdir()
    with start("soak", root / "servers") as instance:
        rig = Soak(instance, root, seed)
        rig.prepare()
        with ExitStack() as stack:
            rig.workers = [stack.enter_context(rig.worker(f"w{number}")) for number in (1, 2)]
            rig.go(minutes)
        rig.check()
        return rig.report


def _workflow() -> dict[str, object]:
    steps = []
    before = "${workflow.input.workspace}"
    for step in STEPS:
        name = definition_of(step).name
        steps.append(
            {
                "name": name,
                "taskReferenceName": name,
                "type": "SIMPLE",
                "inputParameters": {"workspace": before, "params": "${workflow.input.params}"},
            }
        )
        before = f"${{{name}.output.workspace}}"
    return {
        "name": "soak",
        "version": 1,
        "schemaVersion": 2,
        "ownerEmail": "soak@example.com",
        "tasks": steps,
    }


def main() -> int:
    """Soak for a while; exit 1 when an invariant broke."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    given = parser.parse_args()
    sys.stdout.write(f"soaking for {given.minutes:g} minutes, seed {given.seed}\n")
    with TemporaryDirectory(prefix="perago-soak-") as temporary:
        report = soak(given.minutes, given.seed, Path(temporary))
    sys.stdout.write(f"{report}\n")
    return 1 if report.findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
