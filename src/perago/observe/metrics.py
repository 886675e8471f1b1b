"""A worker's metrics: counted in the supervisor, from the events of all its executors (W8).

One process counts for all, so the numbers are right however many executors there are and however
often one of them dies.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

from perago.observe.running import Attempts, Ended
from perago.observe.telemetry import Warn, attempt_to, installed
from perago.protocol.events import (
    CompletionLost,
    Downloaded,
    Event,
    MetricRecorded,
    PhaseEnded,
    PublicationDecided,
    Uploaded,
)
from perago.protocol.values import Claim, Phase
from perago.protocol.worker_events import WorkerEvent
from perago.settings import Settings
from perago.tasks.spec import MetricSpec

if TYPE_CHECKING:
    from perago.observe.instruments import Instruments

_ALL: Final = MetricSpec()
_IO: Final = {Phase.DOWNLOAD: "download", Phase.STAGE: "upload"}
_COUNTED: Final[Mapping[WorkerEvent, tuple[str, Mapping[str, str]]]] = {
    WorkerEvent.POLL_FAILED: ("perago.polls", {"result": "error"}),
    WorkerEvent.EXECUTOR_DIED: ("perago.executor.deaths", {"kind": "died"}),
    WorkerEvent.EXECUTOR_KILLED: ("perago.executor.deaths", {"kind": "killed"}),
    WorkerEvent.EXECUTOR_STARTED: ("perago.executor.starts", {}),
    WorkerEvent.HEARTBEAT_FAILED: ("perago.heartbeats.failed", {}),
    WorkerEvent.ATTEMPT_LOST: ("perago.attempts.lost", {}),
}
_WITHOUT: Final = b"# install 'perago[otel]' for metrics\n"


class MetricsWatcher(Protocol):
    """A watcher that also renders what it counted."""

    def event(self, claim: Claim, worker_id: str, event: Event) -> None:
        """Hear a point of an attempt's journal."""

    def output(self, claim: Claim | None, worker_id: str, stream: str, line: str) -> None:
        """Hear a line that was printed."""

    def worker(self, event: WorkerEvent, facts: Mapping[str, object]) -> None:
        """Hear what the worker does."""

    def close(self, timeout_seconds: float) -> None:
        """Send the last numbers."""

    def page(self) -> tuple[str, bytes]:
        """Render for ``/metrics``: the type of the content, and the content."""


def start(
    settings: Settings, tasks: Mapping[str, MetricSpec], slots: int, warn: Warn
) -> MetricsWatcher:
    """Get ready to count; without the extra there is a page that says so."""
    if not installed():
        return NoMetrics()
    attempts = Attempts()

    def busy() -> Mapping[str, int]:
        known = {name: 0 for name, spec in tasks.items() if spec.worker_capacity}
        return known | Counter(
            name for run in attempts.running if (name := run.claim.attempt.task_def_name) in known
        )

    def make() -> Metrics:
        from perago.observe.instruments import Instruments  # noqa: PLC0415 - needs the extra

        return Metrics(Instruments(settings, slots, busy, warn), tasks, attempts)

    return attempt_to(make, "metrics", warn) or NoMetrics()


class NoMetrics:
    """What there is without OpenTelemetry."""

    def event(self, claim: Claim, worker_id: str, event: Event) -> None:
        """Count nothing."""

    def output(self, claim: Claim | None, worker_id: str, stream: str, line: str) -> None:
        """Count nothing."""

    def worker(self, event: WorkerEvent, facts: Mapping[str, object]) -> None:
        """Count nothing."""

    def close(self, timeout_seconds: float) -> None:
        """Do nothing."""

    def page(self) -> tuple[str, bytes]:
        """Return what is missing."""
        return "text/plain; charset=utf-8", _WITHOUT


class Metrics(NoMetrics):
    """Turns events into numbers; a task's ``MetricSpec`` says which groups it wants."""

    def __init__(
        self, instruments: Instruments, tasks: Mapping[str, MetricSpec], attempts: Attempts
    ) -> None:
        self._instruments = instruments
        self._tasks = tasks
        self._attempts = attempts

    def event(self, claim: Claim, worker_id: str, event: Event) -> None:
        """Count one point of an attempt."""
        task = claim.attempt.task_def_name
        spec = self._tasks.get(task, _ALL)
        ended = self._attempts.event(claim, worker_id, event, time.monotonic())
        match event:
            case PhaseEnded(phase, seconds):
                self._phase(task, spec, phase, seconds or 0.0)
            case Downloaded(files, size):
                self._moved(task, spec, "download", files, size)
            case Uploaded(files, size, deleted):
                self._moved(task, spec, "upload", files, size, deleted)
            case MetricRecorded(kind, name, value, labels):
                given = {str(key): str(text) for key, text in labels.items()}
                self._instruments.author(kind, name, value, {"task": task, **given})
            case PublicationDecided(kind) if spec.attempts:
                self._instruments.count("perago.publications", {"task": task, "kind": kind})
            case CompletionLost() if spec.attempts:
                self._instruments.count("perago.completions.lost", {"task": task})
        for each in ended:
            self._ended(each)

    def worker(self, event: WorkerEvent, facts: Mapping[str, object]) -> None:
        """Count what the worker does."""
        if event is WorkerEvent.POLLED:
            found = "work" if facts.get("found") else "empty"
            self._instruments.count("perago.polls", {"result": found})
        elif event in _COUNTED:
            self._instruments.count(*_COUNTED[event])
        for each in self._attempts.worker(event, facts, time.monotonic()):
            self._ended(each)

    def close(self, timeout_seconds: float) -> None:
        """Send the last numbers."""
        self._instruments.close(timeout_seconds)

    def page(self) -> tuple[str, bytes]:
        """Render for ``/metrics``."""
        return self._instruments.page()

    def _ended(self, ended: Ended) -> None:
        task = ended.run.claim.attempt.task_def_name
        if not self._tasks.get(task, _ALL).attempts:
            return
        labels = {"task": task, "status": ended.status}
        self._instruments.count("perago.attempts", labels)
        self._instruments.attempt_seconds.record(ended.seconds, labels)
        if ended.completed:
            return
        where = {"task": task, "phase": ended.failed_in or "unknown"}
        self._instruments.count("perago.attempt.failures", where)
        if ended.refused_by:
            refused = {"task": task, "fence": ended.refused_by}
            self._instruments.count("perago.fence.refusals", refused)

    def _phase(self, task: str, spec: MetricSpec, phase: Phase, seconds: float) -> None:
        if spec.attempts:
            self._instruments.phase_seconds.record(seconds, {"task": task, "phase": str(phase)})
        if spec.workspace_io and phase in _IO:
            self._instruments.io_seconds.record(seconds, {"task": task, "operation": _IO[phase]})

    def _moved(
        self, task: str, spec: MetricSpec, operation: str, files: int, size: int, deleted: int = 0
    ) -> None:
        if not spec.workspace_io:
            return
        count = self._instruments.count
        labels = {"task": task, "operation": operation}
        count("perago.workspace.io", labels, size)
        count("perago.workspace.files", labels, files)
        if deleted:
            count("perago.workspace.files", {"task": task, "operation": "delete"}, deleted)
