"""Run one task as a real attempt on a real store in a temporary directory."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from perago.app.engines import EngineFactory
from perago.attempt.lifecycle import run_attempt
from perago.attempt.services import AttemptServices
from perago.clock import SystemClock
from perago.errors import UsageError
from perago.history.event_log import AttemptJournal, EventLog
from perago.ledger.settling import settling
from perago.ports import Clock, Ledger
from perago.programs.running import ProgramRunner
from perago.protocol.outcome import Outcome
from perago.protocol.values import Attempt, Claim, Commit, Status, WorkspaceInput
from perago.settings import SparkSettings
from perago.stores.embedded import EmbeddedStore
from perago.tasks.declaration import definition_of
from perago.tasks.definition import TaskDefinition
from perago.tasks.loading import one_task
from perago.testing.arranged import ArrangedStore
from perago.testing.broker import ScriptedBroker
from perago.testing.faults import Counted, Crashed, Fault, Scene
from perago.testing.switch import Switch
from perago.workspace.attempt_dirs import LocalAttemptDirs

Files = Mapping[str, bytes | str]
BRANCH = "main"


class Lab:
    """A store, a broker and a directory of their own; each ``run`` is one attempt.

    The store is an embedded one unless another is given; ``spark`` says where Spark tasks run
    that do not say it themselves, ``ledger`` is told and asked by every attempt (K5).
    """

    def __init__(
        self,
        path: Path,
        clock: Clock | None = None,
        store: ArrangedStore | None = None,
        repository: str = "lab",
        spark: SparkSettings | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        self.store: ArrangedStore = store or EmbeddedStore(path / "store")
        self.repository = repository
        self.broker = ScriptedBroker()
        self.ledger = ledger
        self.clock: Clock = clock or SystemClock()
        self.attempt_dirs = path / "rooms"
        self._engines = EngineFactory(spark or SparkSettings())
        self._programs = ProgramRunner()
        self._tasks: dict[tuple[str, int], TaskDefinition] = {}
        self._events = EventLog(path / "events.sqlite")
        self._made = False

    @property
    def head(self) -> Commit:
        """Return the head of the target branch now."""
        self._repository()
        return self.store.head(self.repository, BRANCH)

    def commit(self, files: Files) -> Commit:
        """Put files on the target branch, as the starting point of a run."""
        self._repository()
        for key, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            self.store.put(self.repository, BRANCH, key, data)
        self.store.commit_branch(self.repository, BRANCH, "given files", {})
        return self.head

    def run(
        self,
        task: Callable[..., Any] | str,
        params: BaseModel | Mapping[str, object] | None = None,
        *,
        files: Files | None = None,
        faults: Sequence[Fault] = (),
    ) -> Run:
        """Run one task on files (keys of the repository, prefix included) and params.

        A task of a manifest is named: ``"tasks.toml:transcode"``.
        """
        definition = self._named(task) if isinstance(task, str) else definition_of(task)
        if files:
            self.commit(files)
        workspace = None
        if definition.workspace is not None:
            workspace = WorkspaceInput(self.repository, BRANCH, "commit", self.head.id)
        elif files:
            raise UsageError(f"task {definition.name!r} has no workspace to put files in")
        attempt = Attempt(
            workflow_instance_id=str(uuid.uuid4()),
            task_id=str(uuid.uuid4()),
            retry_count=0,
            reference_task_name=definition.name,
            task_def_name=definition.name,
            seq=1,
        )
        return self._attempt(definition, attempt, workspace, _plain(params), faults)

    def _named(self, spec: str) -> TaskDefinition:
        """Load a task by its name; a manifest is read again when it has changed."""
        file = Path(spec.partition(":")[0])
        stamp = file.stat().st_mtime_ns if file.exists() else 0
        if (spec, stamp) not in self._tasks:
            self._tasks[spec, stamp] = one_task(spec)
        return self._tasks[spec, stamp]

    def retry(self, run: Run, *, faults: Sequence[Fault] = ()) -> Run:
        """Run the next attempt of the same step: a new task id, the same input A."""
        attempt = replace(
            run.attempt, task_id=str(uuid.uuid4()), retry_count=run.attempt.retry_count + 1
        )
        self.broker.set_status(run.attempt, Status.FAILED)
        return self._attempt(run.task, attempt, run.workspace, run.params, faults)

    def again(self, run: Run, *, faults: Sequence[Fault] = ()) -> Run:
        """Deliver the very same attempt once more: a twin execution."""
        return self._attempt(run.task, run.attempt, run.workspace, run.params, faults)

    def _journal(self, claim: Claim) -> AttemptJournal:
        kind = getattr(self.store, "kind", None)
        return AttemptJournal(self._events, claim, self.clock, store=kind)

    def _attempt(
        self,
        task: TaskDefinition,
        attempt: Attempt,
        workspace: WorkspaceInput | None,
        params: Mapping[str, object],
        faults: Sequence[Fault],
    ) -> Run:
        given: dict[str, object] = {"params": params}
        if workspace is not None:
            given["workspace"] = workspace.as_json()
        claim = Claim(attempt, given, uuid.uuid4().hex)
        switch = Switch(faults, Scene(self.store, self.broker, attempt, workspace))
        ledger = switch.ledger(self.ledger) if self.ledger else None
        services = AttemptServices(
            store=switch.store(self.store),
            broker=settling(switch.broker(self.broker), ledger, claim, self.clock),
            attempt_dirs=switch.attempt_dirs(
                LocalAttemptDirs(self.attempt_dirs, "lab", self.clock)
            ),
            clock=self.clock,
            journal=switch.journal(self._journal(claim)),
            engines=self._engines,
            programs=self._programs,
            ledger=ledger,
        )
        before = {id(fault): fault.met for fault in faults if isinstance(fault, Counted)}
        outcome = None
        with suppress(Crashed):
            outcome = run_attempt(claim, task, services)
        for fault in faults:
            if isinstance(fault, Counted) and fault.met == before[id(fault)]:
                raise UsageError(
                    f"the fault {type(fault).__name__} never happened in this attempt",
                    remedy="choose a point or a call that is on the way this attempt takes",
                )
        return Run(self, task, attempt, workspace, params, outcome, claim.execution_id)

    def events(self, execution_id: str) -> list[str]:
        """Return the names of an execution's events, in order."""
        return [one.event.title for one in self._events.of_execution(execution_id)]

    def files(self, ref: str) -> dict[str, bytes]:
        """Read the whole tree of a commit."""
        listing = self.store.listing(self.repository, ref, "")
        found = {}
        for info in listing:
            with self.store.open_object(self.repository, ref, info.key) as content:
                found[info.key] = content.read()
        return found

    def close(self) -> None:
        """Close what is open; the directory stays for whoever wants to look."""
        self._programs.close()
        self._events.close()
        self.store.close()

    def _repository(self) -> None:
        if not self._made:
            self.store.create_repository(self.repository, BRANCH)
            self._made = True


