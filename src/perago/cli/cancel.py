"""``perago cancel``: end a workflow before it is done."""

from __future__ import annotations

from typing import Annotated

import typer

from perago.cli.screen import AsJson, emit, plain, say
from perago.cli.steering import Id


def cancel(
    workflow: Id,
    reason: Annotated[
        str, typer.Option(help="Why; it is kept with the workflow.")
    ] = "cancelled by perago cancel",
    as_json: AsJson = False,
) -> None:
    """End a workflow, a local run or one on Conductor; what is published stays.

    Attempts that are under way are stopped and publish nothing.
    """
    from perago.app.local import settings_here
    from perago.cli.steering import steered
    from perago.errors import UsageError

    with steered(settings_here(), workflow) as found:
        before = found.read()
        if not before.over:
            found.end(reason)
        ended = found.read()
        if before.over or ended.status != "TERMINATED":
            raise UsageError(
                f"{ended.id} cannot be cancelled: it is {ended.status} already",
                remedy=f"see how it went with: perago watch {ended.id}",
            )
    if as_json:
        emit({"id": ended.id, "where": found.where, "status": ended.status, "reason": reason})
    else:
        say(f"[yellow]cancelled[/yellow]  {plain(ended.workflow)} {plain(ended.id)}")
        say(f"[dim]start it again from the current head:[/dim] perago restart {plain(ended.id)}")
