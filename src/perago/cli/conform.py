"""``perago conform``: does a foreign worker keep the protocol?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perago.cli.exits import FAILED
from perago.cli.screen import AsJson, emit, note, plain, say
from perago.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from perago.conform.examining import CaseReport, Examiner
    from perago.conform.foreign_worker import ForeignWorker
    from perago.conform.leaks import LeakSearch
    from perago.conform.running import PromiseReport
    from perago.protocol.kinds import FenceKind
    from perago.settings import Settings

_MARKS = {
    "held": "[green]✓[/green]",
    "broken": "[red]✗[/red]",
    "not looked at": "[dim]-[/dim]",
}


class WorkerFence(StrEnum):
    """Which fence the worker under examination publishes with."""

    HEAD = "head"
    LINEAGE = "lineage"
    HARD = "hard"


def conform(
    task: Annotated[
        str, typer.Option(help="Name of the task that the worker polls for.", show_default=False)
    ],
    command: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Start the worker with this command, so that it can be killed."
        ),
    ] = None,
    repository: Annotated[
        str, typer.Option("--repo", "-r", help="Repository on lakeFS; made if it is not there.")
    ] = "perago-conform",
    prefix: Annotated[
        str, typer.Option(help="Directory of the repository that the worker works on.")
    ] = "/conform",
    fence: Annotated[
        WorkerFence, typer.Option(help="Fence that the worker publishes with.")
    ] = WorkerFence.HEAD,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="CASE", help="Only this case; repeatable.")
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=1.0, help="How long the worker may take for one attempt.")
    ] = 60.0,
    as_json: AsJson = False,
) -> None:
    """Drive a worker that speaks the protocol itself through its cases, and report V1 to V9.

    The worker runs beside this command, or is started by --command. Its task has the body that the
    page of the protocol describes. Only what the servers show counts.
    """
    from perago.app.local import settings_here
    from perago.conform.running import chosen, examine, promises

    cases = chosen(only or [])
    asked = _asked(task, command, prefix)
    settings = settings_here()
    with ExitStack() as undo:
        examiner = _examiner(settings, undo, asked, (repository, fence.value, seconds))
        reports = []
        for report in examine(examiner, cases):
            reports.append(report)
            if not as_json:
                _show_case(report)
    found = promises(reports)
    broken = any(one.broken for one in found)
    printed = asked.worker.output if asked.worker else None
    if asked.worker and not broken:
        asked.worker.forget()
    if as_json:
        emit(_plain((task, repository, fence), reports, found, printed if broken else None))
    else:
        _show(found, repository, task, fence.value)
        if printed and broken:
            say(f"what the worker printed is in {plain(printed)}")
    if broken:
        sys.exit(FAILED)


@dataclass(frozen=True)
class _Asked:
    """What was asked for, checked before anything is started."""

    task: str
    root: str
    worker: ForeignWorker | None


def _asked(task: str, command: str | None, prefix: str) -> _Asked:
    from perago.cli.choose import selection_of
    from perago.conform.foreign_worker import ForeignWorker

    if not task.strip():
        raise UsageError("--task is blank", remedy="name the task that the worker polls for")
    root = selection_of(prefix).root
    return _Asked(task, root, ForeignWorker(command) if command is not None else None)


def _examiner(
    settings: Settings, undo: ExitStack, asked: _Asked, place: tuple[str, FenceKind, float]
) -> Examiner:
    from perago.app.local import conductor_of, lakefs_of
    from perago.conform.examining import Examiner
    from perago.conform.repository import CaseRepository
    from perago.conform.workflows import TaskWorkflows

    name, fence, seconds = place
    client = conductor_of(settings)
    undo.callback(client.close)
    store = lakefs_of(settings)
    undo.callback(store.close)
    repository = CaseRepository(store, name, asked.root, fence)
    repository.prepare()
    worker = undo.enter_context(asked.worker) if asked.worker else None
    alive = worker.check if worker else lambda: None
    workflows = TaskWorkflows(client, asked.task, seconds, alive, _waiting)
    return Examiner(repository, workflows, worker, _leaks(settings))


def _waiting(text: str) -> None:
    note(f"  [dim]{plain(text)}[/dim]")


def _leaks(settings: Settings) -> LeakSearch:
    from perago.conform.leaks import LeakSearch

    lakefs, conductor = settings.lakefs, settings.conductor
    keys = [*(lakefs.keys() if lakefs else ()), *(conductor.keys() if conductor else ())]
    addresses = [lakefs.endpoint if lakefs else "", conductor.url if conductor else ""]
    return LeakSearch(filter(None, keys), addresses)


def _show_case(report: CaseReport) -> None:
    done = bool(report.looked)
    mark = "broken" if report.broken else "held" if done else "not looked at"
    say(f"{_MARKS[mark]} {report.name}: {report.about}  [dim]{report.seconds:.1f} s[/dim]")
    if report.skipped:
        say(f"  [yellow]not looked at:[/yellow] {plain(report.skipped)}")


def _show(found: Sequence[PromiseReport], repository: str, task: str, fence: FenceKind) -> None:
    from perago.conform.running import unseen

    say()
    for one in found:
        say(f"{_MARKS[one.state]} {one.invariant} {plain(one.means)}: {one.state}")
        for case, broken in one.broken:
            say(f"  [red]{plain(case)}[/red] ({broken.rule}): {plain(broken.text)}")
        if one.limit and one.state == "held":
            say(f"  [dim]{plain(one.limit)}[/dim]")
    say("\nnot looked at by any case:")
    for what in unseen(fence):
        say(f"  [dim]{plain(what)}[/dim]")
    number = sum(bool(one.broken) for one in found)
    if {one.state for one in found} == {"not looked at"}:
        say("\n[yellow]nothing was looked at[/yellow]")
    elif number:
        where = f"the targets are kept in repository {plain(repository)}"
        say(f"\n[red]{plain(task)} breaks {number} of {len(found)}[/red]; {where}")
    else:
        say(f"\n[green]{plain(task)} keeps the protocol[/green] in what was looked at")


def _plain(
    where: tuple[str, str, WorkerFence],
    reports: Sequence[CaseReport],
    found: Sequence[PromiseReport],
    printed: Path | None,
) -> dict[str, Any]:
    from perago.conform.running import conforms, unseen

    task, repository, fence = where
    return {
        "task": task,
        "repository": repository,
        "fence": fence.value,
        "conforms": conforms(found),
        "cases": [
            {
                "case": report.name,
                "looked_at": sorted(report.looked),
                "broken": [_broken(found) for found in report.broken],
                "skipped": report.skipped,
                "seconds": round(report.seconds, 3),
            }
            for report in reports
        ],
        "promises": [
            {
                "name": one.invariant,
                "means": one.means,
                "state": one.state,
                "limit": one.limit,
                "broken": [{"case": case, **_broken(found)} for case, found in one.broken],
            }
            for one in found
        ],
        "unseen": unseen(fence.value),
        "printed": str(printed) if printed else None,
    }


def _broken(found: Any) -> dict[str, str]:
    return {"promise": found.invariant, "rule": found.rule, "text": found.text}
