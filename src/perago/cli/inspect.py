"""``perago inspect``: one attempt, one run or one commit, from the inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from perago.cli import completion
from perago.cli.choose import Repo, StoreName, events_of, place_of, run_id_of
from perago.cli.screen import AsJson, block, changes, emit, fields, plain, say, short, when

if TYPE_CHECKING:
    from perago.app.local import Home
    from perago.history.attempts import AttemptHistory
    from perago.history.event_log import EventLog
    from perago.ports import Store
    from perago.protocol.attempt_state import AttemptState
    from perago.protocol.values import ChangeSet, Commit

_BAR = 24
_PATHS = 12


def inspect(
    what: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="A task, execution, run or commit id (its first characters are enough, 'last' is "
            "the newest run), or a branch.",
            autocompletion=completion.runs_and_branches,
        ),
    ],
    repository: Repo = None,
    store: StoreName = "embedded",
    as_json: AsJson = False,
) -> None:
    """Show input, phases with their times, guards, changes and the end of attempts or commits."""
    from perago.app.local import home_here
    from perago.errors import NotFoundError, UsageError

    home = home_here()
    events = events_of(home if store == "lakefs" else home.existing())
    what = run_id_of(home, what)
    found = [each for one in (what, *_inside(home, what)) for each in events.executions(one)]
    commit = change = None
    if not found:
        place, name = place_of(home, store, repository)
        try:
            commit = place.commit(name, what)
            change = _change(place, name, commit)
        except NotFoundError:
            raise UsageError(
                f"nothing is known of {what!r}",
                remedy="'perago log' and 'perago runs' show ids to look at",
            ) from None
        found = [commit.metadata.get("perago.execution_id", "")]
    told = (_history(events, execution) for execution in dict.fromkeys(found))
    attempts = sorted((each for each in told if each), key=lambda one: one.started_at)
    if as_json:
        _emit(commit, change, attempts)
        return
    if commit and change is not None:
        _show_commit(commit, change)
    for each in attempts:
        _show_attempt(each)


def _inside(home: Home, what: str) -> list[str]:
    """Name the runs of sub workflows that belong to a run."""
    if not (home.path / "runs.sqlite").is_file():
        return []
    runs = [run for run in home.state.runs(limit=1_000_000) if run.id.startswith(what)]
    return [run.id for run in home.state.family(runs[0].id)[1:]] if len(runs) == 1 else []


def _history(log: EventLog, execution_id: str) -> AttemptHistory | None:
    from perago.history.attempts import attempt_history

    events = log.of_execution(execution_id)
    return attempt_history(events) if events else None


def _change(store: Store, repository: str, commit: Commit) -> ChangeSet:
    from perago.protocol.values import ChangeSet

    if not commit.parent:
        return ChangeSet()
    return store.diff(repository, commit.parent, commit.id, "")


def _emit(commit: Commit | None, change: ChangeSet | None, attempts: list[AttemptHistory]) -> None:
    shown = None
    if commit and change is not None:
        shown = {
            "id": commit.id,
            "parents": commit.parents,
            "message": commit.message,
            "metadata": dict(commit.metadata),
            "at": commit.created_at,
            "added": change.added,
            "changed": change.changed,
            "removed": change.removed,
        }
    emit({"commit": shown, "executions": [told.as_json() for told in attempts]})


def _show_commit(commit: Commit, change: ChangeSet) -> None:
    say(f"[bold]commit {plain(commit.id)}[/bold]")
    fields(
        {
            "message": plain(commit.message),
            "when": when(commit.created_at),
            "parents": ", ".join(map(short, commit.parents)) or "none",
            "changed": changes(len(change.added), len(change.changed), len(change.removed)),
        }
    )
    for name, value in sorted(commit.metadata.items()):
        say(f"  [dim]{plain(name)} = {plain(value)}[/dim]")
    say()


def _show_attempt(told: AttemptHistory) -> None:
    attempt = told.attempt
    colour = "green" if told.ending == "COMPLETED" else "red"
    retry = f", retry {attempt.retry_count}" if attempt.retry_count else ""
    say(
        f"[bold]{plain(attempt.reference_task_name)}[/bold] "
        f"({plain(attempt.task_def_name)}{retry})  [{colour}]{plain(told.ending)}[/{colour}]"
    )
    workspace = told.workspace
    fields(
        {
            "run": plain(attempt.workflow_instance_id),
            "task": plain(attempt.task_id),
            "execution": plain(told.execution_id),
            "started": when(told.started_at),
            "reads": plain(f"{workspace.get('repository', '-')}/{workspace.get('branch', '-')}")
            + f" at {short(str(workspace.get('ref', '')))}",
        }
    )
    _show_phases(told.state)
    for guard in told.guards:
        mark = "[green]ok[/green]  " if guard.violation is None else "[red]fail[/red]"
        text = plain(guard.guard) + (f": {plain(guard.violation)}" if guard.violation else "")
        rows = f"  [dim]{guard.rows:,} rows[/dim]" if guard.rows is not None else ""
        say(f"  {mark} {text}{rows}")
        for sample in guard.samples:
            say(f"         [dim]{plain(sample)}[/dim]")
    _show_change(told.state)
    if adopted := told.state.adopted:
        say(
            f"  [bold]adopted[/bold] {short(adopted.ref)}, which execution "
            f"{plain(adopted.execution)} had published; the body was not run again"
        )
    for metric in told.metrics:
        say(f"  [dim]{plain(metric.kind)}[/dim] {plain(metric.name)} = {metric.value:g}")
    for warning in told.warnings:
        say(f"  [yellow]warning[/yellow] {plain(warning.text)}: {plain(warning.why)}")
    if told.state.outcome and told.state.outcome.reason:
        say(f"  [red]{block(told.state.outcome.reason)}[/red]")
    if told.state.traceback:
        say(f"  [dim]{block(told.state.traceback.text)}[/dim]")
    say()


def _show_phases(state: AttemptState) -> None:
    longest = max((phase.seconds or 0 for phase in state.phases), default=0) or 1
    for phase in state.phases:
        if phase.seconds is None:
            how = "failed here" if state.outcome else "died here"
            say(f"  {plain(phase.name):<22} [red]{how}[/red]")
            continue
        bar = "━" * max(1, round(_BAR * phase.seconds / longest))
        say(f"  {plain(phase.name):<22} {phase.seconds * 1000:>9.1f} ms  [cyan]{bar}[/cyan]")


def _show_change(state: AttemptState) -> None:
    if (change := state.changed) is None:
        return
    shown = (("+", "green", change.added), ("~", "yellow", change.changed))
    for sign, colour, paths in (*shown, ("-", "red", change.removed)):
        for path in paths[:_PATHS]:
            say(f"  [{colour}]{sign}[/{colour}] {plain(path)}")
        if len(paths) > _PATHS:
            say(f"  [{colour}]{sign}[/{colour}] [dim]and {len(paths) - _PATHS} more[/dim]")
    if state.decision:
        held = f", fence {plain(state.published.fence)} held" if state.published else ""
        say(
            f"  decision [bold]{plain(state.decision.kind)}[/bold] on "
            f"{short(state.decision.head)}{held}"
        )
