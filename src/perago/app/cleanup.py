"""What dead attempts left on this machine (V7): directories and staging branches."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perago.app.local import Home
from perago.brokers.conductor.mapping import is_over
from perago.brokers.local import RunStatus
from perago.clock import SystemClock
from perago.errors import NotFoundError
from perago.ports import Store
from perago.protocol.leftovers import FoundStaging, judge_staging, staging_name
from perago.protocol.names import STAGING
from perago.protocol.sweep import SweepDecision
from perago.protocol.values import Staging, Status
from perago.workflow.tasks import TaskKind
from perago.workspace.sweeper import Swept, sweep

if TYPE_CHECKING:
    from perago.brokers.conductor.client import ConductorClient
    from perago.stores.lakefs.store import LakeFSStore


def sweep_rooms(home: Home, ttl_seconds: float, *, dry_run: bool = False) -> list[Swept]:
    """Remove attempt directories whose owner is gone, or that no attempt in progress has."""
    busy = functools.cache(lambda: executions_in_progress(home))  # Asked once, and not too early.

    def in_progress(name: str, _: Mapping[str, object]) -> bool:
        return any(map(name.endswith, busy()))

    return sweep(
        home.attempt_dirs, ttl_seconds, SystemClock(), in_progress=in_progress, dry_run=dry_run
    )


def orphaned_branches(home: Home) -> list[tuple[str, str]]:
    """Find staging branches whose attempt is over, by asking the broker."""
    staged = [
        (repository, branch.name)
        for repository in home.store.repositories()
        for branch in home.store.branches(repository, hidden=True)
        if branch.name.startswith(STAGING)
    ]
    busy = executions_in_progress(home) if staged else set()
    # Several people may be submitting the same step; which of them died nobody can tell.
    by_hand = {task.task_id for task in home.state.left_to_people()} if staged else set()
    return [
        (repository, branch)
        for repository, branch in staged
        if branch.rpartition("-exec-")[2] not in busy
        and ((name := staging_name(branch)) is None or name.task_id not in by_hand)
    ]


def lakefs_repositories(home: Home) -> dict[str, set[str]]:
    """Name the repositories on lakeFS that runs of this home worked on, and what ended there.

    Others work there too: only what an execution of ours made, and ended, is ours to remove.
    """
    ended: dict[str, set[str]] = {}
    for run in home.state.runs(limit=1_000_000):
        if run.store != "lakefs":
            continue
        for task in home.state.tasks(run.id):
            workspace = task.input.get("workspace")
            if isinstance(workspace, dict) and task.status is not Status.IN_PROGRESS:
                made = {task.execution_id}
                if task.kind is TaskKind.HUMAN:  # A person may have tried several times.
                    made |= {*home.events.executions(task.task_id)}
                ended.setdefault(str(workspace.get("repository")), set()).update(made)
    return dict(sorted(ended.items()))


def lakefs_orphans(
    store: LakeFSStore, repository: str, ended: Collection[str]
) -> list[tuple[str, str]]:
    """Find the staging branches that these executions left in a repository on lakeFS."""
    from perago.stores.lakefs.admin import staging_branches  # noqa: PLC0415 - an optional extra

    return [
        (repository, branch)
        for branch in staging_branches(store.client, repository)
        if branch.rpartition("-exec-")[2] in ended
    ]


@dataclass(frozen=True, slots=True)
class StagingDecision:
    """A staging branch, and whether it goes."""

    repository: str
    branch: str
    verdict: SweepDecision


def conductor_leftovers(
    store: LakeFSStore,
    client: ConductorClient,
    repository: str,
    age_seconds: float,
    busy: Iterable[str] = (),
) -> Iterator[StagingDecision]:
    """Judge the staging branches of a repository by asking Conductor for each one's task.

    ``busy`` are executions that run on this machine without Conductor.
    """
    from perago.stores.lakefs.admin import staging_branches  # noqa: PLC0415 - an optional extra

    local, now = frozenset(busy), SystemClock().now()
    for branch in staging_branches(store.client, repository):
        name = staging_name(branch)
        if name is None or name.execution_id in local:
            continue
        try:
            head = store.head(repository, branch)
        except NotFoundError:
            continue  # Its own attempt was quicker.
        own = head.metadata.get("perago.execution_id") == name.execution_id
        task_id = head.metadata.get("perago.task_id") if own else None
        task = client.task(task_id or name.task_id)
        found = FoundStaging(
            status=None if task is None else str(task.get("status")),
            over=is_over(task),
            age_seconds=now - head.created_at if own else None,
        )
        yield StagingDecision(repository, branch, judge_staging(found, age_seconds))


def finish_replacements(store: LakeFSStore, repository: str, *, dry_run: bool) -> list[str]:
    """Complete what attempts under fence ``hard`` left half done; returns the branches (K3)."""
    from perago.stores.lakefs.admin import unfinished_branches  # noqa: PLC0415 - an optional extra

    found = unfinished_branches(store, repository)
    if not dry_run:
        for branch in found:
            store.finished_head(repository, branch)
    return found


def forgotten_scratch(
    store: LakeFSStore, repository: str, age_seconds: float
) -> Iterator[tuple[str, str]]:
    """Find the scratch branches on which a process that died has tried the hard fence (V7)."""
    from perago.stores.lakefs.admin import forgotten_probes  # noqa: PLC0415 - an optional extra

    now = SystemClock().now()
    for branch in forgotten_probes(store.client, repository, age_seconds, now):
        yield repository, branch


def drop_branches(store: Store, found: Iterable[tuple[str, str]]) -> None:
    """Delete staging branches that one of the above has found."""
    for repository, branch in found:
        store.drop(Staging(repository, branch))


def executions_in_progress(home: Home) -> set[str]:
    """Ask the broker who is at work.

    An attempt is in progress before it makes anything, so what belongs to none is left over.
    """
    return {
        task.execution_id
        for run in home.state.runs(limit=1_000_000)
        if run.status is RunStatus.RUNNING
        for task in home.state.tasks(run.id)
        if task.status is Status.IN_PROGRESS
    }
