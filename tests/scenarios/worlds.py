"""Where a scenario is played: on the decisions alone, and on a real store by whole attempts."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel

from perago import WorkspaceSpec, task
from perago.protocol.kinds import FenceKind
from perago.protocol.lineage import first_parent_range
from perago.protocol.publication import (
    Keep,
    Merge,
    Refuse,
    Relocate,
    Replace,
    Situation,
    Write,
    decide,
)
from perago.protocol.values import Attempt, Commit, Status, WorkspaceInput
from perago.tasks.declaration import definition_of
from perago.testing import FailAt, Lab, LoseAnswer, Run, StaleAt
from perago.testing.faults import Fault
from tests.scenarios.scenario import INPUT, Step

DIED = ""


class World(Protocol):
    """A branch, and a broker that knows of every attempt."""

    def play(self, step: Step) -> str:
        """Do what a writer does; return the status of an attempt that lived to report one."""

    @property
    def main(self) -> tuple[str, ...]:
        """Return the history of the branch by first parents, oldest first, by who made each."""

    @property
    def files(self) -> frozenset[str]:
        """Return what is on the branch, without what A holds."""


def attempt_of(step: Step, before: Attempt | None = None) -> Attempt:
    """Return the attempt of a new step, or the next one of a step."""
    if before is None:
        return Attempt(str(uuid.uuid4()), str(uuid.uuid4()), 0, step.name, "deposit", 1)
    return replace(before, task_id=str(uuid.uuid4()), retry_count=before.retry_count + 1)


# --- the decisions alone --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Made:
    attempt: Attempt
    input_ref: str


class Model:
    """The rules of sections 8 and 9 on a branch of names; no store, no task, no clock."""

    def __init__(self, fence: FenceKind) -> None:
        self._fence = fence
        self._commits = {INPUT: _commit(INPUT)}
        self._trees: dict[str, frozenset[str]] = {INPUT: frozenset()}
        self._head = INPUT
        self._made: dict[str, _Made] = {}
        self._standings: dict[str, str | None] = {}

    def play(self, step: Step) -> str:
        if not step.reads and not step.retries:
            self._move(_commit(step.name, self._head), self._trees[self._head] | {step.text})
            return DIED
        made = self._begun(step)
        status = self._attempt(step, made)
        if status:
            self._standings[made.attempt.task_id] = status
        return status

    def _begun(self, step: Step) -> _Made:
        if step.retries:
            before = self._made[step.retries]
            if not step.late:
                self._standings[before.attempt.task_id] = Status.FAILED
            made = _Made(attempt_of(step, before.attempt), before.input_ref)
        else:
            made = _Made(attempt_of(step), step.reads)
        self._made[step.name] = made
        self._standings[made.attempt.task_id] = Status.IN_PROGRESS
        return made

    def _attempt(self, step: Step, made: _Made) -> str:
        if step.lost:
            return Status.FAILED
        if step.dies == "before publish":
            return DIED
        before = self._trees[made.input_ref]
        after = before | ({step.text} if step.text else set())
        if self._fence == "lineage" and after == self._trees[self._head] != before:
            return Status.COMPLETED  # K2: it is what this step published before.
        situation = Situation(
            input_ref=made.input_ref,
            head=self._commits[self._head],
            staged=step.name if after != before else None,
            attempt=made.attempt,
            range_to_input=first_parent_range(made.input_ref, self._line()),
            standings=dict(self._standings),
        )
        decision = decide(self._fence, situation)
        if isinstance(decision, Refuse):
            return Status.FAILED
        self._apply(decision, made, after)
        return DIED if step.dies else Status.COMPLETED

    def _apply(self, decision: Keep | Write, made: _Made, tree: frozenset[str]) -> None:
        said = {
            "perago.logical_task_key": made.attempt.logical_task_key,
            "perago.task_id": made.attempt.task_id,
            "perago.retry_count": str(made.attempt.retry_count),
            "perago.workflow_instance_id": made.attempt.workflow_instance_id,
        }
        match decision:
            case Merge(onto, name):
                self._move(replace(_commit(name, onto), metadata=said), tree)
            case Replace(_, name):
                self._move(replace(_commit(name, made.input_ref), metadata=said), tree)
            case Relocate(_, to):
                self._head = to

    def _move(self, commit: Commit, tree: frozenset[str]) -> None:
        self._commits[commit.id], self._trees[commit.id] = commit, tree
        self._head = commit.id

    def _line(self) -> Iterator[Commit]:
        here: str | None = self._head
        while here is not None:
            commit = self._commits[here]
            yield commit
            here = commit.parent

    @property
    def main(self) -> tuple[str, ...]:
        return tuple(commit.id for commit in self._line())[::-1]

    @property
    def files(self) -> frozenset[str]:
        return self._trees[self._head]


def _commit(name: str, *parents: str) -> Commit:
    return Commit(id=name, parents=parents, message="", metadata={}, created_at=0.0)


# --- whole attempts on a store --------------------------------------------------------------------


class Text(BaseModel):
    """What is written."""

    text: str = ""


def _deposit(workspace: Path, params: Text) -> Text:
    if params.text:
        (workspace / f"{params.text}.txt").write_text(params.text)
    return params


@task(name="deposit_head", owner_email="a@b.c", workspace=WorkspaceSpec(prefix="ws"))
def deposit_head(workspace: Path, params: Text) -> Text:
    return _deposit(workspace, params)


@task(
    name="deposit_lineage",
    owner_email="a@b.c",
    workspace=WorkspaceSpec(prefix="ws", fence="lineage"),
)
def deposit_lineage(workspace: Path, params: Text) -> Text:
    return _deposit(workspace, params)


@task(name="deposit_hard", owner_email="a@b.c", workspace=WorkspaceSpec(prefix="ws", fence="hard"))
def deposit_hard(workspace: Path, params: Text) -> Text:
    return _deposit(workspace, params)


TASKS: dict[FenceKind, Callable[..., Any]] = {
    "head": deposit_head,
    "lineage": deposit_lineage,
    "hard": deposit_hard,
}


class Played:
    """A lab whose branch is at A."""

    def __init__(self, lab: Lab, fence: FenceKind) -> None:
        self._lab = lab
        self._task = TASKS[fence]
        self._given = frozenset(lab.files(lab.head.id))
        self._names = {lab.head.id: INPUT}
        self._refs = {INPUT: lab.head.id}
        self._runs: dict[str, Run] = {}

    def play(self, step: Step) -> str:
        if not step.reads and not step.retries:
            self._names[self._lab.commit({f"ws/{step.text}.txt": step.text}).id] = step.name
            return DIED
        run = self._lab.again(self._begun(step), faults=list(_faults(step)))
        self._runs[step.name] = run
        self._refs[step.name] = run.ref or ""
        return DIED if run.crashed else str(run.status)

    def _begun(self, step: Step) -> Run:
        params = {"text": step.text}
        if step.retries:
            before = self._runs[step.retries]
            if not step.late:
                self._lab.broker.set_status(before.attempt, Status.FAILED)
            return replace(before, attempt=attempt_of(step, before.attempt), params=params)
        lab, definition = self._lab, definition_of(self._task)
        workspace = WorkspaceInput(lab.repository, "main", "commit", self._refs[step.reads])
        return Run(lab, definition, attempt_of(step), workspace, params, None, "")

    @property
    def main(self) -> tuple[str, ...]:
        executions = {run.execution_id: name for name, run in self._runs.items()}
        found: list[str] = []
        for commit in self._lab.store.history(self._lab.repository, "main"):
            made_by = executions.get(commit.metadata.get("perago.execution_id", ""))
            found.append(self._names.get(commit.id) or made_by or commit.id)
            if commit.id == self._refs[INPUT]:
                break
        return tuple(reversed(found))

    @property
    def files(self) -> frozenset[str]:
        keys = self._lab.files(self._lab.head.id).keys() - self._given
        return frozenset(key.removeprefix("ws/").removesuffix(".txt") for key in keys)


def _faults(step: Step) -> Iterator[Fault]:
    if step.dies:
        yield FailAt(step.dies)
    if step.lost:
        yield StaleAt(step.lost)
    if step.unheard:
        yield LoseAnswer("apply")
