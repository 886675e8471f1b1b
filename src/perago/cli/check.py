"""``perago check``: import, validate, show the configuration without secrets (W1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from perago.cli.screen import AsJson, emit, fields, note, plain, say, table

if TYPE_CHECKING:
    from perago.settings import Settings
    from perago.tasks.definition import TaskDefinition

Modules = Annotated[
    list[str],
    typer.Argument(
        metavar="MODULE...",
        help="Modules with tasks, found from here: pkg.tasks, pkg/tasks.py or pkg.tasks:name; or "
        "manifests: tasks.toml.",
    ),
]
Targets = Annotated[
    list[str],
    typer.Argument(
        metavar="MODULE... [WORKFLOW.json ...]",
        help="Modules with tasks, found from here (pkg.tasks, pkg/tasks.py or pkg.tasks:name), "
        "manifests (tasks.toml), and workflow files that use them.",
    ),
]


def check(targets: Targets, as_json: AsJson = False) -> None:
    """Import task modules and show what they declare; every mistake is named with its fix.

    Workflow files are checked for what would lose data: two tasks that write one branch at the
    same time, or one after the other without the later one reading the earlier one's output.
    """
    from perago.app.local import settings_here
    from perago.brokers.conductor.registering import check_workflow
    from perago.cli.workflow_files import files_for
    from perago.cli.workflow_source import modules_and_workflows
    from perago.tasks.loading import load_tasks
    from perago.workflow.subworkflow import with_children

    modules, workflows = modules_and_workflows(targets, "check")
    found = load_tasks(modules)
    tasks = found.values()
    shown = _configuration(settings_here())
    warnings = [text for task in tasks for text in task.warnings()]
    for file, workflow in workflows.items():
        filled, _ = with_children(workflow, files_for(file, workflow, workflows).find, file)
        warnings += check_workflow(filled, found, file)
    rows = [_row(task) for task in tasks]
    if as_json:
        emit(
            {
                "tasks": rows,
                "workflows": list(workflows),
                "warnings": warnings,
                "configuration": shown,
            }
        )
        return
    _show(rows, shown, list(workflows))
    for text in warnings:
        note(f"[yellow]warning:[/yellow] {plain(text)}")


def _show(rows: list[dict[str, Any]], shown: dict[str, str | None], workflows: list[str]) -> None:
    table(
        ["task", "workspace", "mode", "fence", "guards", "params -> result", "retries"],
        [
            [
                plain(row["task"]),
                plain(row["workspace"] or "-"),
                row["mode"],
                row["fence"] or "-",
                len(row["guards"]),
                plain(f"{row['params']} -> {row['result']}"),
                row["retries"],
            ]
            for row in rows
        ],
    )
    say()
    fields(
        {
            name: plain(value) if value else "[dim]not configured[/dim]"
            for name, value in shown.items()
        }
    )
    if workflows:
        say()
    for file in workflows:
        say(f"workflow {plain(file)}: its writers follow each other")


def _row(task: TaskDefinition) -> dict[str, Any]:
    spec = task.workspace
    return {
        "task": task.name,
        "function": f"{task.body.source}:{task.body.label}",
        "workspace": spec.prefix if spec else None,
        "mode": "-" if spec is None else ("read-only" if spec.read_only else "publishes"),
        "fence": spec.fence if spec and not spec.read_only else None,
        "guards": [str(guard) for guard in (*spec.pre, *spec.post)] if spec else [],
        "params": task.params.name,
        "result": task.result.name,
        "retries": task.controls.retry.count,
    }


def _configuration(settings: Settings) -> dict[str, str | None]:
    return {
        "home": str(settings.home),
        "attempt directories": str(settings.local_rooms),
        "lakeFS": settings.lakefs.endpoint if settings.lakefs else None,
        "Conductor": settings.conductor.url if settings.conductor else None,
        "ledger": settings.ledger.shown if settings.ledger else None,
        "execution mode": settings.execution_mode,
    }
