"""``perago report``: how the attempts of each task went, and the publish budget that fits."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perago.cli import completion
from perago.cli.screen import AsJson, emit, plain, say, table
from perago.errors import UsageError
from perago.protocol.printable import size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perago.history.event_log import EventLog
    from perago.history.figures import AttemptFilter, Spread, TaskFigures
    from perago.history.rows import AttemptRow
    from perago.settings import Settings

ENGINES = ("auto", "python", "spark")
_DRAWN = 20_000
Point = tuple[str, float, float]
"""A publication: its task, when it was, how many seconds it took."""


def report(
    task: Annotated[str | None, typer.Option("--task", "-t", help="Only this task.")] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="Only attempts begun in the last 30m, 12h, 7d.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Draw publish latencies: a .png or .svg file.")
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", help="Who counts: python, spark, or auto by the number.")
    ] = "auto",
    store: Annotated[
        str | None,
        typer.Option("--store", help="Only attempts on this store: embedded or lakefs."),
    ] = None,
    repo: Annotated[
        str | None,
        typer.Option(
            "--repo",
            "-r",
            help="Only attempts on this repository.",
            autocompletion=completion.repositories,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show attempts, phases and publish latencies of each task, with a budget that fits them."""
    from perago.app.local import home_of, settings_here
    from perago.cli.picture import check_target, draw
    from perago.cli.seed import chosen_store
    from perago.history.figures import AttemptFilter

    if engine not in ENGINES:
        raise UsageError(f"there is no engine {engine!r}", remedy=f"use {', '.join(ENGINES)}")
    if plot is not None:
        check_target(plot)
    settings = settings_here()
    events = home_of(settings).existing().events
    wanted = AttemptFilter(
        task or "",
        chosen_store(store) if store else "",
        repo or "",
        time.time() - _seconds(since) if since else 0.0,
    )
    many = events.count_claims() > settings.spark.from_objects
    if engine == "spark" or (engine == "auto" and many and _can_spark()):
        found, points = _by_spark(settings, wanted, drawn=plot is not None)
    else:
        found, points = _by_python(events, wanted)
    if plot is not None:
        draw(points, plot)
    if as_json:
        emit({"tasks": [each.as_json() for each in found], "plot": plot and str(plot)})
        return
    _show(found)
    if plot is not None:
        say(f"drawn in {plain(plot)}")


def _seconds(text: str) -> float:
    from perago.settings import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--since is {text!r}", remedy=str(error)) from None


def _can_spark() -> bool:
    from perago.spark import java

    return java.usable()


def _by_python(events: EventLog, chosen: AttemptFilter) -> tuple[list[TaskFigures], list[Point]]:
    from perago.history.figures import WRITES, figures
    from perago.history.rows import attempt_row

    wanted: dict[str, str | int | float] = {"at >= ?": chosen.since}
    if chosen.task:
        wanted["task_def_name = ?"] = chosen.task
    points: list[Point] = []

    def rows() -> Iterator[AttemptRow]:
        for found in events.by_execution(0, events.last(), wanted):
            row = attempt_row(found)
            if not chosen.takes(row):
                continue
            if row.publish_seconds is not None and row.kind in WRITES:
                points.append((row.task, row.decided_at or row.started_at, row.publish_seconds))
            yield row

    counted = figures(rows())
    points.sort(key=lambda point: point[1])
    return counted, points[-_DRAWN:]


def _by_spark(
    settings: Settings, chosen: AttemptFilter, *, drawn: bool
) -> tuple[list[TaskFigures], list[Point]]:
    from perago.spark import jobs

    options = {"home": str(settings.home.absolute()), "what": "attempts"}
    with jobs.session(settings.spark) as spark:
        from perago.spark import figures

        attempts = spark.read.format("perago").options(**options).load()
        return figures.report(attempts, chosen, _DRAWN if drawn else 0)


def _show(found: list[TaskFigures]) -> None:
    if not found:
        say("no attempts")
        return
    heads = ["task", "attempts", "completed", "failed", "died", "lost", "refused", "replaced"]
    rows: list[list[object]] = []
    for each in found:
        tallies = each.tallies
        rows.append(
            [
                f"[bold]{plain(each.task)}[/bold]",
                tallies.attempts,
                tallies.completed,
                *(_alarm(n) for n in (tallies.failed, tallies.died, tallies.lost)),
                _alarm(tallies.refused),
                tallies.replaced or "-",
                *_times(each.publish),
            ]
        )
    table([*heads, "publish p50", "p90", "p99", "longest"], rows)
    for each in found:
        _show_task(each)


def _show_task(each: TaskFigures) -> None:
    tallies = each.tallies
    say(
        f"\n[bold]{plain(each.task)}[/bold]  {tallies.merged} merged, {tallies.replaced} replaced, "
        f"{tallies.kept} without change; {size(tallies.bytes_read)} read, "
        f"{size(tallies.bytes_written)} written"
    )
    table(
        ["  phase", "times", "p50", "p90", "p99", "longest"],
        [
            [f"  {plain(name)}", spread.count, *_times(spread)]
            for name, spread in each.phases.items()
        ],
    )
    advice = each.advice
    if advice is None:
        return
    from dataclasses import asdict

    from perago.protocol.budget import response_seconds_needed

    count = each.publish.count if each.publish else 0
    noun = "publication" if count == 1 else "publications"
    basis = "" if advice.certain else ", too few for a 99th percentile: the longest counts"
    say(f"  a budget that fits ({count} {noun}{basis}):")
    values = ", ".join(f"{name}={value:g}" for name, value in asdict(advice.budget).items())
    say(f"  [cyan]PublishBudget({values})[/cyan]")
    needed = response_seconds_needed(advice.budget)
    say(f"  [dim]it needs timeout.response_seconds of {needed:g} or more[/dim]")


def _times(spread: Spread | None) -> list[str]:
    if spread is None:
        return ["-"] * 4
    return [_time(value) for value in (spread.p50, spread.p90, spread.p99, spread.longest)]


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"


def _alarm(count: int) -> str:
    return f"[red]{count}[/red]" if count else "-"
