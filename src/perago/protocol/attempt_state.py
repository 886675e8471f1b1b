"""Where an attempt stands: one fold of its events, for the log, the worker and the screen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from perago.protocol import events
from perago.protocol.values import Status

STARTING_SPARK: Final = "starting Spark"
"""Told as a phase of its own, before the one in which Spark was first asked for."""
_MOST_PHASES: Final = 100
"""Several times what an attempt goes through: an executor runs code of others and may send any."""


@dataclass(frozen=True, slots=True)
class PhaseTime:
    """One phase of an execution; ``seconds`` is None when it did not come to its end."""

    name: str
    began: float
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class AttemptState:
    """What the events so far say of one execution; of bounded size, however many there are."""

    phases: tuple[PhaseTime, ...] = ()
    starting_spark: bool = False
    claimed: events.Claimed | None = None
    downloaded: events.Downloaded | None = None
    changed: events.Changed | None = None
    uploaded: events.Uploaded | None = None
    decision: events.PublicationDecided | None = None
    decided_at: float | None = None
    applied: events.Applied | None = None
    published: events.PublicationVerified | None = None
    adopted: events.Adopted | None = None
    outcome: events.OutcomeDecided | None = None
    traceback: events.Traceback | None = None
    completion_lost: events.CompletionLost | None = None
    reported: bool = False

    def after(self, event: events.Event, at: float) -> AttemptState:
        """Return the state after the next event, which happened at that time."""
        changed: dict[str, Any] = {}
        match event:
            case events.PhaseBegan(phase):
                changed["phases"] = (*self.phases[-_MOST_PHASES:], PhaseTime(str(phase), at))
            case events.PhaseEnded(_, seconds) if self.phases:
                *before, last = self.phases
                changed["phases"] = (*before, replace(last, seconds=seconds or 0.0))
                changed["reported"] = self.reported or event.last
            case events.SparkStarting():
                changed["starting_spark"] = True
            case events.SparkStarted(seconds):
                # Before the phase that is still open: that one's seconds do not count it.
                place = max(0, len(self.phases) - 1)
                start = PhaseTime(STARTING_SPARK, at, seconds)
                phases = (*self.phases[:place], start, *self.phases[place:])
                changed["phases"] = phases[-_MOST_PHASES:]
                changed["starting_spark"] = False
            case events.PublicationDecided():
                changed |= {"decision": event, "decided_at": at}
            case _ if attribute := _KEPT.get(type(event)):
                changed[attribute] = event
        return replace(self, **changed) if changed else self

    @property
    def phase(self) -> str:
        """The phase that has begun and not ended; empty between phases."""
        return self.phases[-1].name if self.phases and self.phases[-1].seconds is None else ""

    @property
    def last_phase(self) -> str:
        """The phase that began last; empty before the first."""
        return self.phases[-1].name if self.phases else ""

    @property
    def seconds(self) -> dict[str, float]:
        """How long each finished phase took."""
        return {one.name: one.seconds for one in self.phases if one.seconds is not None}

    @property
    def spark_seconds(self) -> float:
        """How long Spark took to start; 0 where it was not started."""
        return self.seconds.get(STARTING_SPARK, 0.0)

    @property
    def completed(self) -> bool:
        """Whether it succeeded."""
        return self.outcome is not None and self.outcome.status == Status.COMPLETED

    @property
    def failed_in(self) -> str:
        """The phase in which it failed or died; empty where it did not."""
        if self.outcome is not None and self.outcome.phase:
            return self.outcome.phase
        return next((one.name for one in self.phases if one.seconds is None), "")

    @property
    def ref(self) -> str:
        """The commit that it leaves on the branch; empty where it moved nothing."""
        found = self.published or self.adopted or self.applied
        return found.ref if found else ""

    @property
    def summary(self) -> dict[str, object]:
        """What was moved and decided, as plain values."""
        found: dict[str, object] = {}
        if (change := self.changed) is not None:
            found |= zip(("added", "changed", "removed"), change.counts, strict=True)
        for moved in (self.downloaded, self.uploaded):
            if moved is not None:
                found[moved.title] = moved.facts
        if self.decision is not None:
            found["decision"] = self.decision.kind
        if self.published is not None:
            found["ref"] = self.published.ref
        return found


_KEPT: Final[Mapping[type[events.Event], str]] = {
    events.Claimed: "claimed",
    events.Downloaded: "downloaded",
    events.Changed: "changed",
    events.Uploaded: "uploaded",
    events.Applied: "applied",
    events.PublicationVerified: "published",
    events.Adopted: "adopted",
    events.OutcomeDecided: "outcome",
    events.Traceback: "traceback",
    events.CompletionLost: "completion_lost",
}
"""Events that are kept as they are, the last of each kind."""
