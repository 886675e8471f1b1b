"""What an attempt says of itself: one type for each event, with its severity.

Between processes and in the event log an event is its name and its facts: both are a stored
format, which :mod:`perago.protocol.event_format` reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, ClassVar, Final

from perago.protocol.values import Phase


class Severity(StrEnum):
    """How much an event matters to whoever operates a worker."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Event:
    """The base of all events; what a subclass says of itself holds for all of its kind."""

    NAME: ClassVar[str] = ""
    SEVERITY: ClassVar[Severity] = Severity.INFO
    DURABLE: ClassVar[bool] = False
    """Whether it is on disk before the attempt goes on: others may see its effect, or ask."""
    SETTLES: ClassVar[bool] = False
    """Whether the event log can change nothing from here on, so that nothing waits long for it."""

    @property
    def title(self) -> str:
        """Its name in the event log."""
        return self.NAME

    @property
    def durable(self) -> bool:
        """Whether it is on disk before the attempt goes on."""
        return self.DURABLE

    @property
    def settles(self) -> bool:
        """Whether the event log can change nothing from here on."""
        return self.SETTLES

    @property
    def last(self) -> bool:
        """Whether it is the last event of an attempt, or may be."""
        return False

    @property
    def facts(self) -> dict[str, Any]:
        """What is recorded with it; what there is none of is left out."""
        named = ((one, getattr(self, one.name)) for one in fields(self))
        return {
            one.name: value
            for one, value in named
            if value not in (None, ()) or one.default not in (None, ())
        }


# --- phases ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PhaseBegan(Event):
    """A phase began. A phase that failed has no end."""

    phase: Phase

    @property
    def title(self) -> str:
        """Its name in the event log."""
        return f"before {self.phase}"

    @property
    def durable(self) -> bool:
        """Whether it may take long, or end the process: whoever looks sees how far it came."""
        return self.phase in {Phase.DOWNLOAD, Phase.BODY}

    @property
    def settles(self) -> bool:
        """Whether only the report is left."""
        return self.phase is Phase.REPORT

    @property
    def facts(self) -> dict[str, Any]:
        """Nothing: the name says the phase."""
        return {}


@dataclass(frozen=True, slots=True)
class PhaseEnded(Event):
    """A phase came to its end, and took so long without the start of Spark in it."""

    phase: Phase
    seconds: float | None = None

    @property
    def title(self) -> str:
        """Its name in the event log."""
        return f"after {self.phase}"

    @property
    def durable(self) -> bool:
        """Whether the attempt is over."""
        return self.last

    @property
    def last(self) -> bool:
        """Whether the attempt is over."""
        return self.phase is Phase.REPORT

    @property
    def facts(self) -> dict[str, Any]:
        """How long it took."""
        return {} if self.seconds is None else {"seconds": self.seconds}


# --- inside of phases, in order -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Claimed(Event):
    """The attempt was handed out."""

    NAME = "claimed"
    task: str = ""
    workspace: Mapping[str, object] | None = None
    store: str | None = None


@dataclass(frozen=True, slots=True)
class Downloaded(Event):
    """All files of the input are there and verified."""

    NAME = "downloaded"
    files: int = 0
    bytes: int = 0
    seconds: float = 0.0
    bytes_per_second: float = 0.0


