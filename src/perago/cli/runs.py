"""``perago runs``: what was run on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from perago.cli.screen import AsJson, emit, plain, say, table, when

_COLOURS = {"COMPLETED": "green", "RUNNING": "cyan", "INTERRUPTED": "yellow", "WAITING": "yellow"}
_SHORTEST = 8


def runs(
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many runs.", min=1)] = 20,
    every: Annotated[
        bool, typer.Option("--all", help="Those of sub workflows, too.", show_default=False)
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List local runs, newest first; one that did not end can be resumed.

    Runs of sub workflows belong to the run that started them: --all lists them as well.
    """
    from perago.app.local import home_here
    from perago.app.run_state import WAITING, state_of

    home = home_here().existing()
    found = home.state.runs(limit) if every else home.state.started_runs(limit)
    states = [state_of(home, run.id, run.status) for run in found]
    if as_json:
        emit(
            [
                {
                    "run": run.id,
                    "workflow": run.workflow.get("name"),
                    "status": state,
                    "reason": run.reason,
                    "created_at": run.created_at,
                    "ended_at": run.ended_at,
                    "output": run.output,
                    "parent": run.parent or None,
                }
                for run, state in zip(found, states, strict=True)
            ]
        )
        return
    length = _enough([run.id for run in found])
    rows = []
    for run, state in zip(found, states, strict=True):
        colour = _COLOURS.get(state, "red")
        took = f"{run.ended_at - run.created_at:.1f} s" if run.ended_at else "-"
        rows.append(
            [
                plain(run.id[:length]),
                plain(run.workflow.get("name")),
                f"[{colour}]{plain(state)}[/{colour}]",
                when(run.created_at),
                took,
                *([plain(run.parent[:length] or "-")] if every else []),
            ]
        )
    part_of = ["part of"] if every else []
    table(["run", "workflow", "status", "started", "took", *part_of], rows)
    if any(state not in {"COMPLETED", "RUNNING", WAITING} for state in states):
        say("[dim]resume one with: perago run --resume RUN[/dim]")


def _enough(ids: Sequence[str]) -> int:
    """Return how many characters tell these ids apart."""
    longest = max(map(len, ids), default=0)
    for length in range(_SHORTEST, longest):
        if len({each[:length] for each in ids}) == len(set(ids)):
            return length
    return longest
