"""The recorder a body is given: histogram, gauge, timer."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from perago.tasks.metrics import MetricRecorder, SinkRecorder

Sample = tuple[str, str, float, Mapping[str, str]]


@pytest.fixture
def samples() -> list[Sample]:
    return []


@pytest.fixture
def recorder(samples: list[Sample]) -> MetricRecorder:
    def sink(kind: str, name: str, value: float, labels: Mapping[str, str]) -> None:
        samples.append((kind, name, value, labels))

    return SinkRecorder(sink)


def test_samples_carry_kind_name_value_and_labels(
    recorder: MetricRecorder, samples: list[Sample]
) -> None:
    recorder.histogram("rows", 3, labels={"table": "a"})
    recorder.gauge("queue", 0.5)
    assert samples == [("histogram", "rows", 3.0, {"table": "a"}), ("gauge", "queue", 0.5, {})]
    assert all(isinstance(sample[2], float) for sample in samples)


def test_a_timer_measures_its_block(recorder: MetricRecorder, samples: list[Sample]) -> None:
    with recorder.timer("load", labels={"step": "1"}):
        recorder.gauge("inside", 1)
    (_, inside, _, _), (kind, name, seconds, labels) = samples
    assert inside == "inside"
    assert (kind, name, labels) == ("histogram", "load", {"step": "1"})
    assert 0 <= seconds < 60


def test_a_timer_measures_also_what_raises(recorder: MetricRecorder, samples: list[Sample]) -> None:
    with pytest.raises(ZeroDivisionError), recorder.timer("load"):
        raise ZeroDivisionError
    assert [sample[1] for sample in samples] == ["load"]


def test_a_value_that_is_no_number_is_the_authors_error(recorder: MetricRecorder) -> None:
    with pytest.raises(ValueError, match="could not convert"):
        recorder.gauge("n", "many")  # type: ignore[arg-type]
