"""What dead attempts left on this machine (V7): directories and staging branches."""

from __future__ import annotations

from perago.clock import SystemClock
from perago.protocol.values import Status
from perago.wiring import Home
from perago.workspace.sweeper import Swept, sweep


def sweep_rooms(home: Home, ttl_seconds: float, *, dry_run: bool = False) -> list[Swept]:
    """Remove attempt directories whose owner is gone."""
    return sweep(home.rooms, ttl_seconds, SystemClock(), dry_run=dry_run)


def orphaned_branches(home: Home) -> list[tuple[str, str]]:
    """Find staging branches whose attempt is over, by asking the broker.

    An attempt is in progress before its branch exists, so a branch of no such attempt is nobody's.
    """
    staged = [
        (repository, branch.name)
        for repository in home.store.repositories()
        for branch in home.store.branches(repository, hidden=True)
        if branch.name.startswith("perago-staging-")
    ]
    if not staged:
        return []
    busy = {
        task.execution_id
        for run in home.state.runs(limit=1_000_000)
        for task in home.state.tasks(run.id)
        if task.status is Status.IN_PROGRESS
    }
    return [
        (repository, branch)
        for repository, branch in staged
        if branch.rpartition("-exec-")[2] not in busy
    ]


def drop_orphans(home: Home) -> int:
    """Delete the staging branches of attempts that are over."""
    found = orphaned_branches(home)
    for repository, branch in found:
        home.store.delete_branch(repository, branch)
    return len(found)
