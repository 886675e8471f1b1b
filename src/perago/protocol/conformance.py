"""Whether a foreign worker keeps the protocol: what servers show, judged by V1 to V9 (Q17).

``perago conform`` arranges a case, lets the worker act and reads both servers. What it read is an
:class:`Evidence`; what follows from it is decided here. The worker's own words count only where
they are on a server: its output, its reasons, its log, its commits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any, Final

from perago.protocol.kinds import FenceKind
from perago.protocol.values import Commit, Status, WorkspaceInput

CONFORM: Final = "perago conform"
"""How a reason begins that ``perago conform`` itself wrote, in the place of a dead worker."""
_STAGING: Final = re.compile(
    r"perago-staging-[A-Za-z0-9_-]+-seq-\d+-iteration-\d+-task-id-[A-Za-z0-9_-]+-retry-\d+-exec-[A-Za-z0-9_-]+"
)
_SHOWN: Final = 3

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
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Where the worker's words are kept -> the words."""
    secrets: tuple[str, ...] = field(default=(), repr=False)

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


def judge(seen: Evidence) -> list[BrokenPromise]:
    """Return what is broken; nothing means that all that was looked at holds."""
    if not seen.ended:
        return [BrokenPromise(Invariant.V5, "G2", _open(seen))]
    checks = (_history, _outputs, _accepted, _trees, _retries, _outside, _branches, _keys, _reasons)
    return [found for check in checks for found in check(seen)]


def looked_at(seen: Evidence) -> frozenset[Invariant]:
    """Return the promises that a case says something about."""
    if not seen.ended:
        return frozenset({Invariant.V5})
    found = set(Invariant) - {Invariant.V3, Invariant.V5, Invariant.V9}
    replaced = seen.arranged.fence == "hard" and bool(seen.arranged.planted)
    if replaced or seen.arranged.accepted or seen.arranged.expected is Expected.PUBLISHED:
        found.add(Invariant.V3)
    if len(seen.attempts) > 1 or seen.arranged.expected in {Expected.PUBLISHED, Expected.KEPT}:
        found.add(Invariant.V5)
    if any(_of_worker(one) for one in seen.attempts):
        found.add(Invariant.V9)
    return frozenset(found)


def at_rest(seen: Evidence) -> list[BrokenPromise]:
    """Judge the target right after a kill: A or the whole result, and nothing between (V4)."""
    where, rule = seen.arranged, "P1"
    if seen.dirty:
        return [BrokenPromise(Invariant.V4, rule, "a killed worker left uncommitted changes on it")]
    inside = _inside(where, seen.tree)
    if inside in (_inside(where, where.base), where.wanted):
        return []
    text = f"a killed worker left a tree that is neither A nor the result: {_differ(where, inside)}"
    return [BrokenPromise(Invariant.V4, rule, text)]


def _open(seen: Evidence) -> str:
    last = seen.attempts[-1] if seen.attempts else None
    state = "was never scheduled" if last is None else f"is still {last.status}"
    return f"the task {state} when the time was over"


def _history(seen: Evidence) -> Iterator[BrokenPromise]:
    """Compare the history with the decision table (V1)."""
    where, history = seen.arranged, seen.history
    if where.expected in {Expected.REFUSED, Expected.NOTHING}:
        if seen.head.id != where.before:
            text = f"the target went from {where.before} to {seen.head.id}; nothing was allowed"
            yield BrokenPromise(Invariant.V1, where.rule, text)
        return
    if seen.head.id == where.before and not seen.completed:
        return  # It failed closed: V5 says whether it should have.
    if history is None:
        text = f"input {where.workspace.ref} is no longer in the target's history"
        yield BrokenPromise(Invariant.V1, where.rule, text)
        return
    over = [commit.id for commit in history if commit.id in where.planted]
    if over:
        text = f"abandoned publication {over[0]} is still in the target's history"
        yield BrokenPromise(Invariant.V1, where.rule, text)
        return
    most = 1 if where.expected is Expected.PUBLISHED else 0
    if len(history) > most:
        text = f"the target has {len(history)} commits after A, at most {most} allowed"
        yield BrokenPromise(Invariant.V1, where.rule, text)
    elif history and history[0].parents != (where.workspace.ref,):
        text = f"{history[0].id} has the parents {', '.join(history[0].parents)}, not A alone"
        yield BrokenPromise(Invariant.V1, "P1", text)
    merged = [
        entry.commit
        for entry in seen.journal
        if entry.event == "pre-merge" and entry.branch == where.workspace.branch
        if entry.commit != seen.head.id
    ]
    if len(merged) > where.kills:
        text = f"{merged[0]} was published as well, by an attempt that had to be refused"
        yield BrokenPromise(Invariant.V1, where.rule, text)


