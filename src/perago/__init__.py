"""Perago: each task attempt is a transaction on a versioned workspace.

These are the names a task author needs; everything else lives in submodules.
"""

from __future__ import annotations

from perago.errors import (
    GuardrailViolation,
    PeragoError,
    PostGuardrailViolation,
    PreGuardrailViolation,
    PublishFenceError,
    RuntimeConfigError,
    StaleAttemptError,
    TaskDefinitionError,
    TaskFailed,
    TaskInputError,
    TaskTerminalError,
)
from perago.metrics import MetricRecorder
from perago.protocol.fence import assert_current_attempt_snapshot as assert_current_attempt_snapshot
from perago.protocol.values import StagedWorkspace as StagedWorkspace
from perago.protocol.values import WorkspaceInput as WorkspaceInput
from perago.spec import (
    ExecutionLimits,
    MetricSpec,
    PublishBudget,
    RetryPolicy,
    TaskControls,
    TimeoutPolicy,
    WorkspaceSpec,
    forbid_glob,
    require_dir,
    require_file,
    require_glob,
)
from perago.task import task

__version__ = "0.7.0"

__all__ = [
    "ExecutionLimits",
    "GuardrailViolation",
    "MetricRecorder",
    "MetricSpec",
    "PeragoError",
    "PostGuardrailViolation",
    "PreGuardrailViolation",
    "PublishBudget",
    "PublishFenceError",
    "RetryPolicy",
    "RuntimeConfigError",
    "StaleAttemptError",
    "TaskControls",
    "TaskDefinitionError",
    "TaskFailed",
    "TaskInputError",
    "TaskTerminalError",
    "TimeoutPolicy",
    "WorkspaceSpec",
    "forbid_glob",
    "require_dir",
    "require_file",
    "require_glob",
    "task",
]
