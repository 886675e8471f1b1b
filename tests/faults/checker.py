"""Decides after a case whether the invariants V1 to V9 held, by reading what the servers hold."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perago.brokers.conductor.client import ConductorClient
from perago.protocol.values import Commit, Phase
from perago.stores.lakefs import LakeFSStore

Tree = Mapping[str, bytes]
# V9: what a reason may begin with: a phase of section 10, the supervisor's own words for an
# executor that died (R3), or the engine's for an attempt that nobody answered for.
DOCUMENTED = (
    *(f"{phase}:" for phase in Phase),
    "executor",
    "worker",
    "responseTimeout:",
    "Task timed out",
)


@dataclass(frozen=True)
class Line:
    """One workflow on a branch of its own, and the tree each publishing step must leave."""

    workflow_id: str
    repository: str
    branch: str
    base: str
    trees: Mapping[str, Tree]
    """By task name, in the order of the workflow."""
    lineage: Sequence[Tree] = ()
    """Under fence ``lineage``: the trees that superseded publications of the one step may have."""


@dataclass(frozen=True)
class Checker:
    """Reads both servers; every finding is a sentence."""

    conductor: ConductorClient
    store: LakeFSStore

    def findings(self, line: Line) -> list[str]:
        """Check one ended workflow; nothing found means that all held."""
        return [f"{line.workflow_id}: {found}" for found in self._findings(line)]

    def _findings(self, line: Line) -> Iterator[str]:
        execution = self.conductor.execution(line.workflow_id) or {}
        tasks: list[dict[str, Any]] = execution.get("tasks", [])
        published = self._published(line)
        if published is None:
            yield "V1: the input is no longer on the target's first-parent history"
            return
        if line.lineage:
            yield from self._superseded(line, published[:-1])
        reachable = [line.base, *(commit.id for commit in published)]
        published = published[-1:] if line.lineage else published
        steps = [commit.metadata.get("perago.task", "?") for commit in published]
        order = list(line.trees)
        if steps != order[: len(steps)]:
            yield f"V1: the target was published by {steps}, which is no beginning of {order}"
            return
        for commit, step in zip(published, steps, strict=True):
            if not self._holds(line, commit.id, line.trees[step]):
                yield f"V4: commit {commit.id} of step {step} is not the tree of that step"
        yield from self._accepted(line, tasks, reachable)
        if execution.get("status") == "COMPLETED":
            if steps != order:
                yield f"V2: completed, but published only {steps}"
        elif execution.get("status") in {"FAILED", "TIMED_OUT", "TERMINATED"}:
            yield from _documented(tasks)
        else:
            yield f"V5: it is {execution.get('status')}"

    def reasons(self, workflow_id: str) -> list[str]:
        """Check that every attempt that did not complete says why, as documented (V9)."""
        execution = self.conductor.execution(workflow_id) or {}
        return [f"{workflow_id}: {found}" for found in _documented(execution.get("tasks", []))]

    def _superseded(self, line: Line, older: Sequence[Commit]) -> Iterator[str]:
        """Check what lineage leaves in the history: whole, and all of the one step (V1, V4)."""
        for commit in older:
            if commit.metadata.get("perago.task") not in line.trees:
                yield f"V1: {commit.id} in the range is of another step"
            if not any(self._holds(line, commit.id, tree) for tree in line.lineage):
                yield f"V4: the superseded {commit.id} is the tree of no attempt"

    def _accepted(
        self, line: Line, tasks: Sequence[Mapping[str, Any]], reachable: Sequence[str]
    ) -> Iterator[str]:
        for task in tasks:
            if task["status"] != "COMPLETED":
                continue
            ref = task["outputData"]["workspace"]["ref"]
            if ref not in reachable:
                yield f"V3: {task['taskDefName']} was accepted with {ref}, which is unreachable"
            elif task["taskDefName"] in line.trees:
                if not self._holds(line, ref, line.trees[task["taskDefName"]]):
                    yield f"V2: {task['taskDefName']} was accepted with another tree"
            elif ref != task["inputData"]["workspace"]["ref"]:
                yield f"V2: {task['taskDefName']} changed nothing, but not its ref"

    def _published(self, line: Line) -> list[Commit] | None:
        """Return the commits after the input, oldest first; None when the input is gone."""
        found: list[Commit] = []
        for commit in self.store.history(line.repository, line.branch):
            if commit.id == line.base:
                return found[::-1]
            found.append(commit)
        return None

    def _holds(self, line: Line, ref: str, tree: Tree) -> bool:
        listing = self.store.listing(line.repository, ref, "")
        found = {info.key: info.checksum for info in listing}
        return found == {path: _md5(content) for path, content in tree.items()}


def _documented(tasks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for task in tasks:
        if task["status"] in {"FAILED", "FAILED_WITH_TERMINAL_ERROR", "TIMED_OUT"}:
            reason = task.get("reasonForIncompletion") or ""
            if not reason.startswith(DOCUMENTED):
                yield f"V9: {task['taskDefName']} is {task['status']} because {reason!r}"


def _md5(content: bytes) -> str:
    return "md5:" + hashlib.md5(content, usedforsecurity=False).hexdigest()
