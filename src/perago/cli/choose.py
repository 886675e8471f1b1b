"""Arguments that can be left out when there is only one thing they could mean."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final

import typer

from perago.cli import completion
from perago.errors import UsageError

if TYPE_CHECKING:
    from perago.app.local import Home
    from perago.history.event_log import EventLog
    from perago.protocol.paths import Selection
    from perago.settings import Settings
    from perago.stores.embedded import EmbeddedStore
    from perago.stores.key_ranges import Listed
    from perago.stores.lakefs.store import LakeFSStore

    Looked = EmbeddedStore | LakeFSStore

Repository = Annotated[
    str | None,
    typer.Argument(
        help="Repository; may be left out when there is only one.",
        show_default=False,
        autocompletion=completion.repositories,
    ),
]
Repo = Annotated[
    str | None,
    typer.Option(
        "--repo",
        "-r",
        help="Repository; may be left out when there is only one.",
        autocompletion=completion.repositories,
    ),
]
Engine = Annotated[
    str,
    typer.Option("--engine", help="Who does it: threads, spark, or auto by how many there are."),
]
Branch = Annotated[
    str,
    typer.Option("--branch", "-b", help="Branch to look at.", autocompletion=completion.branches),
]
StoreName = Annotated[
    str, typer.Option("--store", help="Where to look: embedded, or the configured lakefs.")
]


LAST: Final = "last"
"""Stands for the newest run of this home, wherever a run is named."""
_MOST_NAMED: Final = 10


def selection_of(prefix: str) -> Selection:
    """Return the part of a repository that ``--prefix`` names."""
    from perago.protocol.paths import Selection, normalise_prefix, refuse_prefix

    if problem := refuse_prefix(prefix):
        raise UsageError(f"prefix {prefix!r} {problem}")
    return Selection(normalise_prefix(prefix))


def place_of(home: Home, store: str, repository: str | None) -> tuple[Looked, str]:
    """Return the store and the repository that are meant."""
    from perago.app.local import lakefs_here
    from perago.cli.seed import chosen_store

    if chosen_store(store) == "embedded":
        return home.existing().store, repository_of(home, repository)
    opened = lakefs_here()
    return opened, repository or _only_one(opened)


def events_of(home: Home) -> EventLog:
    """Open the event log; a home that was never made has an empty one, and is not made."""
    if home.path.is_dir():
        return home.events
    from perago.history.event_log import EventLog

    return EventLog(home.path / "events.sqlite")


def run_id_of(home: Home, given: str) -> str:
    """Return the id of the newest run for ``last``; anything else is an id, or the begin of one."""
    if given != LAST:
        return given
    newest = home.state.started_runs(limit=1) if home.path.is_dir() else ()
    if not newest:
        raise UsageError(f"there is no run in {home.path} yet", remedy="start one with: perago run")
    return newest[0].id


def named_once(argument: str | None, option: str | None) -> str | None:
    """Return the repository that was named as an argument or as an option, not as two."""
    if argument and option and argument != option:
        raise UsageError(
            f"two repositories are named: {argument!r} and {option!r}", remedy="name one of them"
        )
    return argument or option


def _only_one(store: LakeFSStore) -> str:
    from perago.stores.lakefs.admin import repositories

    known = list(islice(repositories(store.client), _MOST_NAMED + 1))
    if len(known) == 1:
        return known[0]
    if not known:
        raise UsageError(
            "this lakeFS has no repository", remedy="'perago repo init NAME' makes one"
        )
    more = ", ..." if len(known) > _MOST_NAMED else ""
    raise UsageError(
        "which repository of lakeFS?", remedy=f"name one of {', '.join(known[:_MOST_NAMED])}{more}"
    )


def repository_of(home: Home, given: str | None) -> str:
    """Return the repository that is meant."""
    known = sorted(home.store.repositories())
    if given:
        if given not in known:
            listed = ", ".join(known) or "none yet: 'perago run' makes one"
            raise UsageError(f"there is no repository {given!r}", remedy=f"known: {listed}")
        return given
    if len(known) == 1:
        return known[0]
    if not known:
        raise UsageError(
            f"the store in {home.path} is empty", remedy="'perago run' makes a repository"
        )
    raise UsageError("which repository?", remedy=f"name one of {', '.join(known)}")


def chosen_mode(given: str | None, settings: Settings) -> str:
    """Return how executors run: as asked for, or as configured."""
    mode = given or settings.execution_mode
    if mode not in {"process", "thread"}:
        raise UsageError(f"--execution-mode {mode!r}", remedy="use process or thread")
    return mode


def wants_spark(engine: str, listed: Listed, settings: Settings) -> bool:
    """Return whether Spark is to work on these objects: asked for, or too many for one process."""
    engines = ("auto", "threads", "spark")
    if engine not in engines:
        raise UsageError(f"there is no engine {engine!r}", remedy=f"use {', '.join(engines)}")
    if engine != "auto":
        return engine == "spark"
    from perago.spark import java

    return listed.more_than(settings.spark.from_objects) and java.usable()
