"""One attempt, from the first byte to the last (section 4 of the specification).

::

    Claim --1 validate--> Job --2 directory, 3 download--> WorkingCopy with A in it
                |-- ledger: fence, a recorded publication of this step is H --> completed with H
                |-- direct: fence, private branch from A, nothing downloaded --> WorkingCopy
              4 pre guardrails   5 body   6 result model, post guardrails
                |-- read-only ----------------------------------> completed with A
              7 diff --> ChangeSet      8 first attempt fence
                |-- no change --> N: keep A, or relocate the branch back to A
              9 stage: private branch, upload, commit --> StagedWorkspace (C)
             10 read H (as early as 9), second attempt fence, read H again
             11 decide, apply, verify --> Merge | Replace, or refuse
             12 output with the published ref
             13 drop the staging branch   14 remove the directory   15 report

What can be decided without I/O is decided in :mod:`perago.protocol`; this file is the order.
Whatever fails goes through one classifier; whatever was made is undone in one place.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perago.attempt.adoption import StepLedger
from perago.attempt.author_line import author_line
from perago.attempt.fence import AttemptFence, moved
from perago.attempt.guards import GuardRunner, authored
from perago.attempt.program import program_call
from perago.attempt.progress import AttemptProgress, trace_of
from perago.attempt.publisher import Publisher, Target
from perago.attempt.report import report
from perago.attempt.services import AttemptServices
from perago.attempt.staging import Stage
from perago.attempt.working_copy import BranchCopy, Change, DownloadedCopy, WorkingCopy, download
from perago.attempt.working_directory import in_place
from perago.errors import PeragoError, ResultError
from perago.ports import AttemptDir, Engine, Published, Site
from perago.protocol import audit, events, lineage
from perago.protocol.adoption import Posting
from perago.protocol.data import GuardResult, told
from perago.protocol.diff import diff
from perago.protocol.job import assert_full_commit_id, split_input
from perago.protocol.kinds import FenceKind
from perago.protocol.outcome import Outcome, classify
from perago.protocol.paths import Selection, check_beside, plan_with_rest
from perago.protocol.publication import Keep, Situation, decide
from perago.protocol.replacement import tasks_to_ask
from perago.protocol.values import Claim, Commit, Phase, StagedWorkspace, Status, WorkspaceInput
from perago.redaction import hidden_facts, hide
from perago.tasks.bodies import ProgramBody, Role
from perago.tasks.definition import TaskDefinition
from perago.tasks.metrics import SinkRecorder


@dataclass(frozen=True, slots=True)
class Job:
    """A validated claim on a workspace: where it reads, what it may write, which rules hold."""

    workspace: WorkspaceInput
    select: Selection
    fence: FenceKind
    ledger: StepLedger


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is ready to be published: the staged commit C, or nothing."""

    staged: StagedWorkspace | None
    metadata: dict[str, str]
    first: Callable[[], Commit]
    """Reads H for the first time, if it has not been read already."""
    taken_from: str | None = None
    """Under ``lineage``, the head that the change was taken from (K2)."""


def run_attempt(claim: Claim, task: TaskDefinition, services: AttemptServices) -> Outcome:
    """Run one attempt and report it; never raises for anything the attempt did."""
    outcome = transact(claim, task, services)
    progress = AttemptProgress(services.journal, services.clock)
    report(claim.attempt, outcome, services.broker, progress, services.cancelled)
    return outcome


def transact(claim: Claim, task: TaskDefinition, services: AttemptServices) -> Outcome:
    """Do steps 1 to 14 and leave the report to whoever keeps the lease."""
    seconds = task.controls.timeout.attempt_seconds
    progress = AttemptProgress(services.journal, services.clock, services.cancelled, seconds)
    return Execution(claim, task, services, progress).run()


