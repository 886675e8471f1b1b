"""What a pool tells its owner, and what every pool can do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from perago.errors import PeragoError
from perago.protocol.outcome import Outcome
from perago.protocol.values import Claim
from perago.tasks.cancellation import CancellationToken

Body = dict[str, object]
Send = Callable[[Body], None]
"""Sends a message from an executor to the owner of the pool; what is not JSON arrives as text."""
Work = Callable[[Claim], Outcome]


class ExecutorChannel(Protocol):
    """An executor's line to its owner: what it says, and what it is told."""

    @property
    def number(self) -> int:
        """Return the executor's place in the pool, from 1; its successor has the same."""

    @property
    def token(self) -> CancellationToken:
        """Return the token of the claim that runs now."""

    def __call__(self, body: Body) -> None:
        """Send a message; many short ones in a row may travel together."""


Make = Callable[[ExecutorChannel], Work]
"""Called once in each executor; it imports what the tasks need and returns what runs a claim."""


@dataclass(frozen=True, slots=True)
class Message:
    """Something an executor said; ``execution_id`` is empty between attempts."""

    executor_id: str
    execution_id: str
    body: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Output:
    """One line an executor wrote to stdout or stderr, without its line end."""

    executor_id: str
    execution_id: str
    stream: str
    line: str


@dataclass(frozen=True, slots=True)
class Finished:
    """An execution ended and its executor is free again."""

    executor_id: str
    execution_id: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Died:
    """An executor is gone and has been reaped; ``execution_id`` is empty when it was idle."""

    executor_id: str
    execution_id: str
    how: str


@dataclass(frozen=True, slots=True)
class StartFailed:
    """No executor can be started: the same would happen again. ``detail`` is for a log."""

    error: PeragoError
    detail: str = ""


Report = Message | Output | Finished | Died | StartFailed


@dataclass(frozen=True, slots=True)
class ExecutorState:
    """An executor as it stands; times are monotonic, ``pid`` is 0 for a thread."""

    executor_id: str
    number: int
    pid: int
    ready: bool
    execution_id: str
    born: float
    heard: float
    """When it last gave a sign of life."""
    attempts: int


class Executors(Protocol):
    """A pool of executors, one attempt at a time each. One thread owns it."""

    @property
    def idle(self) -> tuple[str, ...]:
        """Return the ids of executors that are ready for a claim now."""

    def want(self, count: int) -> None:
        """See to it that this many executors exist or are starting, up to the pool's size."""

    def submit(self, claim: Claim, executor_id: str) -> None:
        """Give a claim to an idle executor."""

    def poll(self, timeout_seconds: float) -> list[Report]:
        """Wait for reports; may return early and empty, for instance when one became idle."""

    def kill(self, execution_id: str) -> bool:
        """End an execution at once and reap its executor; False when it does not run here."""

    def wake(self) -> None:
        """Make ``poll`` return; safe from a signal handler or another thread."""

    def close(self, grace_seconds: float = 0.0) -> None:
        """Let running attempts end for a while, then kill; a second time is fine."""


class WatchedExecutors(Executors, Protocol):
    """A pool whose owner also looks after the executors themselves."""

    def cancel(self, execution_id: str) -> bool:
        """Tell an execution that it is no longer wanted; False when it does not run here."""

    def end(self, executor_id: str) -> bool:
        """End an executor at once, whatever it does, and have it replaced without back-off."""

    def look(self) -> list[ExecutorState]:
        """Return every executor there is, by number."""
