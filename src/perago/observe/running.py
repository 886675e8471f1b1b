"""Attempts as a supervisor hears of them: which phase each is in, and how each one ended.

One worker id runs one attempt at a time; those before it may still be on their way to the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from perago.protocol.values import Claim, Phase, Status

DIED: Final = "DIED"
"""The status of an attempt whose executor did not live to report it."""
_ENDS_THE_ATTEMPT: Final = frozenset({"executor died", "executor killed"})
"""What the worker itself says when an attempt will not come to its own end."""
_ATTEMPT_FENCES: Final = frozenset({Phase.FENCE_ONE, Phase.FENCE_TWO})
_FENCES: Final = {
    "StaleAttemptError": "attempt",
    "PublishFenceError": "publish",
    "LostRaceError": "publish",
}


@dataclass(slots=True)
class Running:
    """An attempt under way."""

    claim: Claim
    worker_id: str
    since: float
    phase: str = ""
    """The phase that has begun and not ended."""
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each finished phase took."""
    status: str = ""
    reason: str = ""
    failed_in: str = ""
    facts: dict[str, object] = field(default_factory=dict)
    """What was moved and decided."""


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt that is over, from its claim to its report."""

    run: Running
    seconds: float

    @property
    def completed(self) -> bool:
        """Tell whether it succeeded."""
        return self.run.status == Status.COMPLETED


class Attempts:
    """The attempts of one supervisor; feed it every event, it says when one has ended."""

    def __init__(self) -> None:
        self._running: dict[str, Running] = {}

    @property
    def running(self) -> list[Running]:
        """Return those under way; may be asked from any thread."""
        return list(self._running.values())

    def event(
        self, claim: Claim, worker_id: str, name: str, facts: Mapping[str, object], now: float
    ) -> list[Ended]:
        """Take one event of an attempt's journal."""
        ended = []
        run = self._running.get(claim.execution_id)
        if run is None:
            if name != "claimed":
                return []  # The tail of one that was ended already.
            ended = [
                self._end(other, now, DIED, "nothing more is known of it")
                for other in self.running
                if other.worker_id == worker_id and not other.status
            ]
            run = self._running[claim.execution_id] = Running(claim, worker_id, now)
        _follow(run, name, facts)
        if name == f"after {Phase.REPORT}":
            ended.append(self._end(run, now, run.status, run.reason))
        return ended

    def worker(self, name: str, facts: Mapping[str, object], now: float) -> list[Ended]:
        """Take one event of the worker; some end an attempt."""
        if name not in _ENDS_THE_ATTEMPT:
            return []
        execution_id, worker_id = facts.get("execution_id"), facts.get("worker_id")
        return [
            self._end(run, now, DIED, str(facts.get("how") or facts.get("why") or name))
            for run in self.running
            if run.claim.execution_id == execution_id
            or (run.worker_id == worker_id and not run.status)
        ]

    def _end(self, run: Running, now: float, status: str, reason: str) -> Ended:
        self._running.pop(run.claim.execution_id, None)
        if status == DIED:
            run.failed_in = run.phase
        run.status, run.reason = status, reason
        return Ended(run, now - run.since)


def fence_of(phase: str, reason: str) -> str | None:
    """Say which fence refused an attempt that failed, or None: ``attempt`` or ``publish``."""
    kind = reason.removeprefix(f"{phase}: ").partition(":")[0]
    if kind == "BrokerUnavailableError" and phase in _ATTEMPT_FENCES:
        return "attempt"  # F2: if the broker cannot be asked, the answer is no.
    return _FENCES.get(kind)


def _follow(run: Running, name: str, facts: Mapping[str, object]) -> None:
    if name.startswith("before "):
        run.phase = name.removeprefix("before ")
    elif name.startswith("after "):
        seconds = facts.get("seconds")
        if isinstance(seconds, int | float):
            run.seconds[run.phase] = float(seconds)
        run.phase = ""
    elif name == "decided":
        run.status, run.reason = str(facts.get("status", "")), str(facts.get("reason") or "")
        if run.status != Status.COMPLETED:
            run.failed_in = run.phase or run.reason.partition(":")[0]
    else:
        _remember(run.facts, name, facts)


def _remember(kept: dict[str, object], name: str, facts: Mapping[str, object]) -> None:
    if name == "changed":
        for kind in ("added", "changed", "removed"):
            paths = facts.get(kind)
            kept[kind] = len(paths) if isinstance(paths, list | tuple) else 0
    elif name in {"downloaded", "uploaded"}:
        kept[name] = dict(facts)
    elif name == "decision":
        kept["decision"] = facts.get("kind")
    elif name == "published":
        kept["ref"] = facts.get("ref")
