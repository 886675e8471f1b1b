"""``perago runs``: what was run on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from perago.cli.screen import AsJson, emit, plain, say, table, when

_COLOURS = {"COMPLETED": "green", "RUNNING": "yellow"}


def runs(
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many runs.", min=1)] = 20,
    as_json: AsJson = False,
) -> None:
    """List local runs, newest first; one that did not end can be resumed."""
    from perago.wiring import home_here

    found = home_here().existing().state.runs(limit)
    if as_json:
        emit(
            [
                {
                    "run": run.id,
                    "workflow": run.workflow.get("name"),
                    "status": run.status,
                    "reason": run.reason,
                    "created_at": run.created_at,
                    "ended_at": run.ended_at,
                    "output": run.output,
                }
                for run in found
            ]
        )
        return
    rows = []
    for run in found:
        colour = _COLOURS.get(run.status, "red")
        took = f"{run.ended_at - run.created_at:.1f} s" if run.ended_at else "-"
        rows.append(
            [
                plain(run.id),
                plain(run.workflow.get("name")),
                f"[{colour}]{plain(run.status)}[/{colour}]",
                when(run.created_at),
                took,
            ]
        )
    table(["run", "workflow", "status", "started", "took"], rows)
    if any(run.status != "COMPLETED" for run in found):
        say("[dim]continue one with: perago run --resume RUN[/dim]")
