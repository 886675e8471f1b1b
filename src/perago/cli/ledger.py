"""``perago ledger``: what executions decided and what became of it (K5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from perago.cli.help import Group, StyledCommand
from perago.cli.screen import AsJson, emit, plain, say, short, table, when

if TYPE_CHECKING:
    from perago.protocol.adoption import Posting

app = typer.Typer(cls=Group, help="Look into the external ledger.", no_args_is_help=True)
_COLOURS = {
    "completed": "green",
    "completion lost": "yellow",
    "completion unknown": "yellow",
    "outcome unknown": "yellow",
}


@app.callback()
def _ledger() -> None:
    """Look into the external ledger."""


@app.command(cls=StyledCommand)
def show(
    repository: Annotated[
        str | None, typer.Option("--repository", "--repo", "-r", help="Only this repository.")
    ] = None,
    workflow: Annotated[
        str | None,
        typer.Option("--workflow", "-w", help="Only this workflow; its first characters do."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many executions.", min=1)] = 20,
    as_json: AsJson = False,
) -> None:
    """Show what executions decided, newest first: what was seen, and what the engine accepted.

    What is not known is said to be unknown: an execution that died in between says no more.
    """
    from perago.app.local import ledger_of, settings_here
    from perago.errors import RuntimeConfigError

    settings = settings_here()
    ledger = ledger_of(settings)
    if ledger is None or settings.ledger is None:
        raise RuntimeConfigError(
            "there is no ledger",
            remedy="set PERAGO_LEDGER, such as sqlite:///var/lib/ledger.sqlite",
        )
    found = ledger.latest(limit, repository, workflow)
    ledger.close()
    if as_json:
        emit({"ledger": settings.ledger.shown, "executions": [_plain(each) for each in found]})
        return
    say(f"[bold]{plain(settings.ledger.shown)}[/bold]")
    if not found:
        say("nothing is recorded")
        return
    headings = ["when", "repository", "step", "retry", "workflow", "decision", "input", "ref"]
    table([*headings, "state"], [_row(each) for each in found])


def _row(posting: Posting) -> list[object]:
    attempt, terms = posting.attempt, posting.terms
    colour = _COLOURS.get(posting.state, "red")
    return [
        when(posting.intended_at),
        f"{plain(terms.repository)}/{plain(terms.branch)}",
        plain(attempt.reference_task_name),
        attempt.retry_count or "-",
        plain(attempt.workflow_instance_id[:8]),
        plain(posting.decision),
        short(terms.input_ref),
        f"[cyan]{short(posting.ref)}[/cyan]",
        f"[{colour}]{plain(posting.state)}[/{colour}]",
    ]


def _plain(posting: Posting) -> dict[str, Any]:
    from dataclasses import asdict

    terms = asdict(posting.terms)
    return {
        "execution_id": posting.execution_id,
        **asdict(posting.attempt),
        **terms,
        "decision": posting.decision,
        "head": posting.head,
        "staged": posting.staged,
        "ref": posting.ref,
        "completion": posting.completion,
        "state": posting.state,
        "output": posting.output,
        "intended_at": posting.intended_at,
        "landed_at": posting.landed_at,
        "settled_at": posting.settled_at,
    }
