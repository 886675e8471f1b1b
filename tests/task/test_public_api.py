"""What an author imports: the names of the interface, and no more than 25 of them."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys

import pytest

import perago
from tests.patience import LIMIT

AUTHORS = (
    *("task", "WorkspaceSpec", "require_file", "require_dir", "require_glob", "forbid_glob"),
    *("TaskControls", "RetryPolicy", "TimeoutPolicy", "ExecutionLimits", "PublishBudget"),
    *("MetricSpec", "MetricRecorder", "TaskFailed", "TaskTerminalError", "GuardrailViolation"),
    *("PreGuardrailViolation", "PostGuardrailViolation", "PublishFenceError"),
    *("StaleAttemptError", "TaskDefinitionError", "TaskInputError", "RuntimeConfigError"),
    *("WorkspaceInput", "StagedWorkspace", "assert_current_attempt_snapshot"),
)


def test_at_most_25_names_are_public() -> None:
    assert len(perago.__all__) <= 25
    assert len(set(perago.__all__)) == len(perago.__all__)


@pytest.mark.parametrize("name", sorted({*AUTHORS, *perago.__all__}))
def test_every_name_an_author_uses_can_be_imported(name: str) -> None:
    assert getattr(perago, name) is not None


@pytest.mark.parametrize("name", [n for n in AUTHORS if n.endswith(("Error", "Violation"))])
def test_every_error_of_the_interface_has_one_root(name: str) -> None:
    assert issubclass(getattr(perago, name), perago.PeragoError)


def test_guardrail_violations_are_one_family() -> None:
    assert issubclass(perago.PreGuardrailViolation, perago.GuardrailViolation)
    assert issubclass(perago.PostGuardrailViolation, perago.GuardrailViolation)


@pytest.mark.parametrize(
    "first", ["perago", "perago.tasks.declaration", "perago.attempt.lifecycle", "perago.testing"]
)
def test_the_decorator_is_the_decorator_whatever_was_imported_before(first: str) -> None:
    """Names are loaded when first asked for: a submodule must never stand in for one."""
    code = f"import {first}; from perago import task; task(name='t', owner_email='a@b')"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_version_is_the_version_of_the_package() -> None:
    try:
        installed = importlib.metadata.version("perago")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("not installed: the tests run on the source")
    assert perago.__version__ == installed
