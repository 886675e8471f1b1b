"""The instruments of a worker's metrics; the only place that makes them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from opentelemetry.metrics import CallbackOptions, Histogram, Observation
from opentelemetry.metrics import _Gauge as Gauge
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from perago.observe.telemetry import Warn, attempt_to, exported, require_http, resource_of
from perago.settings import Settings, keys_lent

SECONDS: Final = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
    *(10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0),
)
_MOST_AUTHOR_METRICS: Final = 200
_MOST_LABEL_SETS: Final = 100
_MOST_LABELS: Final = 8
_LONGEST_LABEL: Final = 80
Labels = Mapping[str, str]
Busy = Callable[[], Mapping[str, int]]


class Instruments:
    """All instruments of one worker, behind a Prometheus page and, when wanted, OTLP."""

    def __init__(self, settings: Settings, slots: int, busy: Busy, warn: Warn) -> None:
        self._registry = CollectorRegistry()
        self._provider = MeterProvider(
            metric_readers=_readers(self._registry, settings, warn),
            resource=resource_of(settings),
            shutdown_on_exit=False,
        )
        meter = self._meter = self._provider.get_meter("perago")
        seconds = partial(
            meter.create_histogram, unit="s", explicit_bucket_boundaries_advisory=SECONDS
        )
        self.attempt_seconds = seconds("perago.attempt.duration", description="Claim to report")
        self.phase_seconds = seconds("perago.phase.duration", description="Phases that ended well")
        self.io_seconds = seconds("perago.workspace.io.duration", description="Moving a workspace")
        self._counters = {
            name: meter.create_counter(name, unit=unit, description=text)
            for name, (unit, text) in COUNTERS.items()
        }
        meter.create_observable_gauge(
            "perago.worker.slots",
            [lambda _: [Observation(slots)]],
            description="Attempts this worker can run at once",
        )
        meter.create_observable_gauge(
            "perago.worker.busy", [_observed(busy)], description="Attempts under way"
        )
        self._authors: dict[str, tuple[str, Histogram | Gauge]] = {}
        self._label_sets: dict[str, set[tuple[tuple[str, str], ...]]] = {}

    def count(self, name: str, labels: Labels, by: float = 1) -> None:
        """Add to a counter."""
        self._counters[name].add(by, labels)

    def author(self, kind: str, name: str, value: float, labels: Labels) -> None:
        """Take a sample of a task's own metrics, within bounds."""
        instrument = self._author_instrument(kind, name)
        problem = "too many metrics" if instrument is None else ""
        kept = _bounded(labels)
        seen = self._label_sets.setdefault(name, set()) if instrument else set()
        key = tuple(sorted(kept.items()))
        if not problem and key not in seen and len(seen) >= _MOST_LABEL_SETS:
            problem = "too many label values"
        if problem or instrument is None:
            self.count("perago.metric.samples.dropped", {"why": problem})
            return
        seen.add(key)
        if isinstance(instrument, Histogram):
            instrument.record(value, kept)
        else:
            instrument.set(value, kept)

    def _author_instrument(self, kind: str, name: str) -> Histogram | Gauge | None:
        """Find or make it; a name keeps the kind it was first used with."""
        found = self._authors.get(name)
        if found is not None:
            return found[1] if found[0] == kind else None
        if len(self._authors) >= _MOST_AUTHOR_METRICS:
            return None
        full = "task." + re.sub(r"[^A-Za-z0-9_.]", "_", name)[:100]
        made: Histogram | Gauge = (
            self._meter.create_gauge(full)
            if kind == "gauge"
            else self._meter.create_histogram(full)
        )
        self._authors[name] = kind, made
        return made

    def page(self) -> tuple[str, bytes]:
        """Render all of it for Prometheus: the type of the content, and the content."""
        return CONTENT_TYPE_LATEST, generate_latest(self._registry)

    def close(self, timeout_seconds: float) -> None:
        """Send the last numbers."""
        self._provider.shutdown(timeout_millis=timeout_seconds * 1000)


COUNTERS: Final[Mapping[str, tuple[str, str]]] = {
    "perago.attempts": ("{attempt}", "Attempts that ended, by status"),
    "perago.attempt.failures": ("{attempt}", "Attempts that failed, by the phase they failed in"),
    "perago.attempts.lost": ("{attempt}", "Attempts stopped because Conductor gave up on them"),
    "perago.workspace.io": ("By", "Bytes of workspaces moved"),
    "perago.workspace.files": ("{file}", "Files of workspaces moved or removed"),
    "perago.publications": ("{publication}", "Decisions about a branch, by kind"),
    "perago.fence.refusals": ("{attempt}", "Attempts that a fence refused"),
    "perago.completions.lost": ("{attempt}", "Results that Conductor did not want any more"),
    "perago.executor.deaths": ("{executor}", "Executors that died or had to be killed"),
    "perago.executor.starts": ("{executor}", "Executors that were started"),
    "perago.polls": ("{poll}", "Polls, by what came of them"),
    "perago.heartbeats.failed": ("{heartbeat}", "Lease extensions that failed"),
    "perago.metric.samples.dropped": ("{sample}", "Samples of tasks' own metrics over the bounds"),
}


def _readers(registry: CollectorRegistry, settings: Settings, warn: Warn) -> list[MetricReader]:
    from opentelemetry.exporter.prometheus import PrometheusMetricReader  # noqa: PLC0415 - slow

    readers: list[MetricReader] = [PrometheusMetricReader(registry=registry)]
    if exported("metrics", os.environ):
        with keys_lent(os.environ, settings.telemetry.variables):
            pushed = attempt_to(_pushing, "metrics by OTLP", warn)
        readers += [pushed] if pushed is not None else []
    return readers


def _pushing() -> MetricReader:
    require_http("metrics", os.environ)
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import (  # noqa: PLC0415 - slow
        OTLPMetricExporter,
    )
    from opentelemetry.sdk.metrics.export import (  # noqa: PLC0415 - as above
        PeriodicExportingMetricReader,
    )

    return PeriodicExportingMetricReader(OTLPMetricExporter())


def _observed(busy: Busy) -> Callable[[CallbackOptions], Iterable[Observation]]:
    return lambda _: [Observation(count, {"task": task}) for task, count in busy().items()]


def _bounded(labels: Labels) -> dict[str, str]:
    few = list(labels.items())[:_MOST_LABELS]
    return {str(key)[:_LONGEST_LABEL]: str(value)[:_LONGEST_LABEL] for key, value in few}
