"""Workers on real servers, workflows whose attempts meet a fault, and the verdict on each."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

from perago.errors import PeragoError
from perago.history.event_log import EventLog
from perago.process.killing import VARIABLE
from perago.protocol.paths import MARKER
from perago.stores.lakefs.action import KEY, render
from perago.stores.lakefs.installing import install_fence
from perago.tasks.bodies import ProgramBody
from perago.tasks.manifest import load_manifest
from perago.workspace.owner import is_alive
from tests import injection
from tests.faults import act_body
from tests.faults.acts_of import after, given
from tests.faults.canaries import CanaryKey, CanaryTree
from tests.faults.checker import Checker, Line
from tests.patience import LIMIT
from tests.typescript.project import Package
from tests.worker.stage import Stage, Worker, eventually

BRANCH = "main"
NODE = "PERAGO_TEST_NODE"
"""``program`` or ``typescript`` makes such a one the body of every task, instead of a function."""
READY_SECONDS = 2 * LIMIT
ROOT = Path(__file__).parents[2]


@cache
def node_settings(kind: str) -> Mapping[str, str]:
    """Tell ``acts.py`` what does the body of its tasks."""
    if not kind:
        return {}
    if kind == "program":
        return {"ACTS_COMMAND": json.dumps([sys.executable, act_body.__file__])}
    directory = Path(tempfile.mkdtemp(prefix="perago-acts-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    project = Package.at(directory / "package").project(directory / "project")
    source = Path(act_body.__file__).with_suffix(".ts")
    (task,) = load_manifest(str(project.declare_with_node(source)))
    assert isinstance(task.body, ProgramBody)
    return {"ACTS_COMMAND": json.dumps(task.body.program.command), "ACTS_SERVE": "yes"}


@dataclass(frozen=True)
class Begun:
    """One workflow of one task on a repository of its own."""

    step: str
    fence: str
    mode: str
    workflow_id: str
    workspace: Mapping[str, str]
    base: Mapping[str, bytes]
    apart: bool = False
    faults: injection.Case = field(default_factory=injection.Case, compare=False)
    """What is to happen to it; it is asked for by whoever looks at the workflow."""

    @property
    def repository(self) -> str:
        return self.workspace["repository"]

    @property
    def a(self) -> str:
        return self.workspace["ref"]


@dataclass
class Rig(Stage):
    """A stage whose tasks are those of ``acts.py``."""

    response_seconds: int = 60
    more: dict[str, str] = field(default_factory=dict)
    module: str = "tests.faults.acts"
    deadly: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.settings |= {"ACTS": self.tag, "ACTS_RESPONSE": str(self.response_seconds)}
        self.settings |= node_settings(os.environ.get(NODE, ""))
        self.settings["PYTHONPATH"] = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))
        self.settings |= self.more
        self.outside = CanaryTree(self.directory / "outside")
        self.key = CanaryKey(self.lakefs.secret)
        self.register()

    def register(self, **more: str) -> None:
        done = self.perago("register", self.module, **more)
        assert done.returncode == 0, done.stdout + done.stderr

    def work(
        self, executors: int, deadly: str = "", *, ready: bool = True, root: str = "root"
    ) -> Worker:
        """Start a worker, some of whose attempts end where ``PERAGO_KILL_AT`` says."""
        more = {"PERAGO_WORKSPACE_ROOT": str(self.directory / root)}
        if deadly:
            more[VARIABLE] = deadly
        worker = self.start("-j", str(executors), ready=False, module=self.module, **more)
        if ready:
            self.until_ready(worker)
        return worker

    def until_ready(self, worker: Worker) -> None:
        """Wait for all executors: a dozen take their time on a loaded machine."""

        def is_ready() -> bool:
            assert worker.process.poll() is None, worker.text()
            return bool(worker.state.get("ready"))

        eventually(is_ready, "a ready worker", READY_SECONDS)

    def work_under(self, wrapper: Sequence[str], executors: int = 2, **more: str) -> Worker:
        """Start a worker through another program: a shell with limits, a namespace."""
        root = self.directory / f"root-{len(self.workers)}"
        root.mkdir()
        log = self.directory / f"worker-{len(self.workers)}.log"
        words = [*wrapper, sys.executable, "-m", "perago", "start", self.module]
        words += ["-j", str(executors)]
        with log.open("w") as stream:
            process = subprocess.Popen(
                words,
                cwd=self.directory,
                env=self.environment(PERAGO_WORKSPACE_ROOT=str(root), **more),
                stdout=stream,
                stderr=subprocess.STDOUT,
            )
        # The root as that process sees it: it may have been mounted there only.
        worker = Worker(process, Path(f"/proc/{process.pid}/root{root}"), log)
        self.workers.append(worker)
        self.until_ready(worker)
        return worker

    def attempt_dirs(self) -> list[str]:
        """Find the attempt directories of all workers."""
        roots = {worker.root for worker in self.workers if worker.root.exists()}
        return [path.name for root in roots for path in root.iterdir() if path.is_dir()]

    # --- faults --------------------------------------------------------------------------------

    def will_kill(self, places: Iterable[str]) -> None:
        """Keep where attempts die until their workflows are looked at: cases share a worker."""
        self.deadly += places

    def met(self, begun: Begun) -> Begun:
        """Have the running test fail unless the faults of this workflow have happened."""
        injection.adopt(begun.faults)
        mine = [place for place in self.deadly if place.startswith(f"{begun.step}:")]
        expected = {f"signal at {place}": partial(self.killed, place) for place in mine}
        injection.adopt(injection.Case(dict(expected)))
        return begun

    # --- cases ---------------------------------------------------------------------------------

    def begin(
        self,
        step: str,
        fence: str = "head",
        arrange: Callable[[Mapping[str, str]], None] = lambda _: None,
        *,
        task: str = "",
        **act: Any,
    ) -> Begun:
        """Start a workflow of one step on a new repository, which is arranged before."""
        with injection.case() as faults:
            return self._begin(step, fence, arrange, task, act, faults)

    def _begin(
        self,
        step: str,
        fence: str,
        arrange: Callable[[Mapping[str, str]], None],
        task: str,
        act: dict[str, Any],
        faults: injection.Case,
    ) -> Begun:
        files = given(step)
        workspace = self.workspace(files)
        if fence == "hard":
            fenced = install_fence(self.store, workspace["repository"], BRANCH)
            workspace["ref"] = fenced.head
            files[KEY] = render([BRANCH]).encode()
        arrange(workspace)
        params = {"path": str(self.directory / step), **self._harm(step, act)}
        workflow = self.start_workflow(f"{task or fence}_{self.tag}", step, workspace, params)
        mode, apart = params.get("mode", "change"), bool(params.get("apart"))
        return Begun(step, fence, mode, workflow, workspace, files, apart, faults)

    def _harm(self, step: str, act: dict[str, Any]) -> dict[str, Any]:
        """Expect what the body is to do to itself, which it writes down before it does it."""
        harm = [name for name in ("die", "do") if act.get(name, -1) not in {-1, ""}]
        for name in harm:
            injection.expect(f"body: {name} {act[name]}", partial(self.killed, f"{step}:{name}"))
        if injection.OFF:
            return {name: value for name, value in act.items() if name not in harm}
        return act | {"record": str(self.kill_log)}

    def start_workflow(
        self, task: str, step: str, workspace: Mapping[str, str], params: Mapping[str, Any]
    ) -> str:
        name = f"{step}_{self.tag}"
        one = {
            "name": task,
            "taskReferenceName": step,
            "type": "SIMPLE",
            "inputParameters": {
                "workspace": "${workflow.input.workspace}",
                "params": "${workflow.input.params}",
            },
        }
        definition = {
            "name": name,
            "version": 1,
            "schemaVersion": 2,
            "ownerEmail": "tests@example.com",
            "timeoutSeconds": 0,
            "timeoutPolicy": "ALERT_ONLY",
            "tasks": [one],
        }
        self.client.put_workflows([definition])
        return self.client.start_workflow(name, {"workspace": workspace, "params": params}, 1)

    def given_up(self, workflow_id: str, seconds: float) -> dict[str, Any]:
        """Wait for a workflow to complete whose attempt nobody answers for.

        The engine looks at such a workflow ever more seldom; asked to, it looks at once.
        """

        def is_over() -> bool:
            with suppress(PeragoError):
                self.ask("PUT", "decide", workflow_id)
            return self.workflow(workflow_id)["status"] not in {"RUNNING", "PAUSED"}

        eventually(is_over, f"end of {workflow_id}", seconds, every=1.0)
        return self.completed(workflow_id)

    # --- verdicts ------------------------------------------------------------------------------

    def findings(self, begun: Begun, *, swept: bool = True) -> list[str]:
        """Read both servers and the root of the workers; nothing found means that all held."""
        execution = self.workflow(self.met(begun).workflow_id)
        return [*self._findings(begun, execution, swept=swept)]

    def _findings(
        self, begun: Begun, execution: Mapping[str, Any], *, swept: bool
    ) -> Iterator[str]:
        checker = Checker(self.client, self.store)
        yield from checker.findings(self.line(begun, execution))
        yield from checker.reasons(begun.workflow_id)
        if swept:
            yield from self.left(begun, execution)
        else:
            yield from self.told_or_touched(execution)

    def told_or_touched(self, execution: Mapping[str, Any]) -> Iterator[str]:
        """Find the worker's key in what was said, and marks on what is not the attempt's."""
        if self.key.is_in(json.dumps(execution).encode()):
            yield f"V8: the secret key is in the execution {execution['workflowId']}"
        yield from self.beside()

    def beside(self) -> Iterator[str]:
        """Find the worker's key in files, and marks on what is not the attempt's, as of now."""
        yield from self.outside.findings()
        places = [self.directory / "logs", self.directory / "home", self.root]
        yield from self.key.findings([*places, *self.directory.glob("worker-*.log")])

    def line(self, begun: Begun, execution: Mapping[str, Any]) -> Line:
        """Say what the target must hold, from what the accepted attempt said it did."""
        tasks = execution["tasks"]
        done = [task for task in tasks if task["status"] == "COMPLETED"]
        name = tasks[0]["taskDefName"]
        writes = begun.mode == "change" and begun.fence != "look"
        runs = [task["outputData"]["result"]["run"] for task in done]
        tree = after(begun.base, runs[-1] if runs else 0, apart=begun.apart)
        older = [after(begun.base, run, apart=begun.apart) for run in range(len(tasks))]
        return Line(
            begun.workflow_id,
            begun.repository,
            BRANCH,
            begun.a,
            {name: tree} if writes else {},
            lineage=older if begun.fence == "lineage" else (),
        )

    def left(self, begun: Begun, execution: Mapping[str, Any]) -> Iterator[str]:
        """Find what the attempts should have removed (V7), touched or told (V6, V8)."""
        yield from self.told_or_touched(execution)
        if staging := self.staging(self.met(begun).workspace):
            yield f"V7: staging branches are left: {staging}"
        ids = tuple(task["taskId"] for task in execution["tasks"])
        with suppress(AssertionError):  # Those of dead executors are swept in a moment.
            eventually(lambda: not any(map(is_of_program, self.left_of(ids))), "a swept root")
        if attempt_dirs := self.left_of(ids):
            yield f"V7: attempt directories are left: {attempt_dirs}"

    def left_of(self, ids: tuple[str, ...]) -> list[str]:
        """Find attempt directories of tasks, but for those of programs that still serve."""
        roots = {worker.root for worker in self.workers if worker.root.exists()}
        found = [path for root in roots for path in root.iterdir() if path.name.startswith(ids)]
        return [path.name for path in found if path.is_dir() and not serves(path)]

    def statuses(self, begun: Begun) -> list[str]:
        return [status for status, _ in self.tasks(self.met(begun).workflow_id)]

    def short_leases(self, begun: Begun) -> list[str]:
        """Return the statuses, leases that were lost one after the other as one.

        Where they are short, a starved machine may lose one more than the test took.
        """
        found = self.statuses(begun)
        pairs = zip([*found[1:], ""], found, strict=True)
        return [status for after, status in pairs if (status, after) != ("TIMED_OUT", "TIMED_OUT")]

    def events(self, begun: Begun) -> list[list[str]]:
        """Return the names of the events of each execution, in the order they were claimed."""
        log = EventLog(self.directory / "home" / "events.sqlite")
        found: dict[str, list[str]] = {}
        for one in log.of_workflow(begun.workflow_id):
            found.setdefault(one.execution_id, []).append(one.event.title)
        return list(found.values())


def is_of_program(name: str) -> bool:
    """Tell the directory of a program that serves from that of an attempt."""
    return name.endswith("-program")


def serves(path: Path) -> bool:
    """Tell whether a directory is of a program that lives on with its executor."""
    try:
        marker = json.loads((path / MARKER).read_text())
    except (OSError, ValueError):  # It is going.
        return False
    return is_of_program(path.name) and is_alive(marker["owner_pid"], marker["owner_token"])


def children(worker: Worker) -> list[int]:
    """Find the executors of a worker as they are now."""
    found: list[int] = []
    for file in Path(f"/proc/{worker.process.pid}/task").glob("*/children"):
        with suppress(OSError):
            found += [int(pid) for pid in file.read_text().split()]
    return found


def kill_at(places: Iterable[tuple[str, int, str]], signal: str = "") -> str:
    """Write the value of ``PERAGO_KILL_AT``: (step, retry, point) each."""
    return ",".join(f"{step}:{retry}:{point}{signal}" for step, retry, point in places)


def signal_all(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        os.kill(pid, number)


def is_stopped(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # It is gone.
        return False
    return stat.rpartition(")")[2].split()[0] == "T"