@dataclass(frozen=True, slots=True)
class Changed(Event):
    """The output was compared with the input; long lists are cut in the log."""

    NAME = "changed"
    added: Sequence[str]
    changed: Sequence[str]
    removed: Sequence[str]

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many paths were added, changed and removed."""
        return _count(self.added), _count(self.changed), _count(self.removed)


@dataclass(frozen=True, slots=True)
class BranchCreated(Event):
    """The staging branch exists."""

    NAME = "branch created"
    DURABLE = True
    branch: str = ""
    base: str = ""


@dataclass(frozen=True, slots=True)
class Uploaded(Event):
    """The changed files are on the staging branch."""

    NAME = "uploaded"
    files: int = 0
    bytes: int = 0
    deleted: int = 0
    seconds: float = 0.0
    bytes_per_second: float = 0.0


@dataclass(frozen=True, slots=True)
class Committed(Event):
    """The staging commit exists."""

    NAME = "committed"
    commit: str = ""


@dataclass(frozen=True, slots=True)
class PublicationDecided(Event):
    """It is decided what will be done to the target branch (section 8)."""

    NAME = "decision"
    DURABLE = True
    kind: str = ""
    repository: str = ""
    branch: str = ""
    head: str = ""
    store: str | None = None


@dataclass(frozen=True, slots=True)
class Applied(Event):
    """The store moved the branch."""

    NAME = "applied"
    DURABLE = True
    SETTLES = True
    ref: str = ""


@dataclass(frozen=True, slots=True)
class PublicationVerified(Event):
    """The publication was read back and is what was decided."""

    NAME = "published"
    DURABLE = True
    SETTLES = True
    ref: str = ""
    fence: str = ""


# --- what depends on what happens -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SparkStarting(Event):
    """Spark was asked for and is not running: a JVM is started."""

    NAME = "spark starting"
    DURABLE = True


@dataclass(frozen=True, slots=True)
class SparkStarted(Event):
    """Spark runs; the seconds do not count as those of the phase it was started in."""

    NAME = "spark started"
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class LeftoversRemoved(Event):
    """What Spark left beside data was removed and is not published."""

    NAME = "leftovers removed"
    count: int
    paths: Sequence[str]


@dataclass(frozen=True, slots=True)
class GuardAsked(Event):
    """A guardrail answered; ``violation`` is None where it holds."""

    NAME = "guard"
    phase: str
    guard: str
    violation: str | None
    table: str | None = None
    rows: int | None = None
    offending: int | None = None
    samples: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class MetricRecorded(Event):
    """The body recorded a number."""

    NAME = "metric"
    kind: str
    name: str
    value: float
    labels: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Adopted(Event):
    """The attempt completes with what an earlier execution of its step published (K5)."""

    NAME = "adopted"
    ref: str = ""
    execution: str = ""
    task_id: str = ""
    retry_count: int | None = None


@dataclass(frozen=True, slots=True)
class NotAdopted(Event):
    """The ledger knows executions of this step, and none whose publication may be adopted."""

    NAME = "not adopted"
    head: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class OutcomeUnknown(Event):
    """The answer to a publication was lost."""

    NAME = "outcome unknown"
    SEVERITY = Severity.WARNING
    DURABLE = True
    SETTLES = True
    why: str = ""


@dataclass(frozen=True, slots=True)
class Warned(Event):
    """Something failed that does not change the result, cleaning up for instance."""

    NAME = "warning"
    SEVERITY = Severity.WARNING
    DURABLE = True
    text: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Traceback(Event):
    """The attempt failed with an error that is not Perago's own."""

    NAME = "traceback"
    SEVERITY = Severity.ERROR
    DURABLE = True
    SETTLES = True
    text: str = ""


@dataclass(frozen=True, slots=True)
class OutcomeDecided(Event):
    """The outcome is certain; what is left is to clean up and to report."""

    NAME = "decided"
    DURABLE = True
    SETTLES = True
    status: str
    reason: str = ""
    output: Mapping[str, object] = field(default_factory=dict)
    phase: str | None = None
    """The phase that failed, if one did."""
    refused_by: str | None = None
    """The fence that refused it, if one did: ``attempt`` or ``publish``."""


@dataclass(frozen=True, slots=True)
class CompletionLost(Event):
    """The broker did not want the result any more (R2)."""

    NAME = "lost completion"
    SEVERITY = Severity.WARNING
    DURABLE = True
    status: str = ""
    output: Mapping[str, object] = field(default_factory=dict)

    @property
    def last(self) -> bool:
        """It may come after the report."""
        return True


@dataclass(frozen=True, slots=True)
class Moved(Event):
    """So many bytes of a transfer have moved; told to whoever watches, never recorded."""

    NAME = "progress"
    phase: str = ""
    done: int = 0
    total: int = 0


@dataclass(frozen=True, slots=True)
class UnknownEvent(Event):
    """Something that this version does not understand."""

    what: str = ""
    said: Mapping[str, object] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Its name in the event log."""
        return self.what

    @property
    def facts(self) -> dict[str, Any]:
        """Whatever was recorded with it."""
        return dict(self.said)


_CUT: Final = re.compile(r"\.\.\. (\d+) more")


def warning_of(event: Event) -> str:
    """Say in one line what an event warns of; nothing of one that is no warning."""
    if event.SEVERITY is not Severity.WARNING:
        return ""
    text, why = event.facts.get("text") or event.title, event.facts.get("why")
    return f"{text}: {why}" if why else str(text)


def cut(values: Sequence[object], most: int) -> list[object]:
    """Shorten a list for the log; its length can still be told."""
    if len(values) <= most:
        return list(values)
    return [*values[:most], f"... {len(values) - most} more"]


def _count(paths: Sequence[str]) -> int:
    """Count the paths of a list that may have been cut."""
    more = _CUT.fullmatch(paths[-1]) if paths else None
    return len(paths) - 1 + int(more[1]) if more else len(paths)
