"""Postings for tests: one that fits, and ways to make it not fit."""

from __future__ import annotations

from perago.protocol.adoption import Posting, Terms
from perago.protocol.values import Attempt

FIRST = Attempt("workflow", "task-0", 0, "step", "write", started_at=1000)
RETRY = Attempt("workflow", "task-1", 1, "step", "write", started_at=2000)
THIRD = Attempt("workflow", "task-2", 2, "step", "write", started_at=3000)
TERMS = Terms(
    logical_task_key=FIRST.logical_task_key,
    repository="lab",
    branch="main",
    input_ref="A",
    params="digest",
    task="write",
    prefix="ws",
    fence="head",
    code="code",
)
LANDED = Posting(
    execution_id="execution-0",
    attempt=FIRST,
    terms=TERMS,
    decision="merge",
    head="A",
    staged="C",
    output={"result": {"length": 3}},
    intended_at=1.0,
    ref="X",
    landed_at=2.0,
)
