"""One case on running servers: a target of its own, the worker's attempt, and what came of it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from perago.conform.foreign_worker import ForeignWorker
from perago.conform.leaks import LeakSearch
from perago.conform.repository import FILES, CaseRepository, checksum
from perago.conform.workflows import RETRY_SECONDS, TaskWorkflows, record_of
from perago.errors import NotFoundError, StoreError
from perago.protocol.conformance import at_rest, execution_of, judge, looked_at
from perago.protocol.evidence import (
    Arrangement,
    AttemptRecord,
    BrokenPromise,
    Evidence,
    Expected,
    Invariant,
    JournalEntry,
)
from perago.protocol.kinds import FenceKind
from perago.protocol.publication import is_intent
from perago.protocol.values import Commit, WorkspaceInput

WRITE: Final[Mapping[str, str]] = {
    "change.txt": "it was changed\n",
    "new.txt": "it is new\n",
    "deep/er/new.txt": "it is new, too\n",
}
DELETE: Final[Sequence[str]] = ("remove.txt",)
PAUSE_SECONDS: Final = 3.0
"""How long a body waits that is to be overtaken."""
_SETTLE_SECONDS: Final = 2.0


@dataclass
class CaseReport:
    """What one case has shown."""

    name: str
    about: str
    looked: set[Invariant] = field(default_factory=set)
    broken: list[BrokenPromise] = field(default_factory=list)
    skipped: str = ""
    """Why it, or a part of it, could not be looked at."""
    seconds: float = 0.0

    def add(self, seen: Evidence) -> None:
        """Take what follows from evidence."""
        self.looked |= looked_at(seen)
        row = seen.arranged.case.removeprefix(self.name).strip()
        for one in judge(seen):
            found = replace(one, text=f"{row}: {one.text}") if row else one
            if found not in self.broken:
                self.broken.append(found)

    def add_rest(self, seen: Evidence) -> None:
        """Take what a kill has left."""
        self.looked.add(Invariant.V4)
        self.broken += at_rest(seen)


@dataclass(frozen=True)
class Examiner:
    """Both servers, and the worker if it was started here."""

    repository: CaseRepository
    workflows: TaskWorkflows
    worker: ForeignWorker | None = None
    leaks: LeakSearch = field(default_factory=LeakSearch, repr=False)
    executions: dict[str, str] = field(default_factory=dict)
    """Execution ids that were seen -> the staging branch they were seen in."""

    @property
    def fence(self) -> FenceKind:
        """Return the fence that the worker publishes with."""
        return self.repository.fence

    def case(
        self, name: str, more: Mapping[str, str] | None = None, *, fenced: bool = True
    ) -> CaseTarget:
        """Make the target of a case; ``more`` are files below the prefix."""
        return CaseTarget(self, name, self.repository.branch(name, more, fenced=fenced))

    def settle(self, seconds: float) -> Sequence[AttemptRecord]:
        """Wait until an attempt that is no longer wanted has done what it does.

        Conductor does not tell. A worker that does one thing at a time has ended it when it has
        done the next one, which is returned; one that does several gets some seconds.
        """
        time.sleep(seconds + _SETTLE_SECONDS)
        target = self.case("settle")
        workflow = self.workflows.start(target.given(params()))
        self.workflows.end(workflow)
        return self.records(workflow)

    def records(self, workflow_id: str, number: int = 0) -> tuple[AttemptRecord, ...]:
        """Read the attempts of one step."""
        return tuple(map(record_of, self.workflows.attempts(workflow_id, number)))


class CaseTarget:
    """The target of a case with its past, from its A to what stands there in the end."""

    def __init__(self, examiner: Examiner, name: str, workspace: WorkspaceInput) -> None:
        self.name = name
        self.workspace = workspace
        self._examiner = examiner
        self._repository = examiner.repository
        self._known = self._repository.all_branches()
        self._runs = self._repository.runs()

    def given(
        self, params: Mapping[str, object], workspace: WorkspaceInput | None = None
    ) -> dict[str, object]:
        """Return the input of a task."""
        return {"workspace": (workspace or self.workspace).as_json(), "params": dict(params)}

    def arranged(self, expected: Expected, rule: str, **more: Any) -> Arrangement:
        """Say what should come of it."""
        workspace: WorkspaceInput = more.pop("workspace", self.workspace)
        base = self._repository.tree(workspace.ref)
        return Arrangement(
            case=self.name,
            expected=expected,
            rule=rule,
            workspace=workspace,
            prefix=self._repository.prefix,
            base=base,
            wanted=self._wanted(base, more.pop("write", WRITE), more.pop("delete", DELETE)),
            before=more.pop("before", workspace.ref),
            fence=self._repository.fence,
            **more,
        )

    def look(
        self,
        arranged: Arrangement,
        workflow_id: str,
        *,
        ended: bool,
        number: int = 0,
        others: Sequence[AttemptRecord] = (),
        shown: Sequence[str] = (),
    ) -> Evidence:
        """Read both servers. ``others`` are attempts that the worker had to do meanwhile."""
        workflows, repository = self._examiner.workflows, self._repository
        tasks = workflows.attempts(workflow_id, number)
        if not ended:
            workflows.terminate(workflow_id)
        head = repository.head(arranged.workspace)
        left = repository.left(self._known, arranged.kills)
        entries = [entry for _, entry in repository.runs() - self._runs]
        intents = [entry for entry in entries if self._is_intent(entry)]
        journal = [entry for entry in entries if entry not in intents and self._counts(entry)]
        records = tuple(map(record_of, tasks))
        made = {entry.branch for entry in journal if entry.event == "post-create-branch"}
        staged = self._commit(head.metadata.get("perago.staging_commit", ""))
        written = (head, staged) if staged else (head,)
        return Evidence(
            arranged=arranged,
            ended=ended,
            head=head,
            history=repository.history(arranged.workspace),
            tree=repository.tree(head.id),
            dirty=repository.dirty(arranged.workspace),
            attempts=records,
            others=tuple(others),
            journal=tuple(sorted(journal, key=lambda entry: (entry.event, entry.commit))),
            intents=len(intents),
            left=left,
            staged=staged,
            shown=tuple(shown),
            reused=self._reused(made | {*left}, (*records, *others)),
            leaks=tuple(self._examiner.leaks.among(self._texts(tasks, written, made | {*left}))),
        )

    def plant(self, task: Mapping[str, Any], **other: str) -> Commit:
        """Publish on A what an attempt could have published before its completion was lost."""
        said = self.words(task, **other)
        return self._repository.commit(self.workspace.branch, self.stray(), said)

    def stray(self) -> dict[str, str]:
        """Return the files of an abandoned publication."""
        prefix = self._repository.prefix
        return {
            f"{prefix}stray.txt": "from an abandoned publication\n",
            f"{prefix}change.txt": "changed by an abandoned publication\n",
        }

    def words(self, task: Mapping[str, Any], **other: str) -> dict[str, str]:
        """Return what a publication of an attempt says, with some of it changed."""
        mine = record_of(task)
        said = {
            "phase": "confirm",
            "execution_id": "perago-conform",
            "logical_task_key": mine.logical_task_key,
            "task": mine.task,
            "workflow_instance_id": mine.workflow_instance_id,
            "task_id": mine.task_id,
            "retry_count": str(mine.retry_count),
            "input_ref": self.workspace.ref,
            "target_branch": self.workspace.branch,
            "prefix": f"/{self._repository.prefix}".rstrip("/") or "/",
            "expected_head": self.workspace.ref,
            "supersedes": "",
            **other,
        }
        return {f"perago.{name}": value for name, value in said.items()}

    def in_time(self, planted: Commit) -> bool:
        """Tell whether a commit came before the next attempt published."""
        return planted.parents == (self.workspace.ref,)

    def drop(self) -> None:
        """Delete the target."""
        self._repository.drop(self.workspace.branch)

    def _wanted(
        self, base: Mapping[str, str], write: Mapping[str, str], delete: Sequence[str]
    ) -> dict[str, str]:
        prefix = self._repository.prefix
        tree = {key: value for key, value in base.items() if key.startswith(prefix)}
        tree |= {f"{prefix}{path}": checksum(text) for path, text in write.items()}
        return {key: value for key, value in tree.items() if key[len(prefix) :] not in {*delete}}

    def _counts(self, entry: JournalEntry) -> bool:
        """Leave out what this command did itself, and merges that did not land."""
        if entry.event == "pre-merge":
            return self._merged(entry) is not None
        if entry.branch in self._repository.branches:
            return entry.branch == self.workspace.branch and entry.event == "pre-commit"
        return True

    def _is_intent(self, entry: JournalEntry) -> bool:
        """Tell the first half of a replacement, which is not a publication (K3)."""
        merged = self._merged(entry) if entry.event == "pre-merge" else None
        return merged is not None and is_intent(merged)

    def _merged(self, entry: JournalEntry) -> Commit | None:
        """Read the commit of a merge; a merge that lost a race has none."""
        return self._commit(entry.commit)

    def _commit(self, ref: str) -> Commit | None:
        try:
            return self._repository.store.commit(self._repository.name, ref) if ref else None
        except (NotFoundError, StoreError):
            return None

    def _reused(
        self, branches: Iterable[str], attempts: Sequence[AttemptRecord]
    ) -> tuple[str, ...]:
        """Return the staging branches whose execution id another one had before."""
        seen = self._examiner.executions
        found = [(name, execution_of(name, one)) for name in sorted(branches) for one in attempts]
        return tuple(name for name, one in found if one and seen.setdefault(one, name) != name)

    def _texts(
        self, tasks: Sequence[Mapping[str, Any]], commits: Sequence[Commit], made: Iterable[str]
    ) -> dict[str, str]:
        found = {"the name of a branch": " ".join(made)}
        for commit in commits:
            said = json.dumps(dict(commit.metadata), ensure_ascii=False)
            found[f"commit {commit.id}"] = f"{commit.message} {said}"
        for task in tasks:
            task_id = str(task["taskId"])
            output = json.dumps(task.get("outputData") or {}, ensure_ascii=False)
            found[f"the output of attempt {task_id}"] = output
            found[f"the reason of attempt {task_id}"] = str(task.get("reasonForIncompletion"))
            found[f"the log of attempt {task_id}"] = self._examiner.workflows.log_of(task_id)
        return found


def params(
    write: Mapping[str, str] = WRITE,
    delete: Sequence[str] = DELETE,
    pause_seconds: float = 0.0,
    fail_attempts: int = 0,
    *,
    terminal: bool = False,
) -> dict[str, object]:
    """Return what the body is asked to do."""
    return {
        "write": dict(write),
        "delete": list(delete),
        "pause_seconds": pause_seconds,
        "fail_attempts": fail_attempts,
        "terminal": terminal,
    }


NOTHING_NEW: Final[Mapping[str, str]] = {"keep.txt": FILES["keep.txt"]}
"""Written over what is there already: no change."""
RETRIED_SECONDS: Final = float(RETRY_SECONDS)
