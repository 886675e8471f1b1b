"""An attempt that is about to publish: the product's own code, stopped at every question it asks.

The order of the steps, the fences, the decision, what follows a lost answer, the verification and
the report are not written down a second time here: it is the attempt of ``attempt.lifecycle``,
whole, only without a directory on a disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast
from unittest.mock import patch

from pydantic import BaseModel

from perago import WorkspaceSpec, task
from perago.app.engines import EngineFactory
from perago.attempt.fence import AttemptFence, FencedHead, no_task
from perago.attempt.lifecycle import Execution, Job
from perago.attempt.progress import AttemptProgress
from perago.attempt.report import report
from perago.attempt.services import AttemptServices
from perago.attempt.staging import Stage
from perago.attempt.working_copy import Change, DownloadedCopy, WorkingCopy
from perago.ports import AttemptDir, AttemptDirs, Broker, Ledger, Store
from perago.programs.running import ProgramRunner
from perago.protocol.diff import diff
from perago.protocol.events import Event
from perago.protocol.kinds import FenceKind
from perago.protocol.values import Attempt, Claim, Commit, Phase, WorkspaceInput
from perago.stores.lakefs import hard
from perago.tasks.declaration import definition_of
from perago.tasks.definition import TaskDefinition
from perago.testing import ManualClock
from perago.workspace.scan import Baseline
from tests.model.server import BRANCH, REPOSITORY, A, Library
from tests.model.wire import (
    Answer,
    ModelEngine,
    ModelLedger,
    ModelStore,
    Question,
    Unanswered,
    Wire,
    manifest,
)

FENCES: tuple[FenceKind, ...] = ("head", "lineage", "hard")
NOWHERE = AttemptDir(Path("/nowhere"), Path("/nowhere"))
INPUT = WorkspaceInput(REPOSITORY, BRANCH, "commit", A)


class Nothing(BaseModel):
    """Params and result of a task that is never called."""


def _task(fence: FenceKind) -> TaskDefinition:
    def body(workspace: Path, params: Nothing) -> Nothing:
        return params

    spec = WorkspaceSpec(prefix="/", fence=fence)
    return definition_of(task(name="step", owner_email="a@b.c", workspace=spec)(body))


TASKS = {fence: _task(fence) for fence in FENCES}


@dataclass(frozen=True)
class Writer:
    """One execution, and whose it is."""

    who: str
    """What its commits are named after: X1 is merged, C1 is staged, I1 is an intent by 1."""
    attempt: Attempt
    fence: FenceKind
    name: str
    changes: bool = True
    naive: bool = False
    """Whether it asks the engine before it reads the head, and reads it only once."""
    keeps_ledger: bool = False


class Naive(AttemptFence):
    """The order that F3 forbids."""

    def head(
        self,
        workspace: WorkspaceInput,
        first: Callable[[], Commit],
        others: Callable[[Commit], Iterable[str]] = no_task,
    ) -> FencedHead:
        self.check()
        head = first()
        return FencedHead(head, {task: self.broker.standing(task) for task in others(head)})


class Silent:
    """A journal nobody reads."""

    def event(self, event: Event) -> None: ...

    def progress(self, phase: str, done: int, total: int) -> None: ...


class Impatient(ManualClock):
    """A clock on which a second question is in time and a third is too late."""

    def sleep(self, seconds: float) -> None:
        super().sleep(3600)


class Worked(DownloadedCopy):
    """The attempt directory after the body: it holds what A holds, and maybe one file more."""

    __slots__ = ()

    def change(self) -> Change:
        before = manifest({"a"})
        after = manifest({"a", self.execution_id} - {""})
        return Change(A, diff(before, after), after)


class Publishing(Execution):
    """The whole attempt, but for the directory it works in."""

    def __init__(
        self, writer: Writer, services: AttemptServices, progress: AttemptProgress
    ) -> None:
        given: dict[str, object] = {"workspace": INPUT.as_json(), "params": {}}
        claim = Claim(writer.attempt, given, f"execution-{writer.who}")
        super().__init__(claim, TASKS[writer.fence], services, progress)
        self._file = writer.who if writer.changes else ""
        if writer.naive:
            self._fence = Naive(writer.attempt, services.store, services.broker, services.clock)

    def _enter(self, undo: ExitStack) -> AttemptDir:
        return NOWHERE

    def _working_copy(self, job: Job, attempt_dir: AttemptDir, stage: Stage) -> WorkingCopy:
        return Worked(self._file, A, job.select, attempt_dir, Baseline({}, {}, 0), "md5")


@dataclass(frozen=True, slots=True)
class Standing:
    """Where an attempt stands: the question it waits with, or nothing more to do."""

    question: Question | None
    phase: Phase


def stand(writer: Writer, library: Library, answers: tuple[Answer, ...]) -> Standing:
    """Run an attempt as far as these answers take it."""
    clock, journal = Impatient(), Silent()
    progress = AttemptProgress(journal, clock)
    wire = Wire(answers, progress)
    store = ModelStore(writer.who, library, wire, fenced=writer.fence == "hard")
    services = AttemptServices(
        store=cast("Store", store),
        broker=cast("Broker", ModelEngine(writer.who, wire)),
        attempt_dirs=cast("AttemptDirs", None),
        clock=clock,
        journal=journal,
        engines=EngineFactory(),
        programs=ProgramRunner(),
        ledger=cast("Ledger", ModelLedger(wire, library.postings)) if writer.keeps_ledger else None,
    )
    with (
        patch.object(hard, "time", clock),
        patch.object(hard, "FINISH_TRIES", 2),
        suppress(Unanswered),
    ):
        outcome = Publishing(writer, services, progress).run()
        report(writer.attempt, outcome, services.broker, progress)
    return Standing(wire.pending, wire.phase)


FIRST = Attempt("workflow-1", "task-0", 0, "step_ref", "step", seq=1)


def retry(number: int) -> Attempt:
    """Return the attempt with this number of one step; attempt 0 is long over."""
    return replace(FIRST, task_id=f"task-{number}", retry_count=number)


STRANGER = replace(FIRST, workflow_instance_id="workflow-2", task_id="task-w")
LATER_STEP = replace(FIRST, reference_task_name="later_ref", task_id="task-s", seq=2)