class Execution:
    """One actual run of an attempt. Nothing of it outlives it (W3)."""

    def __init__(
        self,
        claim: Claim,
        task: TaskDefinition,
        services: AttemptServices,
        progress: AttemptProgress,
    ) -> None:
        self._claim = claim
        self._task = task
        self._services = services
        self._store = services.store
        self._progress = progress
        self._verdicts: list[GuardResult] = []
        self._fence = AttemptFence(
            claim.attempt, services.store, services.broker, services.clock, services.prefetch
        )

    def run(self) -> Outcome:
        """Do steps 1 to 14: the transaction, then the undoing of all it made for itself."""
        with ExitStack() as undo:
            try:
                self._progress.event(events.Claimed(self._task.name, self._where()))
                outcome = self._transaction(undo)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - a body may raise anything
                outcome = self._failed(error)
            self._progress.ignore_log_failures()  # Cleanup and report never depend on it.
            # X5: also, and above all, of a table that was refused.
            outcome = replace(outcome, output={**outcome.output, **self._checked})
            self._progress.event(outcome.event)
        return outcome

    def _failed(self, error: BaseException) -> Outcome:
        """Return what a failure means; our own errors say all there is, others have a place."""
        self._progress.ignore_log_failures()
        if not isinstance(error, PeragoError) or error.__cause__ is not None:
            self._progress.event(events.Traceback(trace_of(error)))
        phase, limit = self._progress.current, self._services.reason_limit
        bug = phase is Phase.BODY and not isinstance(error, PeragoError)
        line = author_line(error, self._task.body) if bug else ""
        workflow = self._claim.attempt.workflow_instance_id
        return classify(
            phase, error, reason_limit=limit, hide=hide, line=line, workflow_id=workflow
        )

    def _transaction(self, undo: ExitStack) -> Outcome:
        """Show the order of section 4."""
        workspace, params = self._validate()
        spec = self._task.workspace
        if workspace is None or spec is None:
            engine = self._engine(undo, Site(self._claim.execution_id))
            own = self._enter(undo) if isinstance(self._task.body, ProgramBody) else None
            return self._completed(None, self._result(self._body(own, None, params, engine)))
        job = Job(workspace, spec.selection, spec.fence, self._ledger(workspace))
        if self._task.writable and (adopted := self._adopt(job)):
            return adopted
        drop = self._services.drop or self._store.drop
        stage = Stage(self._claim, workspace.repository, self._store, self._progress, undo, drop)
        attempt_dir = self._enter(undo)
        working_copy = self._working_copy(job, attempt_dir, stage)
        engine = self._engine(undo, working_copy.site)
        guards = GuardRunner(self._progress, engine, working_copy, self._verdicts)
        with self._in_place():
            guards.pre(spec.pre, spec.post)
        result = self._result(self._body(attempt_dir, working_copy.root, params, engine))
        with self._in_place():
            guards.post(spec.post)
        if spec.read_only:
            return self._completed(workspace, result)
        change = self._diff(working_copy)
        self._first_fence()
        prepared = self._prepare(job, working_copy, change, stage, guards.metadata())
        # Not later: between the last reading of H and the write time is short.
        intent = job.ledger.intend({"result": result, **self._checked}, prepared.staged)
        situation = self._situation(job, prepared)
        published = self._publish(job, intent, prepared, situation)
        return self._completed(workspace.at(published.ref), result, published.fence)

    # --- steps 1 to 8: the work --------------------------------------------------------------

    def _validate(self) -> tuple[WorkspaceInput | None, Any]:
        with self._progress.phase(Phase.INPUT):
            workspace, raw = split_input(
                self._claim.input, workspace=self._task.workspace is not None
            )
            params = self._task.parse_params(raw)
            if workspace is not None:
                found = self._store.commit(workspace.repository, workspace.ref)
                assert_full_commit_id(workspace, found.id)
                if (spec := self._task.workspace) and not spec.read_only:
                    self._store.prove(workspace, spec.fence)  # K3: before any work is done.
            return workspace, params

    def _ledger(self, workspace: WorkspaceInput) -> StepLedger:
        ledger, clock = self._services.ledger, self._services.clock
        return StepLedger(ledger, self._claim, self._task, workspace, self._progress, clock)

    def _adopt(self, job: Job) -> Outcome | None:
        """Complete with what this step published when its completion was lost (K5)."""
        if not job.ledger.promising(self._store):
            return None
        with self._progress.phase(Phase.FENCE_ONE):  # Before the body: what is there needs no work.
            head = self._fence.head(job.workspace, self._first_head(job)).commit
            taken = job.ledger.adopt(head)
        if taken is None:
            return None
        output = {"workspace": job.workspace.at(taken.head).as_json(), **taken.output}
        return Outcome(Status.COMPLETED, output, fence=job.fence)

    def _enter(self, undo: ExitStack) -> AttemptDir:
        with self._progress.phase(Phase.ATTEMPT_DIR):
            attempt_dir = self._services.attempt_dirs.enter(
                self._claim.attempt, self._claim.execution_id
            )
            undo.callback(
                self._progress.clean,
                Phase.CLEAN_ATTEMPT_DIR,
                "failed to clean attempt-local workspace",
                lambda: self._services.attempt_dirs.leave(
                    attempt_dir, self._services.cleanup_seconds
                ),
            )
            return attempt_dir

    def _working_copy(self, job: Job, attempt_dir: AttemptDir, stage: Stage) -> WorkingCopy:
        """Choose where the body works; a store that cannot be worked on in place is downloaded."""
        direct = self._store.direct if self._task.direct else None
        if direct is None:
            return self._download(job, attempt_dir)
        repository, ref = job.workspace.repository, job.workspace.ref
        staging = None
        if self._task.writable:  # X2: the branch is there before the body, so a fence is before it.
            self._first_fence()
            with self._progress.phase(Phase.STAGE):
                stage.open(ref)
            staging = stage.staging
        where = self._store, direct, repository, staging
        aside = attempt_dir.workspace, self._progress.dropped
        return BranchCopy(self._claim.execution_id, ref, job.select, *where, *aside)

    def _download(self, job: Job, attempt_dir: AttemptDir) -> DownloadedCopy:
        with self._progress.phase(Phase.DOWNLOAD):
            given = job.workspace, job.select, attempt_dir
            before, rest = download(*given, self._store, self._progress)
            where = self._claim.execution_id, job.workspace.ref, job.select, attempt_dir
            by_spark = self._task.spark is not None
            return DownloadedCopy(*where, before, self._store.checksum, rest, by_spark)

    def _engine(self, undo: ExitStack, site: Site) -> Engine:
        spec, step = self._task.spark, self._claim.attempt.logical_task_key
        progress = self._progress
        site = replace(site, dropped=progress.dropped, starting=progress.starting_spark, step=step)
        engine = self._services.engines.open(spec.need if spec else None, site)
        undo.callback(self._progress.quietly, "failed to close the engine", engine.close)
        return engine

    def _body(
        self, attempt_dir: AttemptDir | None, root: Path | None, params: Any, engine: Engine
    ) -> object:
        with (
            self._progress.phase(Phase.BODY),
            self._services.around_body(),
            self._in_place(),
            engine.running(),
            authored("the body"),
        ):
            if isinstance(body := self._task.body, ProgramBody):
                call = program_call(self._claim, self._services, self._progress, attempt_dir)
                told = replace(call, workspace=root, params=self._task.params.dump(params))
                return self._services.programs.run(body.program, told)
            return body.call(
                {
                    Role.WORKSPACE: lambda: root,
                    Role.PARAMS: lambda: params,
                    Role.METRICS: lambda: SinkRecorder(self._progress.measured),
                    Role.SPARK: engine.session,
                    Role.SPARK_WORKSPACE: engine.workspace,
                }
            )

    def _in_place(self) -> AbstractContextManager[None]:
        """Run an author's code, and stay in the working directory it began in (section 4)."""
        warned = events.Warned("the working directory was changed", "it was put back")
        return in_place(lambda: self._progress.event(warned))

    def _result(self, value: object) -> Mapping[str, object]:
        with self._progress.phase(Phase.RESULT):
            result = hidden_facts(self._task.dump_result(value))
            limit = self._services.output_limit
            if limit is not None and (size := len(json.dumps(result).encode())) > limit:
                raise ResultError(
                    f"task {self._task.name!r} returned {size} bytes, more than {limit}",
                    remedy="write big results to the workspace, or raise PERAGO_OUTPUT_MAX_SIZE",
                )
            return result

    def _diff(self, working_copy: WorkingCopy) -> Change:
        with self._progress.phase(Phase.DIFF):
            change = working_copy.change()
            steps = change.steps
            self._progress.event(events.Changed(steps.added, steps.changed, steps.removed))
            return change

    def _first_fence(self) -> None:
        with self._progress.phase(Phase.FENCE_ONE):
            self._fence.check()

    # --- steps 9 to 11: the publication ------------------------------------------------------

    def _prepare(
        self,
        job: Job,
        working_copy: WorkingCopy,
        change: Change,
        stage: Stage,
        checked: Mapping[str, str],
    ) -> Prepared:
        """Stage the change; without one the branch stays where the output says (N1 to N4)."""
        if not change.steps:
            return Prepared(None, audit.identity(self._claim), self._first_head(job))
        metadata = audit.staged_metadata(
            self._claim, job.workspace, "/" + job.select.prefix, stage.staging, checked
        )
        staged = None
        with self._progress.phase(Phase.STAGE):
            if job.fence == "lineage":
                change = self._rebase(job, change)
            if change.steps:
                working_copy.stage(stage, change)
            first = self._first_head(job)
            if change.steps:
                response = self._task.controls.timeout.response_seconds
                staged = stage.seal(metadata, self._task.budget, response)
                working_copy.confirm(staged, change)
        return Prepared(staged, metadata, first, change.base if job.fence == "lineage" else None)

    def _rebase(self, job: Job, change: Change) -> Change:
        """Under ``lineage``, take the step from the head this step made earlier (K2)."""
        head = self._store.head(job.workspace.repository, job.workspace.branch)
        if head.id == change.base:
            return change
        problem = lineage.refuse_range(
            self._range_to_input(job, head),
            self._claim.attempt.logical_task_key,
            job.workspace.ref,
        )
        if problem:
            raise self._target(job).fenced(problem)
        listing = self._store.listing(job.workspace.repository, head.id, job.select.root)
        before, rest = plan_with_rest(job.select, listing)
        steps = diff(before, change.after)
        check_beside(steps.added, rest)
        return replace(change, base=head.id, steps=steps)

    def _first_head(self, job: Job) -> Callable[[], Commit]:
        return self._fence.first(job.workspace, job.fence)

    def _situation(self, job: Job, prepared: Prepared) -> Situation:
        """Read H around the second fence, with all that the decision may look at (F3, P2a)."""
        staged = prepared.staged

        def around(head: Commit) -> Situation:
            return Situation(
                input_ref=job.workspace.ref,
                head=head,
                staged=staged.commit if staged else None,
                attempt=self._claim.attempt,
                submits=person.submits if (person := self._claim.person) else None,
                range_to_input=self._range_to_input(job, head) if job.fence == "lineage" else (),
            )

        with self._progress.phase(Phase.FENCE_TWO):
            seen = self._fence.head(
                job.workspace, prepared.first, lambda head: tasks_to_ask(around(head).at_stake)
            )
            return replace(around(seen.commit), standings=seen.standings)

    def _publish(
        self, job: Job, intent: Posting | None, prepared: Prepared, situation: Situation
    ) -> Published:
        """Decide, and have it carried out (section 8)."""
        head, base = situation.head, prepared.taken_from
        if base is not None and head.id != base:
            raise moved(base, head.id)
        if base is not None and prepared.staged is None:
            # K2: the head is already what this step published before.
            job.ledger.decide(intent, Keep(base), head)
            return Published(base, job.fence)
        with self._progress.phase(Phase.PUBLISH):
            decision = decide(job.fence, situation)
            kind, where = type(decision).__name__.lower(), job.workspace
            self._progress.event(
                events.PublicationDecided(kind, where.repository, where.branch, head.id)
            )
            plan = lineage.plan(job.workspace, self._claim.attempt, head.id)
            decided = job.ledger.decide(intent, decision, head)
            publisher = Publisher(
                self._store,
                self._services.clock,
                self._progress,
                seen=lambda ref: job.ledger.land(decided, ref),
            )
            return publisher.carry_out(
                self._target(job),
                decision,
                audit.message(self._claim),
                audit.confirm_metadata(prepared.metadata, prepared.staged, plan),
            )

    def _target(self, job: Job) -> Target:
        budget = self._task.budget
        return Target(
            workspace=job.workspace,
            root=job.select.root,
            fence=job.fence,
            timeout_seconds=budget.lakefs_merge_timeout_seconds,
            margin_seconds=budget.safety_margin_seconds,
            execution_id=self._claim.execution_id,
        )

    def _range_to_input(self, job: Job, head: Commit) -> Sequence[Commit] | lineage.Broken:
        history = self._store.history(job.workspace.repository, head.id)
        return lineage.first_parent_range(job.workspace.ref, history)

    # --- steps 12 to 14, and what the steps share --------------------------------------------

    def _completed(
        self,
        workspace: WorkspaceInput | None,
        result: Mapping[str, object],
        fence: FenceKind | None = None,
    ) -> Outcome:
        output: dict[str, object] = {"workspace": workspace.as_json()} if workspace else {}
        who = {"person": person.name} if (person := self._claim.person) else {}
        return Outcome(Status.COMPLETED, output | {"result": result} | who, fence=fence)

    @property
    def _checked(self) -> dict[str, object]:
        """What the guards of tables said, as part of the output."""
        return told(self._verdicts) if self._verdicts else {}

    def _where(self) -> Mapping[str, object] | None:
        """Log where the attempt reads; params may hold what must not be logged (V8)."""
        where = self._claim.input.get("workspace")
        return where if isinstance(where, Mapping) else None
