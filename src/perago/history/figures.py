"""How the attempts of each task went, in numbers: what ``perago report`` shows."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field

from perago.history.rows import AttemptRow
from perago.protocol.advice import Advice, Observed, advise, percentile
from perago.protocol.values import Phase, Status

SHARES = (0.5, 0.9, 0.99)
WRITES = frozenset({"merge", "replace", "relocate"})
"""The decisions that move a branch; to keep it asks nothing of the server."""
COUNTS: Mapping[str, str] = {
    "completed": f"status = '{Status.COMPLETED}'",
    "failed": f"status NOT IN ('{Status.COMPLETED}', 'DIED', 'LOST')",
    "died": "status = 'DIED'",
    "lost": "status = 'LOST'",
    "retries": "retry > 0",
    "refused": "refused",
    "merged": "kind = 'merge' AND ref IS NOT NULL",
    "replaced": "kind IN ('replace', 'relocate') AND ref IS NOT NULL",
    "kept": "kind = 'keep' AND ref IS NOT NULL",
}
"""What is counted of the attempts of a task, as a condition of SQL."""


@dataclass(frozen=True, slots=True)
class AttemptFilter:
    """Which attempts count; an empty field leaves none out."""

    task: str = ""
    store: str = ""
    repository: str = ""
    since: float = 0.0

    def equal(self) -> dict[str, str]:
        """Return the columns that have to hold one value."""
        wanted = {"task": self.task, "store": self.store, "repository": self.repository}
        return {column: value for column, value in wanted.items() if value}

    def takes(self, row: AttemptRow) -> bool:
        """Return whether an attempt counts."""
        columns = self.equal().items()
        return row.started_at >= self.since and all(getattr(row, c) == v for c, v in columns)


@dataclass(frozen=True, slots=True)
class Spread:
    """How some seconds are spread."""

    count: int
    p50: float
    p90: float
    p99: float
    longest: float


@dataclass(frozen=True, slots=True)
class Tallies:
    """How often what happened, and how much was moved; the names are those of ``COUNTS``."""

    attempts: int = 0
    completed: int = 0
    failed: int = 0
    died: int = 0
    lost: int = 0
    retries: int = 0
    refused: int = 0
    merged: int = 0
    replaced: int = 0
    kept: int = 0
    bytes_read: int = 0
    bytes_written: int = 0


@dataclass(frozen=True, slots=True)
class TaskFigures:
    """One task."""

    task: str
    tallies: Tallies
    publish: Spread | None
    after_body: Spread | None = None
    phases: Mapping[str, Spread] = field(default_factory=dict)

    @property
    def advice(self) -> Advice | None:
        """Recommend a budget from what was seen."""
        if self.publish is None:
            return None
        report = self.phases.get(Phase.REPORT.value)
        return advise(
            Observed(
                publications=self.publish.count,
                publish_p99=self.publish.p99,
                publish_longest=self.publish.longest,
                report_p99=report.p99 if report else 0.0,
                after_body_p99=self.after_body.p99 if self.after_body else 0.0,
            )
        )

    def as_json(self) -> dict[str, object]:
        """Return all of it as plain values."""
        advice = self.advice
        return {
            "task": self.task,
            **asdict(self.tallies),
            "publish": asdict(self.publish) if self.publish else None,
            "phases": {name: asdict(spread) for name, spread in self.phases.items()},
            "budget": asdict(advice.budget) if advice else None,
            "certain": advice.certain if advice else None,
        }


def spread(seconds: Iterable[float]) -> Spread | None:
    """Measure the spread; None of nothing."""
    ordered = sorted(seconds)
    if not ordered:
        return None
    p50, p90, p99 = (percentile(ordered, share) for share in SHARES)
    return Spread(len(ordered), p50, p90, p99, ordered[-1])


def figures(rows: Iterable[AttemptRow]) -> list[TaskFigures]:
    """Add executions up, task by task; of each only its seconds stay in memory."""
    tasks: dict[str, _Sum] = defaultdict(_Sum)
    for row in rows:
        tasks[row.task].add(row)
    return [tasks[task].figures(task) for task in sorted(tasks)]


def in_order(phases: Mapping[str, Spread]) -> dict[str, Spread]:
    """Sort phases as an attempt goes through them."""
    return {phase.value: phases[phase.value] for phase in Phase if phase.value in phases}


class _Sum:
    """What is known of one task so far."""

    def __init__(self) -> None:
        self._counted: Counter[str] = Counter()
        self._publish, self._after_body = array("d"), array("d")
        self._phases: dict[str, array[float]] = defaultdict(lambda: array("d"))

    def add(self, row: AttemptRow) -> None:
        self._counted.update(_counted(row))
        self._counted["bytes_read"] += row.bytes_read or 0
        self._counted["bytes_written"] += row.bytes_written or 0
        if row.publish_seconds is not None and row.kind in WRITES:
            self._publish.append(row.publish_seconds)
        if row.after_body_seconds is not None:
            self._after_body.append(row.after_body_seconds)
        for name, seconds in row.phases.items():
            self._phases[name].append(seconds)

    def figures(self, task: str) -> TaskFigures:
        spreads = {name: spread(seconds) for name, seconds in self._phases.items()}
        return TaskFigures(
            task=task,
            tallies=Tallies(**self._counted),
            publish=spread(self._publish),
            after_body=spread(self._after_body),
            phases=in_order({name: found for name, found in spreads.items() if found}),
        )


def _counted(row: AttemptRow) -> Iterator[str]:
    """Name the tallies that an execution belongs to; ``COUNTS`` says the same in SQL."""
    yield "attempts"
    ends = {Status.COMPLETED.value: "completed", "DIED": "died", "LOST": "lost"}
    yield ends.get(row.status, "failed")
    if row.retry > 0:
        yield "retries"
    if row.refused:
        yield "refused"
    moves = {"merge": "merged", "replace": "replaced", "relocate": "replaced", "keep": "kept"}
    if row.ref is not None and row.kind in moves:
        yield moves[row.kind]
