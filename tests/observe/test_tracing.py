"""W8: one span per attempt and per phase, sent to a real collector by a real executor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perago.protocol.values import Phase
from tests.observe import told
from tests.observe.collector import Collector, attributes
from tests.patience import LIMIT

ROOT = Path(__file__).parents[2]
ERROR = 2


def execute(directory: Path, task: str, *more: str, **variables: str) -> tuple[dict[str, Any], str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.observe.executor", str(directory), task, *more],
        cwd=ROOT,
        env={**clean, **told.CANARIES, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_spans_of_an_attempt_its_phases_and_its_author(
    tmp_path: Path, collector: Collector
) -> None:
    caller = f"00-{'ab' * 16}-{'cd' * 8}-01"
    execute(tmp_path, "good", caller, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    collector.until(lambda: any(span.name == "attempt good" for span in collector.spans))
    by_name = {span.name: span for span in collector.spans}
    root = by_name["attempt good"]
    assert root.trace_id.hex() == "ab" * 16
    assert root.parent_span_id.hex() == "cd" * 8
    phases = [phase.value for phase in Phase]
    assert {span.name for span in collector.spans} == {"attempt good", "author's own", *phases}
    for phase in phases:
        assert by_name[phase].parent_span_id == root.span_id
        assert by_name[phase].trace_id == root.trace_id
        assert by_name[phase].status.code != ERROR
    assert by_name["author's own"].parent_span_id == by_name["body"].span_id
    assert attributes(root) == {
        "perago.workflow_instance_id": attributes(root)["perago.workflow_instance_id"],
        "perago.task_id": "task-1",
        "perago.retry_count": 0,
        "perago.execution_id": "execution-1",
        "perago.reference_task_name": "good_ref",
        "perago.task_def_name": "good",
        "perago.status": "COMPLETED",
    }
    assert [event.name for event in by_name["publish"].events] == [
        "decision", "applied", "published",
    ]  # fmt: skip
    assert collector.resources[0]["service.name"] == "perago"


def test_v8_a_failure_is_an_error_with_its_traceback_and_without_secrets(
    tmp_path: Path, collector: Collector
) -> None:
    execute(
        tmp_path, "bad", OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{collector.url}/v1/traces",
        OTEL_EXPORTER_OTLP_HEADERS="api-key=canary-header-1",
    )  # fmt: skip
    collector.until(lambda: any(span.name == "attempt bad" for span in collector.spans))
    by_name = {span.name: span for span in collector.spans}
    root, body = by_name["attempt bad"], by_name["body"]
    assert not root.parent_span_id
    assert (root.status.code, body.status.code) == (ERROR, ERROR)
    assert body.status.message.startswith("body: ValueError: no with [hidden]")
    assert by_name["report"].status.code != ERROR
    event = next(event for event in body.events if event.name == "exception")
    assert "Traceback (most recent call last)" in attributes(event)["exception.stacktrace"]
    assert collector.headers[0]["api-key"] == "canary-header-1"
    everything = "".join(map(str, collector.spans))
    for secret in (*told.SECRETS, "canary-param", "canary-header-1"):
        assert secret not in everything


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_PROPAGATORS": "bogus", "OTEL_PYTHON_TRACER_PROVIDER": "bogus"},
    ],
    ids=str,
)
def test_without_a_place_to_send_to_nothing_is_imported(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    answer, said = execute(tmp_path, "good", **variables)
    assert answer == {"status": "COMPLETED", "imported": []}
    assert said == ""


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "not an address"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "no equals sign"),
        ("OTEL_BSP_SCHEDULE_DELAY", "-5"),
        ("OTEL_PROPAGATORS", "bogus"),
        ("OTEL_TRACES_SAMPLER", "bogus"),
        ("OTEL_RESOURCE_ATTRIBUTES", "a=%ZZ,,=b"),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "many"),
        ("OTEL_PYTHON_CONTEXT", "bogus"),
    ],
)
def test_a_bad_variable_never_breaks_an_attempt(tmp_path: Path, name: str, bad: str) -> None:
    """The attempt completes; what is said is at most one warning and no traceback."""
    variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", name: bad}
    answer, said = execute(tmp_path, "good", **variables)
    assert answer["status"] == "COMPLETED"
    assert len(said.splitlines()) <= 1, said
    assert said == "" or said.startswith("warning: OpenTelemetry")
