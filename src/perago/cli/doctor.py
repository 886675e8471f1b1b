"""``perago doctor``: is everything there that a run needs?"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from perago.cli.exits import FAILED
from perago.cli.screen import AsJson, emit, plain, say

_MARKS = {
    "good": "[green]✓[/green]",
    "doubtful": "[yellow]![/yellow]",
    "bad": "[red]✗[/red]",
    "not configured": "[dim]-[/dim]",
}


def doctor(
    modules: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODULE...]",
            help="Modules with tasks: are they registered at Conductor as declared here?",
            show_default=False,
        ),
    ] = None,
    repository: Annotated[
        str | None,
        typer.Option("--repo", "-r", help="Try the worker's permissions on this repository."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check this machine and the configured servers, and say what to fix.

    With --repo it rehearses an attempt on scratch branches, which it deletes again.
    """
    from perago.app.doctor import examine
    from perago.app.local import settings_here
    from perago.tasks.loading import load_tasks

    tasks = list(load_tasks(modules or []).values())
    findings = []
    for finding in examine(settings_here(), repository, tasks):
        findings.append(finding)
        if not as_json:
            say(f"{_MARKS[finding.health]} {plain(finding.what)}: {plain(finding.detail)}")
            if finding.remedy:
                say(f"  [bold]{plain(finding.remedy)}[/bold]")
    bad = any(finding.health == "bad" for finding in findings)
    if as_json:
        emit({"healthy": not bad, "findings": [asdict(finding) for finding in findings]})
    if bad:
        raise typer.Exit(FAILED)
