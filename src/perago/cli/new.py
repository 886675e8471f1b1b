"""``perago new``: files to start from, written from what is there already."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perago.cli.check import Modules
from perago.cli.help import Group, StyledCommand
from perago.cli.screen import AsJson, emit, note, plain, say

if TYPE_CHECKING:
    from perago.tasks.definition import TaskDefinition
    from perago.workflow.scaffold import Param, Scaffold, ScaffoldTask

app = typer.Typer(cls=Group, help="Write a workflow from tasks.", no_args_is_help=True)


@app.callback()
def _new() -> None:
    """Write a workflow from tasks."""


@app.command(cls=StyledCommand)
def workflow(
    modules: Modules,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="New file, ending in .json.")
    ] = Path("workflow.json"),
    name: Annotated[
        str | None,
        typer.Option(help="Name of the workflow; that of the file if left out.", metavar="TEXT"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a workflow that runs tasks one after the other.

    Example: perago new workflow tasks -o chain.json

    Each step reads the workspace that the last writing step before it published. Params become
    inputs of the workflow, with the defaults that the tasks declare. The order is that of the
    arguments: name single tasks as module:task. An existing file is never overwritten.
    """
    from perago.brokers.conductor.registering import check_workflow
    from perago.errors import UsageError
    from perago.tasks.loading import load_tasks
    from perago.workflow.scaffold import scaffold

    if output.suffix != ".json":
        raise UsageError(f"{output} does not end in .json", remedy="name a file such as flow.json")
    chosen = (output.stem if name is None else name).strip()
    if not chosen or not chosen.isprintable():
        raise UsageError(f"{chosen!r} is not a name", remedy="give a printable one with --name")
    tasks = load_tasks(modules)
    parts, left = zip(*map(_part, tasks.values()), strict=True)
    made = scaffold(chosen, next(iter(tasks.values())).owner_email, parts)
    check_workflow(made.definition, tasks, str(output))
    _write(output, made.definition)
    for text in (text for texts in left for text in texts):
        note(f"[yellow]warning:[/yellow] {plain(text)}")
    if as_json:
        emit({"written": str(output), "tasks": list(tasks), "required": list(made.required)})
        return
    _tell(output, modules, len(tasks), made)


def _tell(output: Path, modules: list[str], count: int, made: Scaffold) -> None:
    import shlex

    file = shlex.quote(str(output))
    names = shlex.join(dict.fromkeys(module.partition(":")[0] for module in modules))
    inputs = "".join(f" -i {shlex.quote(key)}=..." for key in made.required)
    say(f"wrote {plain(output)}: {count} step{'s' if count != 1 else ''}")
    say("\nwhat to try next")
    say(f"  [bold]perago graph {plain(file)} {plain(names)}[/bold]")
    say(f"  [bold]perago run {plain(file)} {plain(names)}{plain(inputs)}[/bold]")


def _write(output: Path, definition: dict[str, Any]) -> None:
    from perago.errors import UsageError

    text = json.dumps(definition, indent=2, ensure_ascii=False) + "\n"
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(
            f"{output} exists already", remedy="choose another file with --output"
        ) from None
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{output} cannot be written: {getattr(error, 'strerror', None) or error}",
            remedy="choose another file with --output",
        ) from None


def _part(task: TaskDefinition) -> tuple[ScaffoldTask, list[str]]:
    """Read what a workflow has to know off a task; say which params are left to its defaults."""
    from perago.workflow.scaffold import ScaffoldTask

    params, left = _params(task)
    mode = "none" if task.workspace is None else "writes" if task.writable else "reads"
    texts = [
        f"task {task.name!r}: param {key!r} is left to the task: its default is not fixed JSON"
        for key in left
    ]
    return ScaffoldTask(task.name, mode, params), texts  # type: ignore[arg-type]


def _params(task: TaskDefinition) -> tuple[tuple[Param, ...], list[str]]:
    """List the params with their defaults; a default that JSON cannot carry is the task's own."""
    import warnings

    from perago.workflow.scaffold import Param

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pydantic warns of a default that is not JSON.
        schema = task.params.document("validation")
    required = set(schema.get("required", ()))
    properties: dict[str, Any] = schema.get("properties", {})
    fixed = _accepted(task, {k: v["default"] for k, v in properties.items() if "default" in v})
    definitions = json.dumps(schema.get("$defs"), sort_keys=True)
    found = tuple(
        Param(key, _declared(shape, definitions), key in required, fixed.get(key))
        for key, shape in properties.items()
        if key in required or key in fixed
    )
    return found, [key for key in properties if key not in required and key not in fixed]


def _declared(shape: dict[str, Any], definitions: str) -> str:
    """Write out what a param may be; models of one name are compared by what is in them."""
    text = json.dumps(shape, sort_keys=True)
    return text + definitions if "$ref" in text else text


def _accepted(task: TaskDefinition, defaults: dict[str, Any]) -> dict[str, Any]:
    """Keep the defaults that the task accepts when they are given as JSON."""
    from perago.tasks.schemas import SchemaError

    try:
        task.params.parse(defaults)
    except SchemaError as error:
        refused = {str(where[0]) for where, _ in error.problems if where}
        return {key: value for key, value in defaults.items() if key not in refused}
    return defaults
