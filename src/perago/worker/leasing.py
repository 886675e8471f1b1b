"""Keeps the lease of every claim from the first byte to the report (W4).

Each heartbeat reads the task first: the answer to an extension says nothing (R2).
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Final

from perago.brokers.conductor.client import ConductorClient
from perago.brokers.conductor.mapping import snapshot_of
from perago.errors import PeragoError, StaleAttemptError
from perago.ports import Clock
from perago.protocol.fence import assert_current_attempt_snapshot
from perago.protocol.outcome import describe
from perago.protocol.values import Claim
from perago.worker.background_pool import BackgroundPool

RELEASE_SECONDS: Final = 15.0
"""Longer than any heartbeat takes with all its tries."""
_THREADS: Final = 3
_IDLE_SECONDS: Final = 60.0

OnLost = Callable[[str, str], None]
"""Called with an execution id and the reason why it counts no more."""


@dataclass(slots=True, eq=False)
class Lease:
    """One claim that is kept alive."""

    claim: Claim
    worker_id: str
    every_seconds: float
    beats: int = 0
    beating: bool = False


class LeaseKeeper:
    """One thread that knows when, and a few that ask; used from any thread."""

    def __init__(
        self, client: ConductorClient, clock: Clock, on_lost: OnLost, on_error: OnLost
    ) -> None:
        self._client = client
        self._clock = clock
        self._on_lost = on_lost
        self._on_error = on_error
        self._leases: dict[str, Lease] = {}
        self._due: list[tuple[float, int, str]] = []
        self._number = count()
        self._changed = threading.Condition()
        self._closed = False
        self._background = BackgroundPool(
            "beat", _THREADS, lambda error: on_error("", describe(error))
        )
        self._thread = threading.Thread(target=self._run, name="perago-leases", daemon=True)
        self._thread.start()

    def hold(self, claim: Claim, worker_id: str, every_seconds: float) -> None:
        """Keep the lease of a claim until it is let go."""
        with self._changed:
            self._leases[claim.execution_id] = Lease(claim, worker_id, every_seconds)
            if self._plan(claim.execution_id, every_seconds):
                self._changed.notify_all()

    def let_go(self, execution_id: str) -> None:
        """Stop; the lease is over."""
        with self._changed:
            self._leases.pop(execution_id, None)

    def release(self, execution_id: str, timeout_seconds: float = RELEASE_SECONDS) -> None:
        """Stop, and wait for a heartbeat under way: none may cross the result.

        The server reads, changes and writes a task without a lock: an extension that read it
        before a completion and writes it afterwards would turn the completion back.
        """
        with self._changed:
            lease = self._leases.pop(execution_id, None)
            if lease is not None:
                self._changed.wait_for(lambda: not lease.beating, timeout_seconds)

    def named(self, execution_id: str, worker_id: str) -> None:
        """Say which executor took the claim."""
        with self._changed:
            if lease := self._leases.get(execution_id):
                lease.worker_id = worker_id

    def close(self, timeout_seconds: float) -> None:
        """Stop all of it."""
        with self._changed:
            self._closed = True
            self._leases.clear()
            self._changed.notify_all()
        self._thread.join(timeout_seconds)
        self._background.close(timeout_seconds)

    # --- the threads ---------------------------------------------------------------------------

    def _run(self) -> None:
        with self._changed:
            while not self._closed:
                now = self._clock.monotonic()
                wait = self._due[0][0] - now if self._due else _IDLE_SECONDS
                if wait > 0:
                    self._changed.wait(wait)
                    continue
                _, _, execution_id = heapq.heappop(self._due)
                lease = self._leases.get(execution_id)
                if lease is None:
                    continue
                self._plan(execution_id, lease.every_seconds)
                if not lease.beating:  # A slow answer must not make a queue of questions.
                    lease.beating = True
                    self._background.do(lambda lease=lease: self._beat(lease))  # type: ignore[misc]

    def _plan(self, execution_id: str, seconds: float) -> bool:
        """Plan a heartbeat; True when it is the next of all."""
        entry = (self._clock.monotonic() + seconds, next(self._number), execution_id)
        heapq.heappush(self._due, entry)
        return self._due[0] is entry

    def _beat(self, lease: Lease) -> None:
        attempt = lease.claim.attempt
        try:
            if not self._holds(lease):  # It waited for its turn longer than its claim ran.
                return
            fresh = snapshot_of(attempt, self._client.task(attempt.task_id))
            assert_current_attempt_snapshot(attempt, fresh)
            if lease.claim.lease_seconds and self._holds(lease):
                self._client.extend(attempt, lease.worker_id)
            lease.beats += 1
        except StaleAttemptError as error:
            self._on_lost(lease.claim.execution_id, error.message)
        except PeragoError as error:
            self._on_error(lease.claim.execution_id, str(error))
        finally:
            with self._changed:
                lease.beating = False
                self._changed.notify_all()

    def _holds(self, lease: Lease) -> bool:
        return self._leases.get(lease.claim.execution_id) is lease
