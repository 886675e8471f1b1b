"""``perago log``: the publications of a branch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from perago.cli.choose import Branch, Repo, Repository, StoreName, events_of, named_once, place_of
from perago.cli.screen import AsJson, changes, emit, plain, say, short, table, when

if TYPE_CHECKING:
    from perago.history.publications import PublicationEntry, Replaced


def log(
    repository: Repository = None,
    branch: Branch = "main",
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many commits.", min=1)] = 20,
    store: StoreName = "embedded",
    repo: Repo = None,
    as_json: AsJson = False,
) -> None:
    """Show who published what on a branch, which attempt it was, and what it replaced."""
    from perago.app.local import home_here
    from perago.history.publications import publications, relocations

    home = home_here()
    place, name = place_of(home, store, named_once(repository, repo))
    events = events_of(home)
    entries = publications(place, events, name, branch, limit)
    taken_back = relocations(events, name, branch, store)
    if as_json:
        emit(
            {
                "repository": name,
                "branch": branch,
                "publications": [_plain(entry) for entry in entries],
                "taken_back": [found.ref for found in taken_back],
            }
        )
    else:
        say(f"[bold]{plain(name)}[/bold] / {plain(branch)}")
        _show(entries, taken_back)


def _plain(entry: PublicationEntry) -> dict[str, Any]:
    return {
        "commit": entry.commit.id,
        "parents": entry.commit.parents,
        "at": entry.commit.created_at,
        "message": entry.commit.message,
        "metadata": dict(entry.commit.metadata),
        "changes": {
            "added": entry.change.added,
            "changed": entry.change.changed,
            "removed": entry.change.removed,
        },
        "replaced": [found.ref for found in entry.replaced],
        "adopted_by": [found.attempt.task_id for found in entry.adopted],
        "unfinished": entry.unfinished,
    }


def _show(entries: Sequence[PublicationEntry], taken_back: Sequence[Replaced]) -> None:
    rows: list[list[object]] = []
    for entry in entries:
        said, change = entry.commit.metadata, entry.change
        retry = str(said.get("perago.retry_count", "0"))
        step = plain(entry.step) or f"[dim]{plain(entry.commit.message)}[/dim]"
        if person := said.get("perago.person"):
            step += f" [dim]by {plain(person)}[/dim]"
        if entry.step and retry != "0":
            step += f" [dim]retry {plain(retry)}[/dim]"
        if entry.unfinished:
            step = f"[yellow]unfinished replacement by {short(entry.commit.parents[1])}[/yellow]"
        rows.append(
            [
                f"[cyan]{short(entry.commit.id)}[/cyan]",
                when(entry.commit.created_at),
                step,
                plain(said.get("perago.task_id", "-")[:8]),
                changes(len(change.added), len(change.changed), len(change.removed)),
            ]
        )
        rows += [
            [
                f"[dim]  {short(old.ref)}[/dim]",
                f"[dim]{when(old.at)}[/dim]",
                "[dim]replaced[/dim]",
                "",
                "[dim]abandoned[/dim]",
            ]
            for old in entry.replaced
        ]
        rows += [
            [
                "",
                f"[dim]{when(by.at)}[/dim]",
                f"[dim]adopted by retry {by.attempt.retry_count}[/dim]",
                f"[dim]{plain(by.attempt.task_id[:8])}[/dim]",
                "[dim]completion lost[/dim]",
            ]
            for by in entry.adopted
        ]
    table(["commit", "when", "step", "task", "changed"], rows)
    for old in taken_back:
        say(f"[dim]{when(old.at)}  {short(old.ref)} taken back by a retry without changes[/dim]")
