"""W8: metrics counted once for all executors, as Prometheus and OTLP see them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from perago.errors import (
    BrokerUnavailableError,
    LostRaceError,
    PublishFenceError,
    StaleAttemptError,
)
from perago.observe import metrics
from perago.observe.instruments import COUNTERS
from perago.observe.metrics import MetricsWatcher
from perago.protocol.values import Phase
from perago.protocol.worker_events import WorkerEvent
from perago.tasks.spec import MetricSpec
from tests.observe import told
from tests.observe.collector import Collector

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]
ALL = {"double": MetricSpec(), "thin": MetricSpec()}
ROOT = Path(__file__).parents[2]


def start(tmp_path: Path, tasks: dict[str, MetricSpec] | None = None) -> MetricsWatcher:
    warned: list[str] = []
    found = metrics.start(told.settings(tmp_path), tasks or ALL, 4, warned.append)
    assert warned == []
    return found


def samples(watcher: MetricsWatcher) -> Samples:
    kind, page = watcher.page()
    assert kind.startswith("text/plain")
    return {
        (sample.name, frozenset((k, v) for k, v in sample.labels.items() if k[:4] != "otel")): (
            sample.value
        )
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float | None:
    return found.get((name, frozenset(labels.items())))


def test_a_completed_attempt_is_counted(tmp_path: Path) -> None:
    watcher = start(tmp_path)
    told.completed(watcher, told.claim())
    told.completed(watcher, told.claim(), "w-0002")
    found = samples(watcher)
    done = {"task": "double", "status": "COMPLETED"}
    assert value(found, "perago_attempts_total", **done) == 2
    assert value(found, "perago_attempt_duration_seconds_count", **done) == 2
    body = {"task": "double", "phase": "body"}
    assert value(found, "perago_phase_duration_seconds_sum", **body) == 1.0
    down, up = ({"task": "double", "operation": name} for name in ("download", "upload"))
    assert value(found, "perago_workspace_io_bytes_total", **down) == 6000
    assert value(found, "perago_workspace_io_bytes_total", **up) == 4000
    assert value(found, "perago_workspace_io_duration_seconds_sum", **up) == 0.6
    assert value(found, "perago_workspace_files_total", **down) == 6
    assert value(found, "perago_workspace_files_total", task="double", operation="delete") == 2
    assert value(found, "perago_publications_total", task="double", kind="merge") == 2
    watcher.close(1)


@pytest.mark.parametrize(
    ("phase", "error", "fence"),
    [
        (Phase.BODY, ValueError, None),
        (Phase.FENCE_ONE, StaleAttemptError, "attempt"),
        (Phase.FENCE_TWO, BrokerUnavailableError, "attempt"),
        (Phase.FENCE_TWO, PublishFenceError, "publish"),
        (Phase.PUBLISH, PublishFenceError, "publish"),
        (Phase.PUBLISH, LostRaceError, "publish"),
        (Phase.INPUT, BrokerUnavailableError, None),
    ],
)
def test_a_failure_is_counted_by_phase_and_fence(
    tmp_path: Path, phase: Phase, error: type[Exception], fence: str | None
) -> None:
    """F1, F2, P3, P8: what a fence refused is told apart from what broke."""
    watcher = start(tmp_path)
    told.failed(watcher, told.claim(), phase, error("no"))
    found = samples(watcher)
    assert value(found, "perago_attempts_total", task="double", status="FAILED") == 1
    assert value(found, "perago_attempt_failures_total", task="double", phase=phase) == 1
    refusals = {key: count for key, count in found.items() if "refusals" in key[0]}
    expected = {("task", "double"), ("fence", fence)}
    assert {key[1] for key in refusals} == ({frozenset(expected)} if fence else set())
    watcher.close(1)


def test_r3_an_attempt_whose_executor_died_is_counted_too(tmp_path: Path) -> None:
    watcher = start(tmp_path)
    claim = told.claim()
    watcher.event(claim, "w-0001", told.event("claimed"))
    watcher.event(claim, "w-0001", told.event("before body"))
    assert value(samples(watcher), "perago_worker_busy", task="double") == 1
    facts = {"execution_id": claim.execution_id, "how": "killed by SIGKILL"}
    watcher.worker(WorkerEvent.EXECUTOR_DIED, facts)
    watcher.event(claim, "w-0001", told.event("after body", seconds=1.0))
    found = samples(watcher)
    assert value(found, "perago_attempts_total", task="double", status="DIED") == 1
    assert value(found, "perago_attempt_failures_total", task="double", phase="body") == 1
    assert value(found, "perago_executor_deaths_total", kind="died") == 1
    assert value(found, "perago_worker_busy", task="double") == 0
    watcher.close(1)


def test_an_attempt_that_vanished_ends_when_its_worker_takes_the_next(tmp_path: Path) -> None:
    watcher = start(tmp_path)
    watcher.event(told.claim(), "w-0001", told.event("claimed"))
    told.completed(watcher, told.claim())
    found = samples(watcher)
    assert value(found, "perago_attempts_total", task="double", status="DIED") == 1
    assert value(found, "perago_attempts_total", task="double", status="COMPLETED") == 1
    watcher.close(1)


def test_r2_lost_completions_polls_heartbeats_and_capacity(tmp_path: Path) -> None:
    watcher = start(tmp_path)
    claim = told.claim()
    told.completed(watcher, claim)
    watcher.event(claim, "w-0001", told.event("lost completion", status="COMPLETED"))
    for found in (0, 0, 3):
        watcher.worker(WorkerEvent.POLLED, {"task": "double", "found": found})
    watcher.worker(WorkerEvent.POLL_FAILED, {"task": "double", "why": "no answer"})
    watcher.worker(WorkerEvent.HEARTBEAT_FAILED, {})
    watcher.worker(WorkerEvent.EXECUTOR_STARTED, {})
    numbers = samples(watcher)
    assert value(numbers, "perago_completions_lost_total", task="double") == 1
    polls = [value(numbers, "perago_polls_total", result=r) for r in ("empty", "work", "error")]
    assert polls == [2, 1, 1]
    assert value(numbers, "perago_heartbeats_failed_total") == 1
    assert value(numbers, "perago_executor_starts_total") == 1
    assert value(numbers, "perago_worker_slots") == 4
    watcher.close(1)


def test_a_tasks_metric_spec_switches_its_groups(tmp_path: Path) -> None:
    off = MetricSpec(attempts=False, workspace_io=False, worker_capacity=False)
    watcher = start(tmp_path, {"double": off, "thin": MetricSpec()})
    watcher.event(told.claim(), "w-0001", told.event("claimed"))
    assert value(samples(watcher), "perago_worker_busy", task="double") is None
    told.completed(watcher, told.claim(), "w-0002")
    told.completed(watcher, told.claim("thin"), "w-0003")
    found = samples(watcher)
    ours = {name for name, labels in found if ("task", "double") in labels}
    assert {name for name in ours if name.startswith("perago_")} == set()
    assert any(name.startswith("task_rows") for name in ours)
    for name in ("perago_attempts_total", "perago_worker_busy", "perago_workspace_io_bytes_total"):
        assert any(key[0] == name and ("task", "thin") in key[1] for key in found)
    watcher.close(1)


def test_an_authors_samples_become_histograms_and_gauges(tmp_path: Path) -> None:
    watcher = start(tmp_path)
    told.completed(watcher, told.claim())
    told.completed(watcher, told.claim())
    found = samples(watcher)
    assert value(found, "task_rows_sum", task="double", kind="new") == 14
    assert value(found, "task_rows_count", task="double", kind="new") == 2
    assert value(found, "task_depth", task="double") == 3
    watcher.close(1)


def test_labels_without_end_are_bounded(tmp_path: Path) -> None:
    watcher = start(tmp_path)
    claim = told.claim()

    def sample(name: str, kind: str = "histogram", **labels: str) -> None:
        facts = {"kind": kind, "name": name, "value": 1.0, "labels": labels}
        watcher.event(claim, "w-0001", told.event("metric", **facts))

    for number in range(150):
        sample("rows", user=f"user-{number}")
    for number in range(250):
        sample(f"metric {number}")
    sample("rows", kind="gauge")
    sample("wide", **{f"label{number}": "x" * 500 for number in range(30)})
    found = samples(watcher)
    assert sum(name == "task_rows_count" for name, _ in found) == 100
    assert len({name for name, _ in found if name.startswith("task_metric_")}) <= 200 * 4
    dropped = {labels: count for (name, labels), count in found.items() if "dropped" in name}
    assert sum(dropped.values()) == 50 + 51 + 1 + 1
    watcher.close(1)


def test_metrics_are_sent_by_otlp_where_the_environment_says(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "orders")
    watcher = start(tmp_path)
    told.completed(watcher, told.claim())
    assert value(samples(watcher), "perago_attempts_total", task="double", status="COMPLETED") == 1
    watcher.close(30)
    assert collector.metrics["perago.attempts"].sum.data_points[0].as_int == 1
    assert collector.resources[0]["service.name"] == "orders"
    assert collector.resources[0]["service.instance.id"] == "one"


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("OTEL_METRIC_EXPORT_INTERVAL", "soon"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "tar"),
    ],
)
def test_a_bad_variable_is_one_warning_and_the_page_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, bad: str
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv(name, bad)
    warned: list[str] = []
    watcher = metrics.start(told.settings(tmp_path), ALL, 4, warned.append)
    told.completed(watcher, told.claim())
    assert value(samples(watcher), "perago_attempts_total", task="double", status="COMPLETED") == 1
    assert len(warned) == 1
    assert "OTEL_" in warned[0]
    watcher.close(1)


def test_every_metric_is_in_the_reference(tmp_path: Path) -> None:
    watcher = start(tmp_path)
    told.completed(watcher, told.claim())
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    documented = set(re.findall(r"^\| `(perago_\w+)`", page, re.MULTILINE))
    _, text = watcher.page()
    shown = {family.name for family in text_string_to_metric_families(text.decode())}
    shown = {name for name in shown if name.startswith("perago_")}
    bare = {name.removesuffix("_total") for name in documented}
    assert shown <= bare
    assert {name.replace(".", "_") for name in COUNTERS} - bare == {"perago_workspace_io"}
    assert len(bare) == len(COUNTERS) + 5
    watcher.close(1)
