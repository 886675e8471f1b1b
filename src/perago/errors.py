"""One root, one class per meaning; whether a retry can help is written on the class.

Every message is one sentence: what, where, and (as ``remedy``) what to do about it.
"""

from __future__ import annotations

from typing import ClassVar


class PeragoError(Exception):
    """Root of everything Perago raises on purpose."""

    terminal: ClassVar[bool] = False

    def __init__(self, message: object = "", *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = str(message)
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}; {self.remedy}" if self.remedy else self.message

    def __reduce__(self) -> tuple[object, ...]:
        """Survive the trip between processes with the remedy attached."""
        return (_rebuild, (type(self), self.message, self.remedy))


def _rebuild(kind: type[PeragoError], message: str, remedy: str) -> PeragoError:
    return kind(message, remedy=remedy)


RESTART = "start a new workflow from the current head of the branch: perago restart WORKFLOW"
"""What helps against a fence; the attempt puts the id of its workflow into it."""


def restart_named(text: str, workflow_id: str) -> str:
    """Put the id of a workflow where the remedy of a fence has none."""
    named = RESTART.replace("WORKFLOW", workflow_id or "WORKFLOW")
    return text.replace(RESTART, named)


# --- raised by task authors -------------------------------------------------------------------


class TaskFailed(PeragoError):
    """The task could not do its work this time; a retry may succeed."""


class TaskTerminalError(PeragoError):
    """The task can never succeed on this input; do not retry."""

    terminal = True


class GuardrailViolation(PeragoError):
    """The workspace does not look as a guardrail demands."""


class PreGuardrailViolation(GuardrailViolation):
    """The input breaks a pre guardrail: the same input will break it again."""

    terminal = True


class PostGuardrailViolation(GuardrailViolation):
    """The result breaks a post guardrail; nothing of it is published."""


# --- mistakes in what people write ------------------------------------------------------------


class TaskDefinitionError(PeragoError):
    """A task declaration is wrong; found at import."""

    argument = ""
    """The argument of a declaration that is wrong, if it is one."""
    problem = ""
    """What is wrong with it."""


class WorkflowDefinitionError(PeragoError):
    """A workflow file is wrong, or asks for something that is not run here."""


class TaskInputError(PeragoError):
    """The input of an attempt does not have the required shape."""


class TaskParamsError(TaskInputError):
    """The params do not fit the task's model: the same params never will."""

    terminal = True


class RuntimeConfigError(PeragoError):
    """The worker's own configuration is missing or wrong."""


class UsageError(PeragoError):
    """A command was given something it cannot work with."""


class EventLogError(UsageError):
    """The event log cannot be opened or written; once something is visible, no attempt fails."""


# --- the workspace on this machine ------------------------------------------------------------


class WorkspaceError(PeragoError):
    """The attempt directory cannot be used."""


class UnsafePathError(WorkspaceError):
    """A key or path that must not be mapped to a file."""


class UnpublishableFileError(WorkspaceError):
    """Something in the attempt directory is not a plain, quiet file."""


class ResultError(PeragoError):
    """The task returned something its result model does not accept."""


# --- fences -----------------------------------------------------------------------------------


class StaleAttemptError(PeragoError):
    """This attempt is no longer the current one."""


class PublishFenceError(PeragoError):
    """The target branch is not where this attempt may publish."""


# --- stores and brokers -----------------------------------------------------------------------


class StoreError(PeragoError):
    """The store answered, and the answer is no."""


class NotFoundError(StoreError):
    """No such repository, branch, commit or object, or nothing of that name at the broker."""


class AlreadyExistsError(StoreError):
    """The name is taken."""


class NothingToCommitError(StoreError):
    """The branch holds no change, and an empty commit is not made (G1)."""


class PermissionRefusedError(StoreError):
    """The store or the broker does not permit this to the worker."""


class LostRaceError(StoreError):
    """Another writer moved the branch first; nothing of ours was written."""


class MergeConflictError(StoreError):
    """Both sides changed the same path."""


class CorruptObjectError(StoreError):
    """What was read is not what was stored."""


class StoreUnavailableError(StoreError):
    """The store could not be asked; nothing is known to have changed."""


class OutcomeUnknownError(StoreError):
    """A write was sent and its answer was lost: it may or may not have been applied."""


class BrokerError(PeragoError):
    """The workflow engine answered, and the answer is no."""


class BrokerUnavailableError(BrokerError):
    """The workflow engine could not be asked; what was sent may have arrived."""


class LedgerUnavailableError(PeragoError):
    """The ledger could not be asked or told; no attempt fails because of it."""
