"""All that one execution is given of the world outside."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from perago.ports import AttemptDirs, Broker, Clock, Engines, Journal, Ledger, Programs, Store
from perago.prefetch import Prefetch, when_needed
from perago.protocol.values import Staging


@dataclass(frozen=True, slots=True)
class AttemptServices:
    """The outside world of one execution."""

    store: Store
    broker: Broker
    attempt_dirs: AttemptDirs
    clock: Clock
    journal: Journal
    engines: Engines = field(kw_only=True)
    programs: Programs = field(kw_only=True)
    ledger: Ledger | None = field(default=None, kw_only=True)
    prefetch: Prefetch = field(default=when_needed, kw_only=True)
    """When H is read for the first time: with the staging commit, or after it."""
    drop: Callable[[Staging], None] | None = field(default=None, kw_only=True)
    """Has another process remove a staging branch before the report; else the store does it."""
    reason_limit: int = 500
    output_limit: int | None = None
    cleanup_seconds: float = 30.0
    cancelled: Callable[[], bool] = lambda: False
    """Whether somebody outside knows that the attempt was lost (W4)."""
    around_body: Callable[[], AbstractContextManager[None]] = nullcontext
    """What watches over the author's code while it runs."""