def _outputs(seen: Evidence) -> Iterator[BrokenPromise]:
    """Compare accepted outputs with the target (V2)."""
    where = seen.arranged
    for one in seen.completed:
        if where.expected in {Expected.REFUSED, Expected.NOTHING}:
            text = f"attempt {one.task_id} is COMPLETED and had to be refused"
            yield BrokenPromise(Invariant.V2, where.rule, text)
            continue
        found = one.output.get("workspace")
        ref = found.get("ref") if isinstance(found, Mapping) else None
        if found != where.workspace.at(str(ref)).as_json():
            text = "output.workspace is not the input's with another ref"
            yield BrokenPromise(Invariant.V2, "I3", text)
        elif ref != seen.head.id:
            text = f"COMPLETED with {ref}, and the target's head is {seen.head.id}"
            rule = "N4" if where.expected is Expected.KEPT else "P5"
            yield BrokenPromise(Invariant.V2, rule, text)
        elif _inside(where, seen.tree) != _result(where):
            text = f"COMPLETED with another tree: {_differ(where, _inside(where, seen.tree))}"
            yield BrokenPromise(Invariant.V2, "S2", text)
        if not isinstance(one.output.get("result"), Mapping):
            yield BrokenPromise(Invariant.V2, "I3", "output.result is not an object")


def _accepted(seen: Evidence) -> Iterator[BrokenPromise]:
    """See that what was accepted is on the target, and that a publication can be asked for (V3)."""
    where = seen.arranged
    reachable = {where.workspace.ref, *(commit.id for commit in seen.history or ())}
    for ref in where.accepted:
        if ref not in reachable:
            text = f"{ref} was accepted as COMPLETED and is no longer on the target"
            yield BrokenPromise(Invariant.V3, where.rule, text)
    if where.fence == "hard" and where.planted and seen.completed and not seen.intents:
        text = "the target was moved without a condition that the server checks"
        yield BrokenPromise(Invariant.V3, "K3", text)
    for one in seen.completed if where.expected is Expected.PUBLISHED else ():
        said = seen.head.metadata
        names = {
            "perago.workflow_instance_id": one.workflow_instance_id,
            "perago.logical_task_key": one.logical_task_key,
            "perago.task_id": one.task_id,
            "perago.retry_count": str(one.retry_count),
        }
        wrong = [name for name, value in names.items() if said.get(name) != value]
        if not said.get("perago.execution_id"):
            wrong.append("perago.execution_id")
        if wrong:
            text = f"the published commit lacks the right {', '.join(wrong)}"
            why = "no attempt can ask whether it was accepted"
            yield BrokenPromise(Invariant.V3, "S5", f"{text}: {why}")


def _trees(seen: Evidence) -> Iterator[BrokenPromise]:
    """See that the target holds one whole tree, made in private (V4)."""
    where = seen.arranged
    if seen.dirty:
        yield BrokenPromise(Invariant.V4, "P4", "the target has uncommitted changes")
    for entry in seen.journal:
        if entry.event == "pre-commit" and entry.branch == where.workspace.branch:
            text = f"commit {entry.commit} was made on the target itself: others saw it grow"
            yield BrokenPromise(Invariant.V4, "S1", text)
    moved = seen.head.id != where.before
    if moved and where.expected in {Expected.PUBLISHED, Expected.KEPT}:
        inside = _inside(where, seen.tree)
        if inside not in (_inside(where, where.base), _result(where)):
            text = f"the target's tree is neither A nor the result: {_differ(where, inside)}"
            yield BrokenPromise(Invariant.V4, where.rule, text)


