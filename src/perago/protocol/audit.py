"""What commits say about the attempt that made them (S5, K2, K4). For people, and for recovery."""

from __future__ import annotations

from collections.abc import Mapping

from perago.protocol.lineage import WorkspacePublicationPlan
from perago.protocol.values import Claim, StagedWorkspace, Staging, WorkspaceInput


def identity(claim: Claim) -> dict[str, str]:
    """Return who it was."""
    attempt = claim.attempt
    return {
        "perago.execution_id": claim.execution_id,
        "perago.logical_task_key": attempt.logical_task_key,
        "perago.task": attempt.task_def_name,
        "perago.workflow_instance_id": attempt.workflow_instance_id,
        "perago.task_id": attempt.task_id,
        "perago.retry_count": str(attempt.retry_count),
        **({"perago.person": claim.person.name} if claim.person else {}),
    }


def staged_metadata(
    claim: Claim,
    workspace: WorkspaceInput,
    prefix: str,
    staging: Staging,
    checked: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return what is known when C is made; ``checked`` is what data guards said of it."""
    return {
        "perago.phase": "try",
        **identity(claim),
        "perago.input_ref": workspace.ref,
        "perago.target_branch": workspace.branch,
        "perago.prefix": prefix,
        "perago.staging_branch": staging.branch,
        **(checked or {}),
    }


def confirm_metadata(
    said: dict[str, str], commit: StagedWorkspace | None, plan: WorkspacePublicationPlan
) -> dict[str, str]:
    """Return what the published merge commit says; nothing is staged when nothing was changed."""
    return said | {
        "perago.phase": "confirm",
        **({"perago.staging_commit": commit.commit} if commit else {}),
        "perago.expected_head": plan.expected_head,
        "perago.supersedes": plan.supersedes,
    }


def message(claim: Claim) -> str:
    """Name the step and the try, for the first line of a log."""
    attempt = claim.attempt
    retry = f" (retry {attempt.retry_count})" if attempt.retry_count else ""
    return f"{attempt.reference_task_name}: {attempt.task_def_name}{retry}"
