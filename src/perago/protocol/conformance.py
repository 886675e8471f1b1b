"""Whether a foreign worker keeps the protocol: what servers show, judged by V1 to V9 (Q17).

``perago conform`` arranges a case, lets the worker act and reads both servers. What it read is an
:class:`Evidence`; what follows from it is decided here. The worker's own words count only where
they are on a server: its output, its reasons, its log, its commits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from perago.protocol.audit_check import PublishedWords, wrong_words
from perago.protocol.evidence import (
    CONFORM,
    Arrangement,
    AttemptRecord,
    BrokenPromise,
    Evidence,
    Expected,
    Invariant,
    Tree,
)
from perago.protocol.values import Commit, Status

PROBE: Final = "perago-probe-"
"""How the name of a branch begins on which fence ``hard`` is tried."""
_EXECUTION: Final = re.compile(r"[A-Za-z0-9_-]{1,48}")
_OUTPUT: Final = frozenset({"workspace", "result"})
_SHOWN: Final = 3


def judge(seen: Evidence) -> list[BrokenPromise]:
    """Return what is broken; nothing means that all that was looked at holds."""
    if not seen.ended:
        return [BrokenPromise(Invariant.V5, "G2", _open(seen))]
    checks = (
        *(_history, _merges, _untouched, _outputs, _accepted, _words, _trees, _retries, _leases),
        *(_outside, _branches, _keys, _reasons),
    )
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
    superseding = where.fence == "lineage" and where.expected is Expected.PUBLISHED
    over = [commit.id for commit in history if commit.id in where.planted]
    if over and not superseding:
        text = f"abandoned publication {over[0]} is still in the target's history"
        yield BrokenPromise(Invariant.V1, where.rule, text)
        return
    most = 1 if where.expected is Expected.PUBLISHED else 0
    if len(history) - len(over) > most:
        text = f"the target has {len(history)} commits after A, at most {most + len(over)} allowed"
        yield BrokenPromise(Invariant.V1, where.rule, text)
    elif history and history[0].parents != (where.base_ref,):
        text = f"{history[0].id} has the parents {', '.join(history[0].parents)}"
        text += f", expected {where.base_ref} alone"
        yield BrokenPromise(Invariant.V1, "K2" if superseding and over else "P1", text)


def _merges(seen: Evidence) -> Iterator[BrokenPromise]:
    """See that the target was moved by one act of one attempt (V1)."""
    where = seen.arranged
    if where.expected not in {Expected.PUBLISHED, Expected.KEPT}:
        return
    if seen.head.id == where.before and not seen.completed:
        return
    merged = _merged(seen)
    others = [commit for commit in merged if commit != seen.head.id]
    if len(others) > where.kills:
        text = f"{others[0]} was published as well, by an attempt that had to be refused"
        yield BrokenPromise(Invariant.V1, where.rule, text)
    on_input = seen.head.parents == (where.workspace.ref,)
    if where.planted and where.fence == "head" and on_input and seen.head.id in merged:
        text = f"{seen.head.id} was merged after the target had been moved: two visible acts"
        yield BrokenPromise(Invariant.V1, where.rule, text)


def _merged(seen: Evidence) -> list[str]:
    """Return the commits that were merged into the target."""
    target = seen.arranged.workspace.branch
    return [e.commit for e in seen.journal if e.event == "pre-merge" and e.branch == target]


def _untouched(seen: Evidence) -> Iterator[BrokenPromise]:
    """See that nothing was staged where nothing is to be written (V1)."""
    where = seen.arranged
    if not where.early and where.expected is not Expected.KEPT:
        return
    for entry in seen.journal:
        made = entry.event in {"post-create-branch", "pre-commit"}
        if made and entry.branch != where.workspace.branch and not entry.branch.startswith(PROBE):
            what = "a commit was made on" if entry.event == "pre-commit" else "there was"
            text = f"{what} branch {entry.branch}, although nothing is to be written"
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
        if more := sorted(one.output.keys() - _OUTPUT):
            text = f"the output has more than workspace and result: {_some(more)}"
            yield BrokenPromise(Invariant.V2, "I3", text)


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
    if where.probing and not any(entry.branch.startswith(PROBE) for entry in seen.journal):
        text = "fence hard was not tried before the first attempt"
        yield BrokenPromise(Invariant.V3, "K3", text)


def _words(seen: Evidence) -> Iterator[BrokenPromise]:
    """Compare what the published commit says with what it has to say (V3)."""
    where = seen.arranged
    for one in seen.completed if where.expected is Expected.PUBLISHED else ():
        # K2: what an earlier attempt published may be the result of this one, too.
        maker = next((a for a in seen.attempts if _made(a, seen.head)), one)
        attempt = maker if where.fence == "lineage" and where.kills else one
        said = PublishedWords(
            identity={
                "perago.workflow_instance_id": attempt.workflow_instance_id,
                "perago.logical_task_key": attempt.logical_task_key,
                "perago.task": attempt.task,
                "perago.task_id": attempt.task_id,
                "perago.retry_count": str(attempt.retry_count),
                "perago.input_ref": where.workspace.ref,
                "perago.target_branch": where.workspace.branch,
                "perago.prefix": f"/{where.prefix}".rstrip("/") or "/",
            },
            staging=attempt.staging,
            input_ref=where.workspace.ref,
            base_ref=where.base_ref,
        )
        merged = seen.head.id in _merged(seen)
        if wrong := wrong_words(said, seen.head, seen.staged, merged=merged):
            text = f"the published commit lacks the right {', '.join(wrong)}"
            why = "no attempt can ask whether it was accepted"
            yield BrokenPromise(Invariant.V3, "S5", f"{text}: {why}")


def _made(one: AttemptRecord, commit: Commit) -> bool:
    return commit.metadata.get("perago.task_id") == one.task_id


def _trees(seen: Evidence) -> Iterator[BrokenPromise]:
    """See that the target holds one whole tree, made in private (V4)."""
    where = seen.arranged
    if seen.dirty and not where.dirty:
        yield BrokenPromise(Invariant.V4, "P4", "the target has uncommitted changes")
    if where.dirty and not seen.dirty:
        yield BrokenPromise(Invariant.V4, "P4", "uncommitted changes of others are gone")
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


def _leases(seen: Evidence) -> Iterator[BrokenPromise]:
    """See that the lease was extended while the body worked (V5)."""
    for one in seen.attempts if not seen.arranged.kills else ():
        if one.status == Status.TIMED_OUT:
            text = f"attempt {one.task_id} timed out: its lease was not extended"
            yield BrokenPromise(Invariant.V5, "W4", text)


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
    for name in seen.shown:
        yield BrokenPromise(Invariant.V7, "S1", f"branch {name} is not hidden")
    for name in seen.reused:
        text = f"branch {name} has the execution id of an earlier one: it has to be new"
        yield BrokenPromise(Invariant.V7, "S1", text)
    if len(seen.left) > seen.arranged.kills:
        text = f"left behind: {_some(sorted(seen.left))}"
        yield BrokenPromise(Invariant.V7, "S4", text)


def execution_of(name: str, one: AttemptRecord) -> str | None:
    """Return the execution id in the name of a staging branch of an attempt; None if it is none."""
    found = name[len(one.staging) :] if one.staging and name.startswith(one.staging) else ""
    return found if _EXECUTION.fullmatch(found) else None


def _is_staging(name: str, attempts: Iterable[AttemptRecord]) -> bool:
    return name.startswith(PROBE) or any(execution_of(name, one) for one in attempts)


def _keys(seen: Evidence) -> Iterator[BrokenPromise]:
    """Tell where keys were found in what the worker wrote (V8)."""
    for sentence in seen.leaks:
        yield BrokenPromise(Invariant.V8, "I7", sentence)


def _reasons(seen: Evidence) -> Iterator[BrokenPromise]:
    """Compare status and reason of failures with the table of results (V9)."""
    where = seen.arranged
    for one in filter(_of_worker, seen.attempts):
        if not one.reason.strip():
            yield BrokenPromise(
                Invariant.V9, "R1", f"attempt {one.task_id} failed without a reason"
            )
        elif len(one.reason.strip().splitlines()) > 1:
            text = f"the reason of attempt {one.task_id} has several lines"
            yield BrokenPromise(Invariant.V9, "R1", text)
    last = seen.attempts[-1] if seen.attempts else None
    if where.held and last and last.status != Status.IN_PROGRESS:
        text = f"a lost execution reported {last.status} for a task that another one has"
        yield BrokenPromise(Invariant.V9, "F1", text)
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