def _retries(seen: Evidence) -> Iterator[BrokenPromise]:
    """See that an attempt that may succeed does (V5)."""
    where = seen.arranged
    if where.expected not in {Expected.PUBLISHED, Expected.KEPT} or seen.completed:
        return
    last = seen.attempts[-1] if seen.attempts else None
    why = f"{last.status}: {last.reason}" if last else "there was no attempt"
    yield BrokenPromise(Invariant.V5, where.rule, f"no attempt could complete ({why})")


def _outside(seen: Evidence) -> Iterator[BrokenPromise]:
    """See that only the prefix was changed (V6)."""
    where = seen.arranged
    if where.expected not in {Expected.PUBLISHED, Expected.KEPT}:
        return
    found = {key: value for key, value in seen.tree.items() if not key.startswith(where.prefix)}
    base = {key: value for key, value in where.base.items() if not key.startswith(where.prefix)}
    if found != base:
        keys = _some(key for key in sorted({*found, *base}) if found.get(key) != base.get(key))
        text = f"objects outside of {where.prefix} were changed: {keys}"
        yield BrokenPromise(Invariant.V6, "S2", text)


def _branches(seen: Evidence) -> Iterator[BrokenPromise]:
    """See that private branches are named as they have to be, and gone (V7)."""
    target = seen.arranged.workspace.branch
    made = {entry.branch for entry in seen.journal if entry.event == "post-create-branch"}
    for name in sorted(made | set(seen.left)):
        if name != target and not _is_staging(name, (*seen.attempts, *seen.others)):
            text = f"branch {name} is not named after the attempt that made it"
            yield BrokenPromise(Invariant.V7, "S1", text)
    if len(seen.left) > seen.arranged.kills:
        text = f"left behind: {_some(sorted(seen.left))}"
        yield BrokenPromise(Invariant.V7, "S4", text)


def _is_staging(name: str, attempts: Iterable[AttemptRecord]) -> bool:
    if name.startswith("perago-probe-"):  # Fence hard is tried on such a branch.
        return True
    return bool(_STAGING.fullmatch(name)) and any(
        f"-task-id-{one.task_id}-retry-{one.retry_count}-" in name for one in attempts
    )


def _keys(seen: Evidence) -> Iterator[BrokenPromise]:
    """Look for keys in everything that the worker wrote (V8); the key itself is not repeated."""
    for place, text in seen.texts.items():
        if any(secret and secret in text for secret in seen.secrets):
            yield BrokenPromise(Invariant.V8, "I7", f"{place} holds a key")


def _reasons(seen: Evidence) -> Iterator[BrokenPromise]:
    """Compare status and reason of failures with the table of results (V9)."""
    where = seen.arranged
    for one in filter(_of_worker, seen.attempts):
        if not one.reason.strip():
            yield BrokenPromise(
                Invariant.V9, "R1", f"attempt {one.task_id} failed without a reason"
            )
    last = seen.attempts[-1] if seen.attempts else None
    if where.expected is not Expected.REFUSED or last is None or not _of_worker(last):
        return
    if last.status != where.status:
        text = f"a refusal has the status {last.status}, expected {where.status}"
        yield BrokenPromise(Invariant.V9, where.rule, text)


def _of_worker(one: AttemptRecord) -> bool:
    """Tell whether the worker itself reported a failure."""
    failed = one.status in {Status.FAILED, Status.FAILED_WITH_TERMINAL_ERROR}
    return failed and not one.reason.startswith(CONFORM)


def _inside(where: Arrangement, tree: Tree) -> dict[str, str]:
    return {key: value for key, value in tree.items() if key.startswith(where.prefix)}


def _result(where: Arrangement) -> Tree:
    """Return what should be below the prefix in the end."""
    if where.expected is Expected.PUBLISHED:
        return where.wanted
    return _inside(where, where.base)


def _differ(where: Arrangement, found: Tree) -> str:
    wanted = _result(where)
    missing = sorted(wanted.keys() - found.keys())
    strange = sorted(found.keys() - wanted.keys())
    other = sorted(key for key in wanted.keys() & found.keys() if wanted[key] != found[key])
    parts = (("missing", missing), ("not expected", strange), ("different", other))
    return "; ".join(f"{name} {_some(keys)}" for name, keys in parts if keys)


def _some(keys: Iterable[str]) -> str:
    listed = list(keys)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(map(ascii, listed[:_SHOWN])) + more
