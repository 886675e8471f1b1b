"""``perago conform``: does a foreign worker keep the protocol?"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perago.cli.exits import FAILED
from perago.cli.repo import Fence
from perago.cli.screen import AsJson, emit, plain, say

if TYPE_CHECKING:
    from perago.conform.examining import CaseReport, Examiner
    from perago.conform.running import PromiseReport
    from perago.settings import Settings

_MARKS = {
    "held": "[green]✓[/green]",
    "broken": "[red]✗[/red]",
    "not looked at": "[dim]-[/dim]",
}


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
        Fence, typer.Option(help="Fence that the worker publishes with.")
    ] = Fence.HEAD,
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
    settings = settings_here()
    with ExitStack() as undo:
        examiner = _examiner(
            settings, undo, task, command, (repository, prefix, fence.value, seconds)
        )
        reports = []
        for report in examine(examiner, cases):
            reports.append(report)
            if not as_json:
                _show_case(report)
    found = promises(reports)
    broken = any(one.broken for one in found)
    if as_json:
        emit(_plain(task, repository, fence, reports, found))
    else:
        _show(found, repository, task)
    if broken:
        sys.exit(FAILED)


def _examiner(
    settings: Settings,
    undo: ExitStack,
    task: str,
    command: str | None,
    place: tuple[str, str, str, float],
) -> Examiner:
    from perago.app.local import conductor_of, lakefs_of
    from perago.cli.choose import selection_of
    from perago.conform.examining import Examiner
    from perago.conform.foreign_worker import ForeignWorker
    from perago.conform.repository import CaseRepository
    from perago.conform.workflows import TaskWorkflows

    name, prefix, fence, seconds = place
    root = selection_of(prefix).root
    client = conductor_of(settings)
    undo.callback(client.close)
    store = lakefs_of(settings)
    undo.callback(store.close)
    repository = CaseRepository(store, name, root, "hard" if fence == "hard" else "head")
    repository.prepare()
    worker = undo.enter_context(ForeignWorker(command)) if command is not None else None
    workflows = TaskWorkflows(client, task, seconds, worker.check if worker else lambda: None)
    return Examiner(repository, workflows, worker, _secrets(settings))


def _secrets(settings: Settings) -> tuple[str, ...]:
    found = [settings.lakefs.secret_access_key] if settings.lakefs else []
    if settings.conductor and settings.conductor.auth_secret:
        found.append(settings.conductor.auth_secret)
    return tuple(found)


def _show_case(report: CaseReport) -> None:
    done = bool(report.looked)
    mark = "broken" if report.broken else "held" if done else "not looked at"
    say(f"{_MARKS[mark]} {report.name}: {report.about}  [dim]{report.seconds:.1f} s[/dim]")
    if report.skipped:
        say(f"  [yellow]not looked at:[/yellow] {plain(report.skipped)}")


def _show(found: Sequence[PromiseReport], repository: str, task: str) -> None:
    say()
    for one in found:
        say(f"{_MARKS[one.state]} {one.invariant} {plain(one.means)}: {one.state}")
        for case, broken in one.broken:
            say(f"  [red]{plain(case)}[/red] ({broken.rule}): {plain(broken.text)}")
        if one.limit and one.state == "held":
            say(f"  [dim]{plain(one.limit)}[/dim]")
    number = sum(bool(one.broken) for one in found)
    if {one.state for one in found} == {"not looked at"}:
        say("\n[yellow]nothing was looked at[/yellow]")
    elif number:
        where = f"the targets are kept in repository {plain(repository)}"
        say(f"\n[red]{plain(task)} breaks {number} of {len(found)}[/red]; {where}")
    else:
        say(f"\n[green]{plain(task)} keeps the protocol[/green] in what was looked at")


def _plain(
    task: str,
    repository: str,
    fence: Fence,
    reports: Sequence[CaseReport],
    found: Sequence[PromiseReport],
) -> dict[str, Any]:
    from perago.conform.running import conforms

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
    }


def _broken(found: Any) -> dict[str, str]:
    return {"promise": found.invariant, "rule": found.rule, "text": found.text}
