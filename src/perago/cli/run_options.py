"""What ``perago run`` takes on its command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perago.cli import completion

Target = Annotated[
    str | None,
    typer.Argument(
        metavar="WORKFLOW|TASK",
        help="A workflow file (.json), module:workflow built in Python, or a module with one "
        "task (module:task among several).",
        show_default=False,
    ),
]
Modules = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="MODULE...",
        help="Modules with the workflow's tasks; files (.json) of the workflows that it calls, "
        "where they are not beside it.",
    ),
]
Resume = Annotated[
    str | None,
    typer.Option(
        metavar="RUN",
        help="Resume a run that crashed, stopped or failed; 'last' is the newest one.",
        autocompletion=completion.runs,
    ),
]
Repository = Annotated[
    str | None,
    typer.Option(
        "--repo",
        "-r",
        help="Repository; on the embedded store it is made when it does not exist.",
        autocompletion=completion.repositories,
    ),
]
Branch = Annotated[
    str,
    typer.Option(
        "--branch", "-b", help="Branch to publish on.", autocompletion=completion.branches
    ),
]
Source = Annotated[
    Path | None,
    typer.Option("--from", help="Commit the files of this directory first, as the input."),
]
Values = Annotated[
    list[str] | None,
    typer.Option("--input", "-i", metavar="KEY=VALUE", help="Workflow input; may be JSON."),
]
InputFile = Annotated[Path | None, typer.Option(help="JSON file with workflow input.")]
Params = Annotated[str | None, typer.Option(help="JSON params of a single task.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Executors at once.", min=1)]
ExecutionMode = Annotated[
    str | None, typer.Option(help="process, or thread to debug in one process.")
]
Store = Annotated[
    str,
    typer.Option(help="embedded, or lakefs: the server that is configured (see .env)."),
]
RealDelays = Annotated[
    bool,
    typer.Option("--real-delays", help="Wait before a retry as long as declared, not 1 s at most."),
]
Wait = Annotated[bool, typer.Option("--wait", help="Stay while a person has to do a step.")]
