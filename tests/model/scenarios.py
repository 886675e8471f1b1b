"""Who can write at the same time, by name."""

from __future__ import annotations

from dataclasses import replace

from perago.protocol.kinds import FenceKind
from tests.model.attempt import LATER_STEP, STRANGER, Writer, retry
from tests.model.world import Scenario, Start

Changes = tuple[bool, ...]


def attempt(number: int, fence: FenceKind, *, changes: bool = True, naive: bool = False) -> Writer:
    """Return an attempt of the one step that all of this is about."""
    return Writer(str(number), retry(number), fence, f"attempt {number}", changes, naive)


def twin(fence: FenceKind, *, changes: bool = True) -> Writer:
    """Return the second delivery of attempt 1."""
    return Writer("1b", retry(1), fence, "the twin of attempt 1", changes)


def stranger(fence: FenceKind, *, changes: bool = True) -> Writer:
    """Return an attempt of another workflow that was given the same A."""
    return Writer("w", STRANGER, fence, "another workflow", changes)


def retries(
    fence: FenceKind, start: Start = "A", changes: Changes = (True, True), *, naive: bool = False
) -> Scenario:
    """Attempts 1, 2, ... of one step; each exists when the one before it is over."""
    writers = [
        attempt(number, fence, changes=writes, naive=naive)
        for number, writes in enumerate(changes, 1)
    ]
    return Scenario(tuple(writers), tuple(range(len(changes))), len(changes), start)


def twins(fence: FenceKind, start: Start = "A", changes: Changes = (True, True)) -> Scenario:
    """Two deliveries of one attempt."""
    writers = (attempt(1, fence, changes=changes[0]), twin(fence, changes=changes[1]))
    return Scenario(writers, (0, 0), 1, start)


def twins_and_retry(fence: FenceKind, start: Start = "A") -> Scenario:
    """Two deliveries of one attempt, and the next attempt."""
    return Scenario((attempt(1, fence), twin(fence), attempt(2, fence)), (0, 0, 1), 2, start)


def strangers(fence: FenceKind, start: Start = "A") -> Scenario:
    """One attempt each of two workflows that were given the same A."""
    return Scenario((attempt(1, fence), stranger(fence)), (0, 1), 1, start)


def retries_and_stranger(fence: FenceKind, start: Start = "A") -> Scenario:
    """Two attempts of a step, and an attempt of another workflow on the same branch."""
    return Scenario((attempt(1, fence), attempt(2, fence), stranger(fence)), (0, 1, 2), 2, start)


def steps(fence: FenceKind, start: Start = "A", changes: Changes = (True, True, True)) -> Scenario:
    """Two attempts of a step, then a later step of the same workflow that was given the same A."""
    later = Writer("s", LATER_STEP, fence, "the later step", changes[2])
    first = retries(fence, start, changes[:2])
    return replace(first, writers=(*first.writers, later), tasks=(0, 1, 2), then=2)


def with_ledger(scenario: Scenario) -> Scenario:
    """Give every writer the same ledger, which always answers (K5)."""
    writers = tuple(replace(writer, keeps_ledger=True) for writer in scenario.writers)
    return replace(scenario, writers=writers)
