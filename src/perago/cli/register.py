"""``perago register``: task and workflow definitions on the Conductor server (W1, W9)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perago.cli.screen import AsJson, emit, note, plain, say

if TYPE_CHECKING:
    from perago.brokers.conductor.registration import Difference, Registration

_MARKS = {"new": "[green]+[/green]", "changed": "[yellow]~[/yellow]", "same": "[dim]=[/dim]"}
_LONGEST = 120


def register(
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="MODULE... [WORKFLOW.json ...]",
            help="Modules with tasks (pkg.tasks, pkg/tasks.py or pkg.tasks:name), and workflow "
            "files that use them.",
            show_default=False,
        ),
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would change.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Tell the Conductor server of tasks and workflows, and show what changes.

    What the server has already is left alone, so it is safe to repeat.
    """
    from perago.app.local import conductor_of, settings_here
    from perago.brokers.conductor import registering
    from perago.brokers.conductor.taskdef import warnings_of
    from perago.cli.workflow_source import modules_and_workflows
    from perago.tasks.loading import load_tasks
    from perago.workflow.subworkflow import with_children

    modules, workflows = modules_and_workflows(targets, "register")
    tasks = load_tasks(modules)
    warnings = [text for task in tasks.values() for text in warnings_of(task)]
    for file, workflow in workflows.items():  # What is wrong in any case needs no server.
        filled, _ = with_children(workflow, registering.finder(workflows), file)
        registering.check_workflow(filled, tasks, file)
    client = conductor_of(settings_here())
    try:
        find = registering.finder(workflows, client)
        for file, workflow in workflows.items():
            filled, _ = with_children(workflow, find, file)
            warnings += registering.check_workflow(filled, tasks, file)
            warnings += [
                f"{file}: task {name!r} is not registered; nothing will run it"
                for name in registering.unregistered(client, workflow, tasks)
            ]
        changes = registering.compare(client, tasks.values(), workflows.values())
        if not dry_run and any(change.state != "same" for change in changes):
            registering.send(client, changes)
            kept = registering.compare(client, tasks.values(), workflows.values())
            warnings += [
                f"{each.kind} {each.name}: Conductor did not keep {change.path}"
                for each in kept
                for change in each.differences
            ]
    finally:
        client.close()
    _show(changes, warnings, dry_run=dry_run, as_json=as_json)


def _show(
    changes: list[Registration], warnings: list[str], *, dry_run: bool, as_json: bool
) -> None:
    due = [change for change in changes if change.state != "same"]
    if as_json:
        emit(
            {
                "registered": bool(due) and not dry_run,
                "definitions": [_row(change) for change in changes],
                "warnings": warnings,
            }
        )
        return
    for change in changes:
        what = f"{_MARKS[change.state]} {plain(change.kind)} {plain(change.name)}"
        say(f"{what}  [dim]{change.state}[/dim]")
        for difference in change.differences:
            say(f"    {_line(difference)}")
    for text in warnings:
        note(f"[yellow]warning:[/yellow] {plain(text)}")
    if not due:
        say("nothing to do: the server has all of it")
    elif dry_run:
        say(f"[dim]{len(due)} to register; nothing was sent, leave out --dry-run to do it[/dim]")
    else:
        say(f"registered {len(due)} of {len(changes)}")


def _row(change: Registration) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "name": change.name,
        "state": change.state,
        "differences": [difference.as_json() for difference in change.differences],
    }


def _line(difference: Difference) -> str:
    sides = difference.as_json()
    found = f"[red]{_value(sides['from'])}[/red]" if "from" in sides else "[dim]nothing[/dim]"
    wanted = f"[green]{_value(sides['to'])}[/green]" if "to" in sides else "[dim]nothing[/dim]"
    return f"{plain(difference.path)}: {found} -> {wanted}"


def _value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return plain(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")
