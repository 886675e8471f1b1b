"""``perago human``: the steps that people do (Q10 to Q15)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perago.cli.help import Group, StyledCommand
from perago.cli.screen import AsJson, emit, note, plain, say, say_steps, short, table, when
from perago.errors import BrokerError, UsageError

if TYPE_CHECKING:
    from perago.workflow.human import HumanTask

app = typer.Typer(cls=Group, help="Do the steps that wait for a person.", no_args_is_help=True)

Step = Annotated[
    str,
    typer.Argument(
        metavar="STEP",
        help="The name of a step that waits, or the first characters of its task id.",
        show_default=False,
    ),
]
Directory = Annotated[Path, typer.Argument(metavar="DIRECTORY", help="A directory that was taken.")]
Tasks = Annotated[
    list[str] | None,
    typer.Option("--tasks", "-t", metavar="MANIFEST", help="On Conductor: what declares the task."),
]
Results = Annotated[
    list[str] | None,
    typer.Option("--result", "-r", metavar="KEY=VALUE", help="A field of the result; may be JSON."),
]


@app.callback()
def _human() -> None:
    """Do the steps that wait for a person."""


@app.command("list", cls=StyledCommand)
def list_(as_json: AsJson = False) -> None:
    """List the steps that wait for a person, the oldest first: of local runs, and on Conductor."""
    from perago.cli.human_steps import opened

    found: list[HumanTask] = []
    unasked: BrokerError | None = None
    with opened(quiet=True) as human:
        for engine in human.engines():
            try:
                found += engine.tasks.waiting()
            except BrokerError as error:  # What the other engine has is shown all the same.
                unasked = error
    if as_json:
        emit([task.as_json() for task in found])
    else:
        _list(found)
    if unasked is not None:
        raise unasked


def _list(found: Sequence[HumanTask]) -> None:
    if not found:
        say("[dim]no step waits for a person[/dim]")
        return
    rows = [
        [
            plain(task.attempt.task_id[:8]),
            plain(task.step),
            plain(f"{task.workflow} {task.attempt.workflow_instance_id[:8]}"),
            plain(task.where),
            when(task.since) if task.since else "-",
            plain(", ".join(task.claimed_by)) or "[dim]-[/dim]",
        ]
        for task in found
    ]
    table(["task", "step", "workflow", "where", "since", "taken by"], rows)
    say(
        "[dim]look at one:[/dim] perago human show STEP    [dim]do it:[/dim] perago human take STEP"
    )


@app.command(cls=StyledCommand)
def show(step: Step, tasks: Tasks = None, as_json: AsJson = False) -> None:
    """Show what a step asks for: its files, its params, what it has to result in.

    Of an approval, show the difference that is to be approved.
    """
    from perago.cli.human_steps import describe, found_step, opened

    with opened(quiet=True) as human:
        describe(found_step(human, step, tasks), as_json=as_json)


@app.command(cls=StyledCommand)
def take(
    step: Step,
    directory: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIRECTORY", help="A new directory; named after the step when left out."
        ),
    ] = None,
    edits: Annotated[
        Path | None,
        typer.Option(
            metavar="DIRECTORY", help="Bring over what was changed in an older directory."
        ),
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Also when another person has taken it.")
    ] = False,
    tasks: Tasks = None,
    as_json: AsJson = False,
) -> None:
    """Take a step: make a directory with its files, to work in.

    The files are in DIRECTORY/workspace. They are yours: nothing changes or removes them.
    """
    from perago.cli.human_steps import found_step, opened, take_step

    with opened(quiet=as_json) as human:
        found = found_step(human, step, tasks)
        taken = take_step(human, found, directory, edits, anyway=anyway)
        before = human.person in found.task.claimed_by
        writable = found.definition.writable or found.definition.workspace is None
    if as_json:
        emit(
            {
                "task_id": taken.attempt.task_id,
                "directory": str(taken.path),
                "workspace": str(taken.files),
                "person": taken.person,
            }
        )
        return
    if before:
        note(f"[bold yellow]note:[/bold yellow] you have taken {plain(step)} before")
    if not writable:
        note("[bold yellow]note:[/bold yellow] this step only reads: changes are not published")
    say(f"[green]taken[/green]  the files are in [bold]{plain(taken.files)}[/bold]")
    shown = plain(directory or taken.path.name)
    say(f"[dim]when you are done:[/dim] perago human submit {shown}")


@app.command(cls=StyledCommand)
def diff(directory: Directory = Path(), as_json: AsJson = False) -> None:
    """List the files that you changed since you took the step."""
    from perago.cli.human_steps import opened_taken
    from perago.human.attempts import changes

    with opened_taken(directory, quiet=True) as (_, step, taken):
        found = changes(step, taken).steps
    if as_json:
        emit(
            {
                "directory": str(taken.path),
                **found.as_json(),
            }
        )
        return
    say_steps(f"[bold]{plain(step.task.step)}[/bold]", found)


@app.command(cls=StyledCommand)
def check(directory: Directory = Path(), result: Results = None, as_json: AsJson = False) -> None:
    """Ask the guards of a step about your files; nothing is published."""
    from perago.cli.human_steps import given_result, opened_taken
    from perago.human.attempts import check as rehearse

    with opened_taken(directory, quiet=as_json) as (_, step, taken):
        rehearse(step, taken, given_result(result) if result else None)
    if as_json:
        emit({"directory": str(taken.path), "ok": True})
    else:
        say("[green]ok[/green]  it can be submitted")


@app.command(cls=StyledCommand)
def submit(
    directory: Annotated[
        str,
        typer.Argument(
            metavar="DIRECTORY", help="A directory that was taken; or a step that needs none."
        ),
    ] = ".",
    result: Results = None,
    tasks: Tasks = None,
    as_json: AsJson = False,
) -> None:
    """Publish your work and complete the step; the run goes on.

    What does not come through is not reported: mend it and submit again.
    """
    from perago.cli.human_steps import found_step, opened, opened_taken, submit_step

    if Path(directory).is_dir():
        with opened_taken(Path(directory), quiet=as_json) as (human, step, taken):
            submit_step(human, step, taken, result or [], as_json=as_json)
    else:
        with opened(quiet=as_json) as human:
            step = found_step(human, directory, tasks)
            submit_step(human, step, None, result or [], as_json=as_json)


@app.command(cls=StyledCommand)
def approve(
    step: Step,
    comment: Annotated[str, typer.Option(help="Why.")] = "",
    no: Annotated[bool, typer.Option("--no", help="Do not approve; the run hears of it.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    tasks: Tasks = None,
    as_json: AsJson = False,
) -> None:
    """Approve the version that a step is about, or say no to it.

    The answer names the commit that was looked at: that one goes on, and no other.
    """
    from perago.cli.human_steps import approve_step, found_step, opened

    with opened(quiet=as_json) as human:
        found = found_step(human, step, tasks)
        approve_step(human, found, comment, approved=not no, sure=yes, as_json=as_json)


@app.command(cls=StyledCommand)
def reject(
    step: Step,
    reason: Annotated[str, typer.Option(help="Why it cannot be done.", show_default=False)],
    terminal: Annotated[
        bool, typer.Option("--terminal", help="It can never be done: do not try again.")
    ] = False,
    tasks: Tasks = None,
    as_json: AsJson = False,
) -> None:
    """Fail a step: it cannot be done, now or ever. Your directory stays as it is."""
    from perago.cli.human_steps import found_step, opened, reject_step

    with opened(quiet=as_json) as human:
        found = found_step(human, step, tasks)
        reject_step(human, found, reason, terminal=terminal, as_json=as_json)


@app.command("return", cls=StyledCommand)
def return_(step: Step, as_json: AsJson = False) -> None:
    """Give a step back: your name is taken off it. Your directory stays as it is."""
    from perago.cli.human_steps import opened

    with opened(quiet=True) as human:
        engine, task = human.find(step)
        if human.person not in task.claimed_by:
            raise UsageError(f"{human.person} has not taken step {task.step!r}")
        engine.tasks.note_claims(task.given_back_by(human.person))
    if as_json:
        emit({"task_id": task.attempt.task_id, "returned": True})
    else:
        say(f"[bold]{plain(task.step)}[/bold] {short(task.attempt.task_id)} is given back")
