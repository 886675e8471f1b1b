"""Perago: each task attempt is a transaction on a versioned workspace.

These are the names a task author needs; everything else lives in submodules.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    from perago.notebook import run as run
    from perago.protocol.fence import (
        assert_current_attempt_snapshot as assert_current_attempt_snapshot,
    )
    from perago.protocol.values import StagedWorkspace as StagedWorkspace
    from perago.protocol.values import WorkspaceInput as WorkspaceInput
    from perago.tasks.cancellation import cancelled
    from perago.tasks.declaration import task
    from perago.tasks.metrics import MetricRecorder
    from perago.tasks.spec import (
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
    "cancelled",
    "forbid_glob",
    "require_dir",
    "require_file",
    "require_glob",
    "task",
]

# Loaded when first asked for: the command line's own start does not wait for pydantic.
_MODULES = {
    "perago.tasks.cancellation": ("cancelled",),
    "perago.errors": (
        "GuardrailViolation",
        "PeragoError",
        "PostGuardrailViolation",
        "PreGuardrailViolation",
        "PublishFenceError",
        "RuntimeConfigError",
        "StaleAttemptError",
        "TaskDefinitionError",
        "TaskFailed",
        "TaskInputError",
        "TaskTerminalError",
    ),
    "perago.tasks.metrics": ("MetricRecorder",),
    "perago.notebook": ("run",),
    "perago.protocol.fence": ("assert_current_attempt_snapshot",),
    "perago.protocol.values": ("StagedWorkspace", "WorkspaceInput"),
    "perago.tasks.spec": (
        "ExecutionLimits",
        "MetricSpec",
        "PublishBudget",
        "RetryPolicy",
        "TaskControls",
        "TimeoutPolicy",
        "WorkspaceSpec",
        "forbid_glob",
        "require_dir",
        "require_file",
        "require_glob",
    ),
    "perago.tasks.declaration": ("task",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'perago' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
