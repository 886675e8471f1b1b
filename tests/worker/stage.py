"""Workers under test: real processes on real servers, and ways to see what they did."""

from __future__ import annotations

import json
import math
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from perago.brokers.conductor.client import Ask, ConductorClient
from perago.brokers.conductor.errors import Call
from perago.dev import ConductorEndpoint, LakeFSEndpoint
from perago.process.killing import LOG, VARIABLE
from perago.settings import ConductorSettings
from perago.transfer.wire import path_of
from perago.worker.state import STATE
from tests import injection
from tests.environment import clean_environment
from tests.lakefs_lab import ArrangedLakeFS, new_name
from tests.patience import LIMIT, scaled, until

SECONDS = LIMIT
LEASE = str(math.ceil(scaled(4)))
"""A response timeout, as DEEDS_RESPONSE: short, for whoever waits for its end, but for a worker
that is given little time it must be long enough to be kept."""


def eventually(
    found: Callable[[], Any], what: str = "", seconds: float = SECONDS, every: float = 0.05
) -> Any:
    """Wait for something to be true and return it."""
    return until(found, what, seconds, every)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in {"Z", "X"}


@dataclass
class Stage:
    """One directory, one set of task names, on shared servers."""

    directory: Path
    conductor: ConductorEndpoint
    lakefs: LakeFSEndpoint
    tag: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    settings: dict[str, str] = field(default_factory=dict)
    workers: list[Worker] = field(default_factory=list)

    def __post_init__(self) -> None:
        shutil.copy(Path(__file__).parent / "deeds.py", self.directory / "deeds.py")
        self.client = ConductorClient(ConductorSettings(self.conductor.url), call_seconds=LIMIT)
        self.store = ArrangedLakeFS(self.lakefs, self.directory / "lab")
        self.root = self.directory / "root"

    # --- commands ----------------------------------------------------------------------------

    def environment(self, **more: str) -> dict[str, str]:
        return {
            **clean_environment(),
            "DEEDS": self.tag,
            "CONDUCTOR_SERVER_URL": self.conductor.url,
            "LAKECTL_SERVER_ENDPOINT_URL": self.lakefs.endpoint,
            "LAKECTL_CREDENTIALS_ACCESS_KEY_ID": self.lakefs.access_key_id,
            "LAKECTL_CREDENTIALS_SECRET_ACCESS_KEY": self.lakefs.secret,
            "PERAGO_HOME": str(self.directory / "home"),
            "PERAGO_WORKSPACE_ROOT": str(self.root),
            "PERAGO_LOG_ROOT": str(self.directory / "logs"),
            "PERAGO_CACHE_ROOT": str(self.directory / "cache"),
            "PERAGO_WORKER_ID_PREFIX": f"{self.tag}-",
            **self.settings,
            **more,
        }

    def perago(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "perago", *words],
            cwd=self.directory,
            env=self.environment(**more),
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )

    def register(self, **more: str) -> None:
        done = self.perago("register", "deeds", **more)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(
        self, *options: str, ready: bool = True, module: str = "deeds", **more: str
    ) -> Worker:
        if deadly := more.get(VARIABLE, ""):
            self.will_kill(deadly.split(","))
            more = {**more, VARIABLE: "" if injection.OFF else deadly, LOG: str(self.kill_log)}
        log = self.directory / f"worker-{len(self.workers)}.log"
        with log.open("w") as stream:
            process = subprocess.Popen(
                [sys.executable, "-m", "perago", "start", module, *options],
                cwd=self.directory,
                env=self.environment(**more),
                stdout=stream,
                stderr=subprocess.STDOUT,
            )
        worker = Worker(process, Path(more.get("PERAGO_WORKSPACE_ROOT", str(self.root))), log)
        self.workers.append(worker)
        if ready:
            worker.until_ready()
        return worker

    @property
    def kill_log(self) -> Path:
        """Where attempts that die on purpose write that they do."""
        return self.directory / "killed"

    def killed(self, place: str) -> int:
        """Count how often an attempt died, or halted, at a place."""
        return self.kill_log.read_text().splitlines().count(place) if self.kill_log.exists() else 0

    def will_kill(self, places: Iterable[str]) -> None:
        """Have the running case fail if an attempt does not die where it is told to."""
        for place in places:
            injection.expect(f"SIGKILL at {place}", partial(self.killed, place))

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
        self.client.close()
        self.store.close()

    # --- workflows ---------------------------------------------------------------------------

    def run(self, task: str = "free", /, workspace: Any = None, **params: object) -> str:
        """Start a workflow of one task and return its id."""
        given = {"params": params, **({"workspace": workspace} if workspace else {})}
        step = {
            "name": f"{task}_{self.tag}",
            "taskReferenceName": task,
            "type": "SIMPLE",
            "inputParameters": {key: f"${{workflow.input.{key}}}" for key in given},
        }
        return self.run_steps([step], given)

    def run_steps(self, steps: list[dict[str, Any]], given: Mapping[str, Any]) -> str:
        """Start a workflow of these steps, as they are, and return its id."""
        name = f"{steps[-1]['taskReferenceName']}_{self.tag}"
        definition = {
            "name": name,
            "version": 1,
            "schemaVersion": 2,
            "ownerEmail": "tests@example.com",
            "timeoutSeconds": 0,
            "timeoutPolicy": "ALERT_ONLY",
            "tasks": steps,
        }
        self.client.put_workflows([definition])
        return self.client.start_workflow(name, given, 1)

    def workspace(self, files: Mapping[str, bytes] | None = None) -> dict[str, str]:
        """Make a repository and return the workspace input at its head."""
        repository = new_name()
        head = self.store.create_repository(repository)
        for name, text in (files or {}).items():
            self.store.put(repository, "main", name, text)
        if files:
            head = self.store.commit_branch(repository, "main", "begin")
        return {
            "repository": repository,
            "branch": "main",
            "ref_type": "commit",
            "ref": head.id,
        }

    def workflow(self, workflow_id: str) -> dict[str, Any]:
        found = self.client.execution(workflow_id)
        assert found is not None
        return found

    def tasks(self, workflow_id: str) -> list[tuple[str, int]]:
        """Return status and retry count of every attempt, in order."""
        found = self.workflow(workflow_id)["tasks"]
        return [(task["status"], task["retryCount"]) for task in found]

    def ended(self, workflow_id: str, seconds: float = SECONDS) -> dict[str, Any]:
        def over() -> dict[str, Any] | None:
            found = self.workflow(workflow_id)
            return found if found["status"] not in {"RUNNING", "PAUSED"} else None

        found = eventually(over, f"end of {workflow_id}", seconds)
        assert isinstance(found, dict)
        return found

    def completed(self, workflow_id: str, seconds: float = SECONDS) -> dict[str, Any]:
        found = self.ended(workflow_id, seconds)
        assert found["status"] == "COMPLETED", found.get("reasonForIncompletion")
        return found

    def ask(self, method: str, *parts: str, body: Any = None, **query: Any) -> Any:
        """Use the engine as an operator does: pause, resume, retry, rerun, restart."""
        path = path_of("workflow", *parts)
        ask = Ask(" ".join(parts), method, path, Call.ONCE, query, body, plain=True)
        return self.client.ask(ask)

    # --- what is left ------------------------------------------------------------------------

    def attempt_dirs(self) -> list[str]:
        if not self.root.is_dir():
            return []
        return sorted(path.name for path in self.root.iterdir() if path.is_dir())

    def staging(self, workspace: Mapping[str, str]) -> list[str]:
        found = self.store.branches(workspace["repository"], hidden=True)
        return [branch.name for branch in found if branch.name.startswith("perago-staging-")]

    def head(self, workspace: Mapping[str, str]) -> str:
        return self.store.head(workspace["repository"], workspace["branch"]).id

    def read(self, workspace: Mapping[str, str], key: str) -> bytes:
        """Read a file at the head of the target."""
        with self.store.open_object(workspace["repository"], workspace["branch"], key) as found:
            return found.read()

    def history(self, workspace: Mapping[str, str]) -> list[str]:
        """Return commit ids from the head down to the input ref, without it."""
        found: list[str] = []
        for commit in self.store.history(workspace["repository"], workspace["branch"]):
            if commit.id == workspace["ref"]:
                return found
            found.append(commit.id)
        raise AssertionError("the input ref left the history")

    def logged(self, words: str) -> list[dict[str, Any]]:
        """Return the log lines that contain these words, of all workers of this stage."""
        return [
            json.loads(line)
            for file in sorted((self.directory / "logs").glob("*.jsonl"))
            for line in file.read_text().splitlines()
            if words in line
        ]


@dataclass
class Worker:
    process: subprocess.Popen[bytes]
    root: Path
    log: Path

    @property
    def state(self) -> dict[str, Any]:
        try:
            found = json.loads((self.root / STATE).read_text())
        except (OSError, ValueError):
            return {}
        return found if found.get("pid") == self.process.pid else {}

    def until_ready(self) -> None:
        def ready() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            return bool(self.state.get("ready"))

        eventually(ready, "a ready worker")

    @property
    def pids(self) -> list[int]:
        return [executor["pid"] for executor in self.state["executors"]]

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float = SECONDS) -> int:
        return self.process.wait(seconds)

    def stop(self, seconds: float = SECONDS) -> int:
        self.signal(signal.SIGTERM)
        return self.wait(seconds)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(LIMIT)

    def text(self) -> str:
        return self.log.read_text()