@dataclass(frozen=True)
class Run:
    """One attempt that was run, and the world after it."""

    lab: Lab
    task: TaskDefinition
    attempt: Attempt
    workspace: WorkspaceInput | None
    params: Mapping[str, object]
    outcome: Outcome | None
    execution_id: str

    @property
    def crashed(self) -> bool:
        """Return whether a fault killed it before it could report."""
        return self.outcome is None

    @property
    def completed(self) -> bool:
        """Return whether the attempt succeeded."""
        return self.outcome is not None and self.outcome.completed

    @property
    def status(self) -> Status | None:
        """Return the reported status; None when it crashed."""
        return self.outcome.status if self.outcome else None

    @property
    def reason(self) -> str:
        """Return why it failed."""
        return self.outcome.reason if self.outcome else ""

    @property
    def result(self) -> Any:
        """Return the task's result as JSON values."""
        return self.outcome.output.get("result") if self.outcome else None

    @property
    def guards(self) -> list[dict[str, Any]]:
        """Return what the guards of tables found, as the output tells it (X5)."""
        found = self.outcome.output.get("guards") if self.outcome else None
        return list(found) if isinstance(found, list) else []

    @property
    def ref(self) -> str | None:
        """Return the commit in the output."""
        found = self.outcome.output.get("workspace") if self.outcome else None
        return found["ref"] if isinstance(found, dict) else None

    @property
    def files(self) -> dict[str, bytes]:
        """Read what is visible on the target branch now."""
        return self.lab.files(self.lab.head.id)

    @property
    def history(self) -> list[Commit]:
        """Return the target branch by first parents, newest first, down to the input."""
        found = []
        for commit in self.lab.store.history(self.lab.repository, BRANCH):
            found.append(commit)
            if self.workspace and commit.id == self.workspace.ref:
                break
        return found

    @property
    def events(self) -> list[str]:
        """Return the names of the points it reached, in order."""
        return self.lab.events(self.execution_id)

    def retry(self, *, faults: Sequence[Fault] = ()) -> Run:
        """Run the next attempt of this step."""
        return self.lab.retry(self, faults=faults)


def _plain(params: BaseModel | Mapping[str, object] | None) -> Mapping[str, object]:
    if isinstance(params, BaseModel):
        return params.model_dump(mode="json", by_alias=True)
    return params or {}
