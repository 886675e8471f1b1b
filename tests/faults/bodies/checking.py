"""What must hold after a case (V1 to V9); everything that is found is a sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perago.protocol.values import Phase
from perago.stores.embedded import EmbeddedStore
from tests import injection
from tests.faults.bodies import canary
from tests.faults.bodies.body import BASE, COMPLETED, Body, Tree, ordinary
from tests.lakefs_lab import ArrangedLakeFS

AnyStore = EmbeddedStore | ArrangedLakeFS
BRANCH = "main"
WELL: Tree = {"data/well.txt": b"well\n"}
FAILURES = frozenset({"FAILED", "FAILED_WITH_TERMINAL_ERROR"})
REASON_LENGTH = 500
# What a reason may begin with: a phase of section 10, the words for an executor that died (R3),
# or those of the broker for an attempt that took too long.
DOCUMENTED = (*(f"{phase}:" for phase in Phase), "executor", "timeoutSeconds", "responseTimeout")


@dataclass(frozen=True)
class Attempt:
    """One attempt as the broker tells of it."""

    status: str
    reason: str
    output: Mapping[str, Any]

    @property
    def ref(self) -> str:
        return str(self.output["workspace"]["ref"])

    @property
    def run(self) -> int:
        """Say which run of the body it was; the first one did the deed."""
        return int(self.output["result"]["run"])


def plant(scratch: Path, secret: str) -> None:
    """Make what a case needs outside: canaries, and a key within reach of the body."""
    scratch.mkdir(parents=True)
    canary.plant(scratch / "outside")
    beside = scratch.parent / "ground" / "beside"
    if not beside.exists():
        canary.plant(beside)
    (scratch / "secret").write_text(secret)


def did_it(scratch: Path) -> bool:
    """Tell whether the body came as far as its deed: what is outside is looked at right before."""
    return not injection.OFF and (scratch / "before.json").exists()


def outside(body: Body, scratch: Path) -> Iterator[str]:
    """Look whether everything outside is as it was (V6)."""
    try:
        before = json.loads((scratch / "before.json").read_text())
    except (OSError, ValueError):
        yield "V5: the body was never run"
        return
    seen = [*before.items()]
    watched = scratch / "watched.jsonl"
    if watched.exists():
        seen += [json.loads(line) for line in watched.read_text().splitlines()]
    for place, snapshot in seen:
        now, shown = canary.snapshot(Path(place)), Path(place).name
        if "rooms" in Path(place).parts:  # A sweep has to look whether it is ours.
            snapshot[""]["atime"] = now.get("", {}).get("atime")
        changes = list(canary.differences(snapshot, now, loose=body.loose))
        yield from (f"V6: outside, {shown}: {change}" for change in changes[:3])
        if len(changes) > 3:
            yield f"V6: outside, {shown}: {len(changes) - 3} more differences"


def statuses(body: Body, hostile: Sequence[Attempt], well: Sequence[Attempt]) -> Iterator[str]:
    """Look at the documented statuses and reasons (V9), and whether it could go on (V5)."""
    if not hostile:
        yield "V5: the hostile step was never scheduled"
        return
    first, *later = hostile
    if not body.interrupts:
        if first.status not in body.statuses:
            wanted = " or ".join(sorted(body.statuses))
            yield f"V9: {first.status} instead of {wanted}: {first.reason!a}"
        elif first.status != COMPLETED and not re.search(body.reason, first.reason):
            yield f"V9: the reason does not say {body.reason!r}: {first.reason!a}"
    for attempt in hostile:
        if attempt.status in FAILURES:
            yield from _one_reason(attempt.reason)
    for attempt in [*later, *well]:
        if attempt.status != COMPLETED:
            yield f"V5: what behaves is {attempt.status}: {attempt.reason!a}"


def _one_reason(reason: str) -> Iterator[str]:
    """Find what keeps a reason from being one clear sentence (R1)."""
    if not reason.startswith(DOCUMENTED):
        yield f"V9: the reason does not begin with a phase: {reason!a}"
    elif "\n" in reason or "Traceback" in reason:
        yield f"V9: the reason is not one line: {reason!a}"
    elif len(reason) > REASON_LENGTH:
        yield f"V9: the reason has {len(reason)} characters"


@dataclass(frozen=True)
class Published:
    """Compares history and trees of a target with what must be there, byte by byte."""

    store: AnyStore
    repository: str
    base: str
    body: Body

    def findings(self, hostile: Sequence[Attempt], well: Sequence[Attempt]) -> Iterator[str]:
        """Check V1, V2 and V4, and that no branch is left (V7)."""
        tree, by_deed = dict(BASE), False
        steps: list[tuple[str, Tree, bool]] = []
        for attempt in hostile:
            if attempt.status == COMPLETED:
                by_deed = attempt.run == 0
                if self.body.task != "look":
                    tree = ordinary(tree)
                    tree = {**self.body.tree(tree)} if by_deed else tree
                steps.append((attempt.ref, dict(tree), by_deed))
        done = [attempt for attempt in well if attempt.status == COMPLETED]
        steps += [(attempt.ref, {**tree, **WELL}, by_deed) for attempt in done]
        yield from self._history([ref for ref, _, _ in steps])
        for ref, wanted, loosely in steps:
            for problem in self._differences(ref, wanted, loosely=loosely):
                yield f"V2: in {ref[:8]}: {problem}"
        branches = {found.name for found in self.store.branches(self.repository, hidden=True)}
        if branches != {BRANCH}:
            yield f"V7: branches are left: {sorted(branches - {BRANCH})}"

    def _history(self, refs: Sequence[str]) -> Iterator[str]:
        history = [commit.id for commit in self.store.history(self.repository, BRANCH)]
        if self.base not in history:
            yield "V1: the input is no longer on the target's history"
            return
        found = history[: history.index(self.base) + 1]
        wanted = list(dict.fromkeys([self.base, *refs]))[::-1]
        if found != wanted:
            yield f"V1: the history is {found}, not {wanted}"

    def _differences(self, ref: str, tree: Tree, *, loosely: bool) -> Iterator[str]:
        found = {info.key: info.size for info in self.store.listing(self.repository, ref, "")}
        for key in sorted(tree.keys() - found.keys())[:5]:
            yield f"{key!a} is missing"
        for key in sorted(found):
            if key in tree and found[key] != len(tree[key]):
                yield f"{key!a} has {found[key]} bytes instead of {len(tree[key])}"
                continue
            if isinstance(self.store, ArrangedLakeFS) and key.startswith("data/n/"):
                continue  # Ten thousand small ones: their sizes will do.
            with self.store.open_object(self.repository, ref, key) as file:
                content = file.read()
            valid = self.body.valid if loosely else None
            if key in tree and content != tree[key]:
                yield f"{key!a} has other bytes"
            elif key not in tree and not (valid and valid(key, content)):
                yield f"{key!a} should not be there"


def secrets(places: Iterable[Path], secret: str, since: float) -> Iterator[str]:
    """Look for a key in everything that was written since (V8)."""
    for place in places:
        for path in [place, *place.rglob("*")]:
            if not path.is_file() or path.stat().st_mtime < since - 1:
                continue
            if secret.encode() in path.read_bytes():
                yield f"V8: the key is in {path.name}"
