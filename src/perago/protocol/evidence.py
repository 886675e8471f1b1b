"""What ``perago conform`` arranged, and what the servers show after it (Q17)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, Final

from perago.protocol.kinds import FenceKind
from perago.protocol.values import Commit, Status, WorkspaceInput

CONFORM: Final = "perago conform"
"""How a reason begins that ``perago conform`` itself wrote, in the place of a dead worker."""

Tree = Mapping[str, str]
"""Key -> checksum."""


class Invariant(StrEnum):
    """The promises that ``perago conform`` looks at."""

    V1 = "V1"
    V2 = "V2"
    V3 = "V3"
    V4 = "V4"
    V5 = "V5"
    V6 = "V6"
    V7 = "V7"
    V8 = "V8"
    V9 = "V9"


MEANINGS: Final[Mapping[Invariant, str]] = {
    Invariant.V1: "the target's history is A, or A and one publication",
    Invariant.V2: "COMPLETED names the published commit, and its tree is the result",
    Invariant.V3: "an accepted publication stays on the target",
    Invariant.V4: "no partial or mixed tree is on the target",
    Invariant.V5: "after a failure a retry or a new workflow can succeed",
    Invariant.V6: "nothing outside of the prefix is changed",
    Invariant.V7: "staging branches are named and removed",
    Invariant.V8: "no key is in an output, a reason, a log or a commit",
    Invariant.V9: "a failure has the documented status, and a reason",
}


class Expected(Enum):
    """What the decision tables allow in a case."""

    PUBLISHED = "A, then one publication; COMPLETED with it"
    KEPT = "A; COMPLETED with A"
    REFUSED = "the target as it was; not COMPLETED"
    NOTHING = "the target as it was; what the worker reports does not count"


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One attempt as Conductor shows it."""

    task_id: str
    retry_count: int
    status: str
    output: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    workflow_instance_id: str = ""
    logical_task_key: str = ""
    task: str = ""
    staging: str = ""
    """What the names of its staging branches begin with: all but the id of the execution."""


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One run of the action that lets lakeFS write down what was done to its branches."""

    event: str
    branch: str
    commit: str


@dataclass(frozen=True, slots=True)
class Arrangement:
    """What was prepared: the input, what stood on the target, and what should come of it."""

    case: str
    expected: Expected
    rule: str
    workspace: WorkspaceInput
    prefix: str
    base: Tree
    wanted: Tree
    """The objects below the prefix that the body leaves, by their whole keys."""
    before: str
    """The head that the attempt found."""
    planted: frozenset[str] = frozenset()
    """Commits on the target that ``perago conform`` made after A."""
    accepted: tuple[str, ...] = ()
    """Refs that Conductor had accepted before the attempt under examination."""
    status: str = Status.FAILED
    """The status of a refusal."""
    kills: int = 0
    fence: FenceKind = "head"
    dirty: bool = False
    """Uncommitted changes were left on the target on purpose."""
    early: bool = False
    """It is to be refused before anything is staged."""
    held: bool = False
    """``perago conform`` itself has the task now: nobody else may report it."""
    probing: bool = False
    """It is the first attempt of a worker under ``hard``: the fence has to be tried (K3)."""

    @property
    def base_ref(self) -> str:
        """Return the commit that a publication comes after: A, or under ``lineage`` H (K2)."""
        superseding = self.fence == "lineage" and self.planted
        return self.before if superseding else self.workspace.ref


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the servers show after a case."""

    arranged: Arrangement
    ended: bool
    head: Commit
    history: tuple[Commit, ...] | None
    """From the head back to A, without A; None when A is not in it."""
    tree: Tree
    dirty: bool
    attempts: tuple[AttemptRecord, ...] = ()
    others: tuple[AttemptRecord, ...] = ()
    """Attempts of other steps of the same workflow."""
    journal: tuple[JournalEntry, ...] = ()
    intents: int = 0
    """Merges that were the first half of a conditional replacement (K3)."""
    left: tuple[str, ...] = ()
    """Branches that were not there before the case."""
    staged: Commit | None = None
    """What the head names as its staging commit; None when there is no such commit."""
    shown: tuple[str, ...] = ()
    """Private branches that were listed although they have to be hidden."""
    reused: tuple[str, ...] = ()
    """Private branches with the execution id of an earlier one."""
    leaks: tuple[str, ...] = ()
    """Where a key or the address of a server was found, as sentences without it."""

    @property
    def completed(self) -> tuple[AttemptRecord, ...]:
        """Return the attempts that Conductor accepted."""
        return tuple(one for one in self.attempts if one.status == Status.COMPLETED)


@dataclass(frozen=True, slots=True)
class BrokenPromise:
    """One thing that does not hold, with the rule that it breaks."""

    invariant: Invariant
    rule: str
    text: str
