"""A worker's metrics: counted in the supervisor, from the events of all its executors (W8).

One process counts for all, so the numbers are right however many executors there are and however
often one of them dies.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

from perago.observe.running import Attempts, Ended, fence_of
from perago.observe.telemetry import Warn, attempt_to, installed
from perago.protocol.values import Claim, Phase
from perago.settings import Settings
from perago.tasks.spec import MetricSpec

if TYPE_CHECKING:
    from perago.observe.instruments import Instruments

_ALL: Final = MetricSpec()
_IO: Final = {Phase.DOWNLOAD: "download", Phase.STAGE: "upload"}
_DEATHS: Final = frozenset({"executor died", "executor killed"})
_SIMPLE: Final = {
    "heartbeat failed": "perago.heartbeats.failed",
    "executor started": "perago.executor.starts",
    "attempt lost": "perago.attempts.lost",
}
_WITHOUT: Final = b"# install 'perago[otel]' for metrics\n"


class MetricsWatcher(Protocol):
    """A watcher that also renders what it counted."""

    def event(self, claim: Claim, worker_id: str, name: str, facts: Mapping[str, object]) -> None:
        """Hear a point of an attempt's journal."""
        ...

    def output(self, claim: Claim | None, worker_id: str, stream: str, line: str) -> None:
        """Hear a line that was printed."""
        ...

    def worker(self, name: str, facts: Mapping[str, object]) -> None:
        """Hear what the worker does."""
        ...

    def close(self, timeout_seconds: float) -> None:
        """Send the last numbers."""
        ...

    def page(self) -> tuple[str, bytes]:
        """Render for ``/metrics``: the type of the content, and the content."""
        ...


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

    def event(self, claim: Claim, worker_id: str, name: str, facts: Mapping[str, object]) -> None:
        """Count nothing."""

    def output(self, claim: Claim | None, worker_id: str, stream: str, line: str) -> None:
        """Count nothing."""

    def worker(self, name: str, facts: Mapping[str, object]) -> None:
        """Count nothing."""

    def close(self, timeout_seconds: float) -> None:
        """Do nothing."""

    def page(self) -> tuple[str, bytes]:
        """Say what is missing."""
        return "text/plain; charset=utf-8", _WITHOUT


class Metrics(NoMetrics):
    """Turns events into numbers; a task's ``MetricSpec`` says which groups it wants."""

    def __init__(
        self, instruments: Instruments, tasks: Mapping[str, MetricSpec], attempts: Attempts
    ) -> None:
        self._instruments = instruments
        self._tasks = tasks
        self._attempts = attempts

    def event(self, claim: Claim, worker_id: str, name: str, facts: Mapping[str, object]) -> None:
        """Count one point of an attempt."""
        task = claim.attempt.task_def_name
        spec = self._tasks.get(task, _ALL)
        ended = self._attempts.event(claim, worker_id, name, facts, time.monotonic())
        if name.startswith("after "):
            self._phase(task, spec, name.removeprefix("after "), facts)
        elif name in {"downloaded", "uploaded"}:
            self._moved(task, spec, name, facts)
        elif name == "metric":
            self._sample(task, facts)
        elif name == "decision" and spec.attempts:
            kind = str(facts.get("kind"))
            self._instruments.count("perago.publications", {"task": task, "kind": kind})
        elif name == "lost completion" and spec.attempts:
            self._instruments.count("perago.completions.lost", {"task": task})
        for each in ended:
            self._ended(each)

    def worker(self, name: str, facts: Mapping[str, object]) -> None:
        """Count what the worker does."""
        if name == "polled":
            found = "work" if facts.get("found") else "empty"
            self._instruments.count("perago.polls", {"result": found})
        elif name == "poll failed":
            self._instruments.count("perago.polls", {"result": "error"})
        elif name in _DEATHS:
            self._instruments.count("perago.executor.deaths", {"kind": name.split()[1]})
        elif name in _SIMPLE:
            self._instruments.count(_SIMPLE[name], {})
        for each in self._attempts.worker(name, facts, time.monotonic()):
            self._ended(each)

    def close(self, timeout_seconds: float) -> None:
        """Send the last numbers."""
        self._instruments.close(timeout_seconds)

    def page(self) -> tuple[str, bytes]:
        """Render for ``/metrics``."""
        return self._instruments.page()

    def _ended(self, ended: Ended) -> None:
        run = ended.run
        task = run.claim.attempt.task_def_name
        if not self._tasks.get(task, _ALL).attempts:
            return
        labels = {"task": task, "status": run.status}
        self._instruments.count("perago.attempts", labels)
        self._instruments.attempt_seconds.record(ended.seconds, labels)
        if ended.completed:
            return
        where = {"task": task, "phase": run.failed_in or "unknown"}
        self._instruments.count("perago.attempt.failures", where)
        if fence := fence_of(run.failed_in, run.reason):
            self._instruments.count("perago.fence.refusals", {"task": task, "fence": fence})

    def _phase(self, task: str, spec: MetricSpec, phase: str, facts: Mapping[str, object]) -> None:
        seconds = _number(facts.get("seconds"))
        if spec.attempts:
            self._instruments.phase_seconds.record(seconds, {"task": task, "phase": phase})
        if spec.workspace_io and phase in _IO:
            labels = {"task": task, "operation": _IO[Phase(phase)]}
            self._instruments.io_seconds.record(seconds, labels)

    def _moved(self, task: str, spec: MetricSpec, name: str, facts: Mapping[str, object]) -> None:
        if not spec.workspace_io:
            return
        count = self._instruments.count
        labels = {"task": task, "operation": name.removesuffix("ed")}
        count("perago.workspace.io", labels, _number(facts.get("bytes")))
        count("perago.workspace.files", labels, _number(facts.get("files")))
        if deleted := _number(facts.get("deleted")):
            count("perago.workspace.files", {"task": task, "operation": "delete"}, deleted)

    def _sample(self, task: str, facts: Mapping[str, object]) -> None:
        labels = facts.get("labels")
        given = {str(k): str(v) for k, v in labels.items()} if isinstance(labels, Mapping) else {}
        self._instruments.author(
            str(facts.get("kind")),
            str(facts.get("name")),
            _number(facts.get("value")),
            {"task": task, **given},
        )


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
