"""Many processes that open a home nobody has made yet, at the same moment."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from functools import partial
from multiprocessing.synchronize import Barrier
from pathlib import Path
from queue import SimpleQueue

from perago.brokers.local import State
from perago.history.event_log import EventLog
from perago.stores.embedded import EmbeddedStore
from perago.transfer.index import Index
from tests.patience import scaled

_ROW = (0.0, "execution", "workflow", "task", 0, "step", "definition", "claimed", "{}")
_CONTEXT = multiprocessing.get_context("fork")


def open_store(home: Path, number: int) -> None:
    """Open the embedded store and write to it."""
    EmbeddedStore(home / "store").create_repository(f"repository-{number}")


def open_runs(home: Path, _: int) -> None:
    """Open the state of local runs."""
    State(home / "runs.sqlite").close()


def open_events(home: Path, _: int) -> None:
    """Open the event log and write to it."""
    EventLog(home / "events.sqlite").append([_ROW])


def open_index(home: Path, number: int) -> None:
    """Open the index of a cache, which swallows its troubles: what was written must be there."""
    index = Index(str(home / "packs.sqlite"))
    index.also(f"tag-{number}", "content")
    if not index.contents_of([f"tag-{number}"]):
        raise AssertionError("the cache's index did not take a row")


OPENERS = (open_store, open_runs, open_events, open_index)


def race(place: Path, rounds: int, openers: int) -> list[str]:
    """Open ``rounds`` new homes, each by all openers at once; returns what went wrong."""
    homes = [place / str(number) for number in range(rounds)]
    for home in homes:
        home.mkdir(parents=True)
    told: SimpleQueue[str] = _CONTEXT.SimpleQueue()  # type: ignore[assignment]
    barrier = _CONTEXT.Barrier(openers)
    work = partial(_open_each, homes, barrier, told.put)
    processes = [_CONTEXT.Process(target=work, args=(number,)) for number in range(openers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    found = []
    while not told.empty():
        found.append(told.get())
    return found + [f"exit code {one.exitcode}" for one in processes if one.exitcode]


def _open_each(homes: list[Path], gate: Barrier, tell: Callable[[str], None], number: int) -> None:
    for home in homes:
        for opener in OPENERS:
            gate.wait(scaled(300))
            try:
                opener(home, number)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is told
                tell(f"{opener.__name__}: {type(error).__name__}: {error}")
