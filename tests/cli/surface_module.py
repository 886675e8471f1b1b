"""A task module written only from the published author-facing surface of 0.6.1."""

from pathlib import Path

from pydantic import BaseModel, Field, computed_field

from perago import (
    ExecutionLimits,
    GuardrailViolation,
    MetricRecorder,
    MetricSpec,
    PublishBudget,
    RetryPolicy,
    TaskControls,
    TaskFailed,
    TaskTerminalError,
    TimeoutPolicy,
    WorkspaceSpec,
    forbid_glob,
    require_dir,
    require_file,
    require_glob,
    task,
)


class RenderParams(BaseModel):
    stem: str = Field(alias="stemName")
    loud: bool = False


class RenderResult(BaseModel):
    model_config = {"populate_by_name": True}

    row_count: int = Field(serialization_alias="rowCount")
    internal: str = Field(default="hidden", exclude=True)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def doubled(self) -> int:
        return self.row_count * 2


def own_guard(workspace: Path) -> None:
    if not (workspace / "raw").is_dir():
        raise GuardrailViolation("raw is missing")


@task(
    name="render",
    owner_email="audio@example.com",
    description="Render one stem",
    workspace=WorkspaceSpec(
        prefix="/audio/render",
        pre=[require_dir("raw"), require_file("raw/input.txt"), own_guard],
        post=[require_glob("features/*.txt", min_count=1, max_count=5), forbid_glob("*.json")],
        read_only=False,
    ),
    metrics=MetricSpec(attempts=True, workspace_io=True, worker_capacity=False),
    controls=TaskControls(
        retry=RetryPolicy(count=2, logic="LINEAR_BACKOFF", delay_seconds=1),
        timeout=TimeoutPolicy(policy="RETRY", seconds=120, response_seconds=300),
        limits=ExecutionLimits(concurrent_exec_limit=4),
        publish_budget=PublishBudget(
            observed_merge_p99_seconds=1,
            safety_margin_seconds=1,
            lakefs_merge_timeout_seconds=5,
            conductor_completion_timeout_seconds=5,
            worker_shutdown_grace_seconds=10,
            heartbeat_interval_seconds=5,
        ),
    ),
    strict_params=True,
)
def render(workspace: Path, params: RenderParams, metrics: MetricRecorder) -> RenderResult:
    text = (workspace / "raw" / "input.txt").read_text()
    if not text:
        raise TaskFailed("empty input")
    if params.stem == "none":
        raise TaskTerminalError("no such stem")
    with metrics.timer("render.seconds", labels={"stem": params.stem}):
        (workspace / "features").mkdir(exist_ok=True)
        (workspace / "features" / "out.txt").write_text(text.upper() if params.loud else text)
    metrics.histogram("render.bytes", len(text))
    return RenderResult(row_count=len(text.splitlines()))
