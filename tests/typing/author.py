"""A task module as an author writes it, checked by mypy from outside; see test_typing.py.

Lines that must be errors carry the error they must have: an ignore that is not needed is itself
an error, so each line below says both what is taken and what is refused.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel

from perago import (
    ExecutionLimits,
    GuardrailViolation,
    MetricRecorder,
    MetricSpec,
    PublishBudget,
    RetryPolicy,
    StagedWorkspace,
    TaskControls,
    TaskFailed,
    TaskTerminalError,
    TimeoutPolicy,
    WorkspaceInput,
    WorkspaceSpec,
    assert_current_attempt_snapshot,
    forbid_glob,
    require_dir,
    require_file,
    require_glob,
    task,
)


class Params(BaseModel):
    """What the task is asked."""

    limit: int = 10


class Result(BaseModel):
    """What it answers."""

    rows: int


def no_empty_files(workspace: Path) -> None:
    """Guard as authors write them."""
    for path in workspace.rglob("*"):
        if path.is_file() and not path.stat().st_size:
            raise GuardrailViolation(f"{path.name} is empty", remedy="write something")


SPEC = WorkspaceSpec(
    prefix="/sales",
    pre=[require_file("raw/input.csv"), require_dir("raw"), no_empty_files],
    post=(require_glob("out/*.csv", min_count=1, max_count=4), forbid_glob("**/*.tmp")),
    read_only=False,
    fence="hard",
    include=["raw/**", "out/**"],
    exclude=("tmp/**",),
)
CONTROLS = TaskControls(
    retry=RetryPolicy(count=2, logic="EXPONENTIAL_BACKOFF", delay_seconds=5, max_delay_seconds=60),
    timeout=TimeoutPolicy(policy="RETRY", seconds=600, response_seconds=120),
    limits=ExecutionLimits(
        concurrent_exec_limit=4, rate_limit_frequency_in_seconds=1, rate_limit_per_frequency=10
    ),
    publish_budget=PublishBudget(
        observed_merge_p99_seconds=2,
        safety_margin_seconds=3.5,
        lakefs_merge_timeout_seconds=10,
        conductor_completion_timeout_seconds=10,
        worker_shutdown_grace_seconds=10,
        heartbeat_interval_seconds=5,
    ),
)


@task(name="count", owner_email="team@example.com")
def count(params: Params) -> Result:
    """Count to a limit."""
    if params.limit < 0:
        raise TaskTerminalError("limit is negative", remedy="give a positive one")
    return Result(rows=params.limit)


@task(
    name="clean",
    owner_email="team@example.com",
    description="Clean the rows",
    workspace=SPEC,
    metrics=MetricSpec(attempts=True),
    controls=CONTROLS,
    strict_params=True,
)
def clean(workspace: Path, params: Params, metrics: MetricRecorder) -> Result:
    """Clean the rows of one file."""
    with metrics.timer("read", labels={"file": "input"}):
        rows = (workspace / "raw" / "input.csv").read_text().splitlines()
    metrics.histogram("rows", len(rows))
    metrics.gauge("limit", params.limit, labels={"unit": "rows"})
    if not rows:
        raise TaskFailed("no rows yet")
    return Result(rows=len(rows))


# The decorated function keeps its type: results are known, wrong calls are found.
TOTAL: int = count(Params(limit=3)).rows
WRONG_RESULT: str = count(Params()).rows  # type: ignore[assignment]
count(3)  # type: ignore[arg-type]
count(Params(), Params())  # type: ignore[call-arg]
clean(Path(), Params())  # type: ignore[call-arg]
clean("here", Params(), ...)  # type: ignore[arg-type]

# Declarations are typed by field.
WorkspaceSpec(prefix=3)  # type: ignore[arg-type]
WorkspaceSpec(prefx="/a")  # type: ignore[call-arg]
WorkspaceSpec(fence="soft")  # type: ignore[arg-type]
WorkspaceSpec(pre=["raw/input.csv"])  # type: ignore[list-item]
WorkspaceSpec(exclude=[1])  # type: ignore[list-item]
RetryPolicy(logic="SOMETIMES")  # type: ignore[arg-type]
RetryPolicy(tries=3)  # type: ignore[call-arg]
TimeoutPolicy(policy="NEVER")  # type: ignore[arg-type]
TaskControls(retry=3)  # type: ignore[arg-type]
PublishBudget(safety_margin_seconds=1)  # type: ignore[call-arg]
MetricSpec(attempts="often")  # type: ignore[arg-type]

# Guards.
require_file(Path("a"))  # type: ignore[arg-type]
require_glob("*.csv", 1)  # type: ignore[call-arg]
require_glob("*.csv", min_count="1")  # type: ignore[arg-type]
forbid_glob(None)  # type: ignore[arg-type]

# The decorator: keywords only, name and owner required.
task(name="t")  # type: ignore[call-arg]
task("t", "team@example.com")  # type: ignore[call-arg]
task(name="t", owner_email="team@example.com", workspace="/a")  # type: ignore[arg-type]
task(name="t", owner_email="team@example.com", timeout=3)  # type: ignore[call-arg]
task(name=3, owner_email="team@example.com")  # type: ignore[arg-type]

# Errors of the author.
TaskFailed("text", fix="?")  # type: ignore[call-arg]

# Values of the protocol.
INPUT = WorkspaceInput("lake", "main", "commit", "0123")
WorkspaceInput("lake", "main", "branch", "0123")  # type: ignore[arg-type]
INPUT.ref = "4567"  # type: ignore[misc]
StagedWorkspace("lake", "main")  # type: ignore[call-arg]
assert_current_attempt_snapshot(INPUT, INPUT)  # type: ignore[arg-type]
