"""``perago graph``: a workflow as text, Mermaid or SVG."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from perago.cli.screen import AsJson, emit, note, plain, say

if TYPE_CHECKING:
    from collections.abc import Mapping

    from perago.tasks.definition import TaskDefinition
    from perago.workflow.graph import Graph


class Format(StrEnum):
    """How a workflow is drawn."""

    TEXT = "text"
    MERMAID = "mermaid"
    SVG = "svg"


_BY_SUFFIX: Final = {".svg": Format.SVG, ".mmd": Format.MERMAID, ".mermaid": Format.MERMAID}


Target = Annotated[
    str,
    typer.Argument(
        metavar="WORKFLOW", help="A workflow file (.json), or module:workflow built in Python."
    ),
]
Modules = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="MODULE...",
        help="Modules with its tasks: they tell who writes; files of workflows that it calls.",
    ),
]
Form = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="text, mermaid or svg; by the name of --output, else text.",
        show_default=False,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="File to write; standard output when left out."),
]


def graph(
    target: Target,
    modules: Modules = None,
    form: Form = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Draw a workflow: its steps, forks, joins and choices.

    Example: perago graph workflow.json tasks

    With the modules of its tasks, steps that publish and steps that only read are told apart.
    """
    from dataclasses import asdict

    found = _found(target, modules or [])
    chosen = form or (_BY_SUFFIX.get(output.suffix.lower()) if output else None) or Format.TEXT
    if as_json:
        emit(asdict(found))
    elif output is not None:
        _write(output, _drawn(found, chosen))
        say(f"wrote {plain(output)}")
    elif chosen is Format.TEXT:
        _show(found)
    else:
        sys.stdout.write(_drawn(found, chosen))


def _found(target: str, modules: list[str]) -> Graph:
    """Read a workflow with its tasks; what is doubtful about it is noted."""
    from perago.brokers.conductor.registering import check_workflow
    from perago.cli.workflow_files import files_for, workflow_file
    from perago.tasks.loading import load_tasks
    from perago.workflow.graph import graph_of
    from perago.workflow.subworkflow import with_children

    others = {name: workflow_file(Path(name)) for name in modules if name.endswith(".json")}
    definition = _definition(target)
    tasks = load_tasks([name for name in modules if name not in others])
    definition, _ = with_children(definition, files_for(target, definition, others).find, target)
    for text in [*check_workflow(definition, {}, target), *_unknown(definition, tasks)]:
        note(f"[yellow]warning:[/yellow] {plain(text)}")
    writers = {name for name, task in tasks.items() if task.writable}
    readers = {name for name, task in tasks.items() if task.workspace} - writers
    return graph_of(definition, writers, readers)


def _write(output: Path, drawn: str) -> None:
    from perago.errors import UsageError

    try:
        output.write_text(drawn, encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{output} cannot be written: {getattr(error, 'strerror', None) or error}",
            remedy="choose another file",
        ) from None


def _definition(target: str) -> Mapping[str, object]:
    from perago.brokers.conductor.builder import definition_of_builder
    from perago.cli.workflow_files import workflow_file
    from perago.errors import UsageError
    from perago.tasks.loading import load_attribute

    if target.endswith(".json"):
        return workflow_file(Path(target))
    if ":" in target:
        return definition_of_builder(load_attribute(target), target)
    raise UsageError(
        f"{target!r} is not a workflow file", remedy="name a .json file, or module:workflow"
    )


def _unknown(definition: Mapping[str, object], tasks: Mapping[str, TaskDefinition]) -> list[str]:
    """Name the tasks that the given modules do not declare."""
    from perago.workflow.tracing import walk

    if not tasks:
        return []
    simple = (
        str(task.get("name"))
        for task, _ in walk(definition.get("tasks"))
        if task.get("type", "SIMPLE") == "SIMPLE"
    )
    missing = dict.fromkeys(name for name in simple if name not in tasks)
    return [f"task {name!r} is in none of the modules that were named" for name in missing]


def _drawn(found: Graph, form: Format) -> str:
    from perago.redaction import hide
    from perago.workflow.graph_mermaid import mermaid_of
    from perago.workflow.graph_svg import svg_of
    from perago.workflow.graph_text import lines_of

    if form is Format.SVG:
        return hide(svg_of(found))
    if form is Format.MERMAID:
        return hide(mermaid_of(found))
    return hide("".join(f"{line}\n" for line in lines_of(found)))


def _show(found: Graph) -> None:
    """Print the text form; on a terminal its parts are told apart."""
    from perago.workflow.graph_text import lines_of

    title, *lines = lines_of(found)
    say(f"[bold]{plain(title.name)}[/bold]")
    for line in lines:
        rest = [
            f"[cyan]{plain(line.rest)}[/cyan]" if line.rest else "",
            f"[yellow]{line.mark}[/yellow]" if line.mark else "",
            f"[dim]{plain(line.reads)}[/dim]" if line.reads else "",
        ]
        tail = "  ".join(filter(None, rest))
        name = plain(line.name if tail else line.name.rstrip())
        say(f"[dim]{line.frame}[/dim]{name}" + (f"  {tail}" if tail else ""))
