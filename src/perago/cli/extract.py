"""``perago extract``: TaskDef JSON for Conductor (W1)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from perago.cli.check import Modules
from perago.cli.screen import AsJson, emit, note, plain, say


def extract(
    modules: Modules,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; standard output when left out."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the Conductor TaskDef of each task: an object for one task, a list for several."""
    from perago.brokers.conductor.taskdef import taskdef, warnings_of
    from perago.errors import UsageError
    from perago.tasks.loading import load_tasks

    tasks = load_tasks(modules)
    definitions = [taskdef(task) for task in tasks.values()]
    document = definitions[0] if len(definitions) == 1 else definitions
    if output is not None:
        try:
            output.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            raise UsageError(
                f"{output} cannot be written: {error.strerror}", remedy="choose another file"
            ) from None
    for task in tasks.values():
        for text in warnings_of(task):
            note(f"[yellow]warning:[/yellow] {plain(text)}")
    if output is None:
        emit(document)
    elif as_json:
        emit({"written": str(output), "tasks": list(tasks)})
    else:
        say(f"wrote {len(definitions)} task definition(s) to {plain(output)}")
