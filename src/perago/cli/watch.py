"""``perago watch``: follow a workflow until it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from perago.cli.exits import FAILED, INTERRUPTED, WAITING
from perago.cli.screen import AsJson, block, emit, fields, note, plain, say
from perago.cli.steering import Id

if TYPE_CHECKING:
    from perago.cli.steering import Steered
    from perago.workflow.progress import WorkflowExecution


def watch(workflow: Id, as_json: AsJson = False) -> None:
    """Follow a workflow, a local run or one on Conductor, until it ends.

    It only looks: Ctrl-C ends the watching, not the workflow.
    """
    from perago.app.local import settings_here
    from perago.cli.steering import steered

    with steered(settings_here(), workflow) as found:
        follow_to_the_end(found, as_json=as_json)


def follow_to_the_end(found: Steered, *, as_json: bool) -> None:
    """Show what happens, then how it ended; the exit code says it too."""
    from perago.cli.steering import follow
    from perago.cli.view import view_for

    first = found.read()
    if not as_json:
        say(f"[bold]{plain(first.workflow)}[/bold]  {_noun(found)} {plain(first.id)}")
    try:
        ended = follow(found, view_for(as_json=as_json, live=True))
    except KeyboardInterrupt:
        if not as_json:
            note(f"\nno longer watched; it continues. Look again with: perago watch {first.id}")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        emit({**ended.as_json(), "where": found.where})
    else:
        _conclude(found, ended)
    if ended.status != "COMPLETED":
        raise typer.Exit(WAITING if not ended.over and found.waits_for_people() else FAILED)


def _conclude(found: Steered, ended: WorkflowExecution) -> None:
    noun = _noun(found)
    if not ended.over and found.waits_for_people():
        say(f"\n[yellow]waits for a person[/yellow]  {noun} {plain(ended.id)}")
        say("[dim]see which steps:[/dim] perago human list")
        return
    if not ended.over:
        say(f"\n[yellow]its process is gone[/yellow]  {noun} {plain(ended.id)} did not end")
        say(f"[dim]resume it with:[/dim] perago run --resume {plain(ended.id)}")
        return
    colour = "green" if ended.status == "COMPLETED" else "red"
    say(f"\n[{colour}]{plain(ended.status)}[/{colour}]  {noun} {plain(ended.id)}")
    if ended.status != "COMPLETED":
        if ended.reason:
            say(f"  {block(ended.reason)}")
        say(f"[dim]start it again from the current head:[/dim] perago restart {plain(ended.id)}")
        return
    shown = {name: value for name, value in ended.output.items() if name != "workspace"}
    fields({plain(name): plain(value) for name, value in shown.items() if value is not None})


def _noun(found: Steered) -> str:
    return "run" if found.where == "local" else "workflow"
