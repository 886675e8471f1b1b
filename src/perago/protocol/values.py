"""The nouns of the specification (section 1) as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal


class Status(StrEnum):
    """How Conductor names the state of a task."""

    SCHEDULED = "SCHEDULED"
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    FAILED_WITH_TERMINAL_ERROR = "FAILED_WITH_TERMINAL_ERROR"
    TIMED_OUT = "TIMED_OUT"
    CANCELED = "CANCELED"
    SKIPPED = "SKIPPED"
    COMPLETED_WITH_ERRORS = "COMPLETED_WITH_ERRORS"


class Phase(StrEnum):
    """The steps of one attempt, in the order of section 4."""

    INPUT = "input"
    ATTEMPT_DIR = "attempt directory"
    DOWNLOAD = "download"
    PRE = "pre guardrail"
    BODY = "body"
    RESULT = "result model"
    POST = "post guardrail"
    DIFF = "diff"
    FENCE_ONE = "first attempt fence"
    STAGE = "stage"
    FENCE_TWO = "second attempt fence"
    PUBLISH = "publish"
    CLEAN_STAGING = "staging cleanup"
    CLEAN_ATTEMPT_DIR = "directory cleanup"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One Conductor delivery of a task."""

    workflow_instance_id: str
    task_id: str
    retry_count: int
    reference_task_name: str
    task_def_name: str
    seq: int = 0
    iteration: int = 0
    started_at: int = 0
    """When the engine handed it out first, in its own milliseconds; 0 when it does not tell."""

    @property
    def logical_task_key(self) -> str:
        """Name the workflow step: the same for every retry and every delivery of it."""
        return f"{self.workflow_instance_id}:{self.reference_task_name}:{self.iteration}"


@dataclass(frozen=True, slots=True)
class AttemptSnapshot:
    """What the broker says of a task at one moment."""

    workflow_instance_id: str
    task_id: str
    retry_count: int
    status: str
    started_at: int = 0


@dataclass(frozen=True, slots=True)
class Person:
    """Who does an attempt by hand, and which of its executions were theirs (Q11, Q13)."""

    name: str
    submits: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Claim:
    """An attempt as it was handed to an executor, its input not yet looked at."""

    attempt: Attempt
    input: Mapping[str, object]
    execution_id: str
    lease_seconds: float = 0.0
    """How long the broker waits for a sign of life; 0 means that it never gives up."""
    trace: Mapping[str, str] = field(default_factory=dict)
    """Where the caller's trace stands (W3C ``traceparent``), if it told."""
    person: Person | None = None
    """Who did the work, where that was no program."""


@dataclass(frozen=True, slots=True)
class WorkspaceInput:
    """Where an attempt reads (``ref`` is A) and which branch it may move."""

    repository: str
    branch: str
    ref_type: Literal["commit"]
    ref: str
    spelling: Literal["ref_type", "refType"] = field(default="ref_type", compare=False)

    def at(self, ref: str) -> WorkspaceInput:
        """Return the same workspace at another commit (I3: only ``ref`` changes)."""
        return replace(self, ref=ref)

    def as_json(self) -> dict[str, str]:
        """Spell the output as the input was spelled (I2)."""
        return {
            "repository": self.repository,
            "branch": self.branch,
            self.spelling: self.ref_type,
            "ref": self.ref,
        }


@dataclass(frozen=True, slots=True)
class Entry:
    """Content of one file. ``checksum`` is ``<algorithm>:<hex>``, or empty when unknown."""

    size: int
    checksum: str


Manifest = Mapping[str, Entry]
"""Path below the prefix -> content. Only files: empty directories are not content (T7)."""


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One line of a store's listing; ``key`` is raw and not to be trusted (D2)."""

    key: str
    size: int
    checksum: str
    kind: str = "object"

    @property
    def entry(self) -> Entry:
        """Return what a file of it holds."""
        return Entry(self.size, self.checksum)


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """How one manifest becomes another; paths sorted."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)

    def as_json(self) -> dict[str, tuple[str, ...]]:
        """Return it as plain values."""
        return {"added": self.added, "changed": self.changed, "removed": self.removed}

    @property
    def uploads(self) -> tuple[str, ...]:
        """Return the paths whose bytes have to travel."""
        return tuple(sorted((*self.added, *self.changed)))


@dataclass(frozen=True, slots=True)
class Commit:
    """One version of a repository. ``parents[0]`` is the direct first parent."""

    id: str
    parents: tuple[str, ...]
    message: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    created_at: float = 0.0
    tree: str = ""
    """Two commits with the same tree hold the same objects; empty when the store names none."""

    @property
    def parent(self) -> str | None:
        """Return ``parents[0]``, or None for a root."""
        return self.parents[0] if self.parents else None


@dataclass(frozen=True, slots=True)
class Staging:
    """Identity of a staging branch; it exists before the branch does (S4)."""

    repository: str
    branch: str


@dataclass(frozen=True, slots=True)
class StagedWorkspace:
    """All that publish and cleanup need to know of a staged change (S4)."""

    repository: str
    branch: str
    commit: str
