"""What an attempt warns of is shown while it runs, and is in the JSON of its run."""

from __future__ import annotations

from pathlib import Path

import pytest

from perago.protocol.events import CompletionLost, OutcomeUnknown, PhaseBegan, Warned, warning_of
from perago.protocol.values import Phase
from tests.cli.conftest import Perago

TASKS = """
import os
from pydantic import BaseModel
from perago import RetryPolicy, TaskControls, TaskFailed, task

class Nothing(BaseModel):
    pass

once = TaskControls(retry=RetryPolicy(count=1, delay_seconds=0))

@task(name="wander", owner_email="a@example.com", controls=once)
def wander(params: Nothing) -> Nothing:
    os.chdir("/")
    if not os.path.exists("MARK"):
        open("MARK", "w").close()
        raise TaskFailed("not yet")
    return Nothing()
"""
WARNING = "the working directory was changed: it was put back"


@pytest.fixture(autouse=True)
def _tasks(project: Path) -> None:
    (project / "tasks.py").write_text(TASKS.replace("MARK", str(project / "mark")))


def test_an_attempts_warnings_are_lines_where_nobody_looks(perago: Perago) -> None:
    said = perago("run", "tasks")
    assert said.code == 0, said
    assert [line for line in said.out.splitlines() if line.startswith("!")] == [
        f"! wander  {WARNING}",
        f"! wander retry 1  {WARNING}",
    ]
    seen = perago("watch", "last")
    assert f"! wander retry 1  {WARNING}" in seen.out.splitlines()


def test_an_attempts_warnings_are_in_the_document(perago: Perago) -> None:
    said = perago("run", "tasks", "--json")
    expected = [f"step 'wander': {WARNING}", f"step 'wander' retry 1: {WARNING}"]
    assert said.json["warnings"] == expected
    assert said.err == ""


def test_what_warns_is_said_in_one_line() -> None:
    assert warning_of(Warned("text", "why")) == "text: why"
    assert warning_of(Warned("text")) == "text"
    assert warning_of(OutcomeUnknown("no answer")) == "outcome unknown: no answer"
    assert warning_of(CompletionLost("COMPLETED")) == "lost completion"
    assert warning_of(PhaseBegan(Phase.BODY)) == ""
