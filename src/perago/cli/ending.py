"""The end of ``perago run``: how it went, and what helps if it did not go well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from perago.cli.exits import FAILED, INTERRUPTED, OK, WAITING
from perago.cli.screen import block, emit, fields, note, plain, say

if TYPE_CHECKING:
    from perago.app.local import Home
    from perago.brokers.local import RunRecord, TaskRecord


def warn(warnings: Sequence[str], *, as_json: bool) -> None:
    """Print warnings to standard error; a JSON document has them inside."""
    for text in () if as_json else warnings:
        note(f"[bold yellow]warning:[/bold yellow] {plain(text)}")


def conclude(
    ended: RunRecord, home: Home, again: str, warnings: Sequence[str], *, as_json: bool
) -> None:
    """Say how a run ended, and what can be done next."""
    if as_json:
        emit(
            {
                "run": ended.id,
                "status": ended.status,
                "reason": ended.reason,
                "output": ended.output,
                "warnings": [*warnings, *_told_by_attempts(ended, home)],
                **_waiting_for(ended, home),
            }
        )
    else:
        _tell(ended, home, again)
        # A second time: the first one is far above by now.
        warn(warnings, as_json=as_json)
    if code := exit_code_of(ended, home):
        raise typer.Exit(code)


def exit_code_of(ended: RunRecord, home: Home) -> int:
    """Return the exit code that tells how a run ended, or why it did not."""
    if ended.status == "RUNNING":
        return WAITING if _people(ended, home) else INTERRUPTED
    return OK if ended.status == "COMPLETED" else FAILED


def _waiting_for(ended: RunRecord, home: Home) -> dict[str, object]:
    """Name the steps of a run that wait for people, where it waits for nothing else."""
    found = _people(ended, home) if ended.status == "RUNNING" else ()
    named = [{"step": task.reference_name, "task_id": task.task_id} for task in found]
    return {"waiting": named} if named else {}


def _told_by_attempts(ended: RunRecord, home: Home) -> list[str]:
    """Return what the attempts of a run warned of, each in one line as in the text."""
    from perago.protocol.events import warning_of

    found = []
    for one in home.events.of_workflow(ended.id):
        if warning := warning_of(one.event):
            retry = f" retry {one.attempt.retry_count}" if one.attempt.retry_count else ""
            found.append(f"step {one.attempt.reference_task_name!r}{retry}: {warning}")
    return found


def _people(ended: RunRecord, home: Home) -> Sequence[TaskRecord]:
    """Return the steps that a run waits for, if it waits for people only."""
    from perago.workflow.records import left_to_people
    from perago.workflow.tasks import TaskKind

    tasks = home.state.family_tasks(ended.id)
    if not left_to_people(tasks):
        return ()
    return [t for t in tasks if t.kind is TaskKind.HUMAN and t.status == "IN_PROGRESS"]


def _tell(ended: RunRecord, home: Home, again: str) -> None:
    if ended.status == "COMPLETED":
        say(f"\n[green]COMPLETED[/green]  run {plain(ended.id)}")
        shown = {name: value for name, value in ended.output.items() if name != "workspace"}
        fields({plain(name): plain(value) for name, value in shown.items() if value is not None})
        log = f"perago log{_place(ended)}"
        say(f"\n[dim]look:[/dim] {log}    [dim]or:[/dim] perago inspect {ended.id[:8]}")
    elif waiting := _people(ended, home) if ended.status == "RUNNING" else ():
        say(f"\n[yellow]waits for a person[/yellow]  run {plain(ended.id)}")
        for task in waiting:
            say(f"  {plain(task.reference_name)}: perago human show {plain(task.task_id[:8])}")
        say("[dim]when it is done, the run goes on[/dim]")
    elif ended.status == "RUNNING":
        say(f"\n[yellow]stopped[/yellow]; resume with: perago run --resume {ended.id}")
    else:
        say(f"\n[red]{plain(ended.status)}[/red]  {block(ended.reason)}")
        say(f"[dim]look:[/dim] perago inspect {ended.id[:8]}")
        _advise(ended, home, again)


def _place(ended: RunRecord) -> str:
    """Name the store and the repository that a run was on, where they are not the usual ones."""
    if ended.store == "embedded":
        return ""
    given = ended.input.get("workspace")
    name = given.get("repository", "") if isinstance(given, dict) else ""
    return f" --store {plain(ended.store)} --repo {plain(name)}"


def _advise(ended: RunRecord, home: Home, again: str) -> None:
    """Say what helps: a resumed run has the same workflow and the same input."""
    from perago.cli.advice import ended_by, failed_in, next_steps
    from perago.history.attempts import attempt_history

    executions = [
        each for run in home.state.family(ended.id) for each in home.events.executions(run.id)
    ]
    events = (home.events.of_execution(each) for each in executions)
    phase = failed_in([attempt_history(each) for each in events if each])
    terminate = ended_by(home.state.tasks(ended.id))
    home.close()
    for text, command in next_steps(phase, ended.id, again, terminate):
        say(f"[dim]{plain(text)}[/dim]\n  {plain(command)}")
