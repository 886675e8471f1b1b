"""W9a: a task that writes a branch reads the output of the task that wrote it before. Pure.

Two writers in a row that both read the workflow's input would make the second one replace what
the first one completed; the publish fence refuses that when it happens (P2a), and this refuses it
before anything starts. The definition is followed in the order in which it runs, with the writers
that may have been the last one on each branch: a SWITCH has one of its cases, a DO_WHILE comes
round again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from perago.errors import WorkflowDefinitionError
from perago.workflow.nesting import unfolded, unknown_calls
from perago.workflow.tracing import (
    WITHIN,
    OutputOf,
    Target,
    Task,
    Untraceable,
    WorkspaceTracing,
    cases,
    inner,
    reference,
    walk,
)

NOBODY = ""
"""Stands for no writer at all among those that may have been the last."""
_UNTOUCHED = frozenset({NOBODY})

Last = Mapping[Target, frozenset[str]]
"""By branch: which writers may have been the last, at one point of the workflow."""


def refuse_unchained_writers(
    definition: Mapping[str, Any],
    writers: Collection[str],
    readers: Collection[str],
    source: str,
    given: Mapping[str, Any] | None = None,
) -> list[str]:
    """Refuse a writer that does not read the writer before it; return what cannot be told.

    ``writers`` and ``readers`` are the names of tasks that write their workspace or only read it;
    ``given`` is the workflow's input, where it is known already.
    """
    unknown = unknown_calls(definition)
    definition = unfolded(definition)
    chain = _Chain(WorkspaceTracing.of(definition, writers, readers, given), source)
    chain.sequence(definition.get("tasks"), {})
    told = (f"which branches the workflow writes that step {name!r} calls" for name in unknown)
    return [*chain.warnings, *(f"{source}: it cannot be told {what}" for what in told)]


@dataclass(frozen=True, slots=True)
class _Chain:
    tracing: WorkspaceTracing
    source: str
    warnings: dict[str, None] = field(default_factory=dict)
    """As a set that keeps its order: a loop is gone through twice."""
    loops: list[frozenset[str]] = field(default_factory=list)
    calls: list[list[Last]] = field(default_factory=list)
    """Where each workflow that is being gone through ended early."""

    def sequence(self, tasks: object, last: Last) -> Last | None:
        """Go through tasks that run one after the other; None when the workflow ends there."""
        now: Last | None = last
        for task in tasks if isinstance(tasks, list) else []:
            if now is not None and isinstance(task, Mapping):
                now = self._task(task, now)
        return now

    def _task(  # noqa: PLR0911 - one for each kind
        self, task: Task, last: Last
    ) -> Last | None:
        if task.get("type") == "TERMINATE":
            if self.calls:
                self.calls[-1].append(last)
            return None
        if steps := inner(task, WITHIN):
            return self._call(steps, last)
        if branches := inner(task, "forkTasks"):
            return _joined(last, [self.sequence(branch, last) for branch in branches])
        if task.get("decisionCases") or task.get("defaultCase"):
            return _either([self.sequence(case, last) for case in cases(task)])
        if body := inner(task, "loopOver"):
            return self._loop(body, last)
        if task.get("name") in self.tracing.writers:
            return self._writer(task, last)
        return last

    def _call(self, steps: list[Any], last: Last) -> Last | None:
        """Go through a workflow that is called; a TERMINATE in it ends that workflow only."""
        self.calls.append([])
        end = self.sequence(steps, last)
        return _either([end, *self.calls.pop()])

    def _loop(self, body: list[Any], last: Last) -> Last | None:
        self.loops.append(frozenset(reference(task) for task, _ in walk(body)))
        once = self.sequence(body, last)
        again = self.sequence(body, once) if once is not None else None
        self.loops.pop()
        return _either([once, again])

    def _writer(self, task: Task, last: Last) -> Last:
        target, read = self.tracing.target(task), self.tracing.source(task)
        before = sorted(frozenset[str]().union(*last.values()) - _UNTOUCHED)
        if before and (target is None or isinstance(read, Untraceable)):
            where = (
                f": its workspace comes from {read.text}" if isinstance(read, Untraceable) else ""
            )
            self._warn(f"whether task {reference(task)!r} reads what {before[0]!r} wrote{where}")
        elif target is not None and not isinstance(read, Untraceable):
            built_on = (
                self._with_ancestors(read.task) if isinstance(read, OutputOf) else frozenset()
            )
            self._check(task, sorted(last.get(target, _UNTOUCHED) - _UNTOUCHED), target, built_on)
        return last if target is None else {**last, target: frozenset({reference(task)})}

    def _check(
        self, task: Task, earlier: list[str], target: Target, built_on: frozenset[str]
    ) -> None:
        """Hold every writer that may have been the last against those that the task builds on."""
        name = reference(task)
        for writer in earlier:
            if writer not in built_on and not self._first_round(writer, built_on):
                raise WorkflowDefinitionError(
                    f"{self.source}: task {name!r} writes branch {target[1]!r} of repository"
                    f" {target[0]!r} after {writer!r} did, and does not read its output: it would"
                    " replace it",
                    remedy=self._remedy(name, writer),
                )

    def _remedy(self, name: str, writer: str) -> str:
        if any({name, writer} <= loop for loop in self.loops):
            # Its own output is not there in the first round: a variable is.
            return (
                f"keep the workspace in a variable: SET_VARIABLE before the loop and behind"
                f' {writer!r} in it, and give {name!r} "workspace": "${{workflow.variables.NAME}}"'
            )
        if "/" in f"{name}{writer}":
            return (
                f"hand the workspace of {writer!r} on to {name!r}: out of a sub workflow by its"
                " outputParameters, into one by the inputParameters of the step that calls it"
            )
        return f'give {name!r} "workspace": "${{{writer}.output.workspace}}"'

    def _with_ancestors(self, name: str) -> frozenset[str]:
        """Name a writer and those whose output it builds on."""
        found: dict[str, None] = {}
        while name not in found:
            found[name] = None
            before = self.tracing.source(self.tracing.tasks[name])
            name = before.task if isinstance(before, OutputOf) else name
        return frozenset(found)

    def _first_round(self, writer: str, built_on: frozenset[str]) -> bool:
        """Return whether a loop's task reads the loop's own output, which the first round lacks."""
        return any(writer not in loop and built_on & loop for loop in self.loops)

    def _warn(self, what: str) -> None:
        self.warnings[f"{self.source}: it cannot be told {what}"] = None


def _either(ends: Iterable[Last | None]) -> Last | None:
    """Join the ends of alternatives: any of them may have been the one that ran."""
    reached = [end for end in ends if end is not None]
    if not reached:
        return None
    targets = {target for end in reached for target in end}
    return {
        target: frozenset[str]().union(*(end.get(target, _UNTOUCHED) for end in reached))
        for target in targets
    }


def _joined(before: Last, ends: Iterable[Last | None]) -> Last:
    """Join parallel branches: all of them ran, and each knows what it wrote itself."""
    after = dict(before)
    written = [end for end in ends if end is not None]
    for target in {target for end in written for target in end}:
        found = [end[target] for end in written if end.get(target) != before.get(target)]
        if found := [each for each in found if each]:
            after[target] = frozenset[str]().union(*found)
    return after
