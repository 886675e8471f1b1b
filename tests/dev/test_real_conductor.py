"""Conductor for real: it is fetched if need be, started and asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from perago.dev import start
from tests.dev.http import ask
from tests.patience import TEST_SECONDS

# The servers may have to be built first.
pytestmark = pytest.mark.timeout(3 * TEST_SECONDS)


def test_it_keeps_task_definitions_over_a_crash(home: Path) -> None:
    definition = {"name": "count", "ownerEmail": "data@example.com", "retryCount": 1}
    with start("default", home, ["conductor"]) as instance:
        url = f"{instance.conductor.url}/metadata/taskdefs"
        assert ask(url) == []
        ask(url, "POST", body=[definition])
        assert [each["name"] for each in ask(url)] == ["count"]
        instance.kill("conductor")
        assert instance.status()[0].state == "dead"
        instance.restart("conductor")
        assert [each["name"] for each in ask(url)] == ["count"]
        process = instance.record.servers["conductor"].process
    assert not process.alive
