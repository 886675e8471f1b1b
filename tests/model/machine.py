"""The state machine: attempts that walk, die, are given up and come back, on a real store.

Under ``hard`` everything may happen. The other two are given what section 14 demands: no second
delivery of one attempt, and one workflow at a time.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from perago.ledger.sql import SqlLedger
from perago.ledger.sqlite import SqliteDatabase
from perago.protocol.kinds import FenceKind
from perago.protocol.values import Attempt, Commit, Staging, Status
from perago.tasks.declaration import definition_of
from perago.testing import Fault, Lab, ManualClock, Run
from perago.workspace.sweeper import remove_attempt_dir_of
from tests.model.tasks import DEPOSITS, GIVEN
from tests.model.walker import Held, Unanswered, Walker

MOST_ALIVE = 4
BY_HAND = 2
"""So many commits and so many resets by hand in one history; more only tell the same again."""
which = st.integers(0, 7)
places = st.sampled_from(
    [
        "after body",
        "committed",
        "after second attempt fence",
        "decision",
        "decision",
        "published",
        "before report",
        "the end",
    ]
)
mostly = st.sampled_from([True, True, False])
troubles = st.sampled_from(["none", "none", "none", "held", "applied", "lost"])


class Publications(RuleBasedStateMachine):
    """One branch, and everyone who wants to publish on it."""

    fence: ClassVar[FenceKind] = "hard"
    keeps_ledger: ClassVar[bool] = False
    """Whether attempts may complete with what an earlier one published (K5)."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="perago-machine-"))
        (self.place / "outside.txt").write_text("untouched")
        self.lab = self.open(self.place / "lab")
        self.task: Callable[..., Any] = DEPOSITS[self.fence]  # type: ignore[assignment]
        self.walkers: list[Walker] = []
        self.held: list[Held] = []
        self.by_hand: set[str] = set()
        self.swept: set[str] = set()
        self.taken_back: set[str] = set()
        self.resets = 0
        self.text_of_step = ""
        self._texts = 0
        self._trees: dict[str, dict[str, bytes]] = {}

    def open(self, place: Path) -> Lab:
        """Give an empty lab; other stores are other machines."""
        if not self.keeps_ledger:
            return Lab(place, ManualClock())
        place.mkdir()
        ledger = SqlLedger(SqliteDatabase(place / "ledger.sqlite"))
        return Lab(place, ManualClock(), ledger=ledger)

    def hard_reset(self, ref: str) -> None:
        """Move the branch as a person does."""
        self.lab.store.hard_reset(self.lab.repository, "main", ref)  # type: ignore[attr-defined]

    # --- who is there -----------------------------------------------------------------------

    @property
    def alive(self) -> list[Walker]:
        return [walker for walker in self.walkers if walker.alive]

    @property
    def current(self) -> Walker | None:
        """Return the latest attempt, unless its step is over."""
        if not self.walkers:
            return None
        last = self.walkers[-1]
        return None if self.status(last) in {Status.COMPLETED, Status.CANCELED} else last

    def status(self, walker: Walker) -> Status:
        return Status(self.lab.broker.current(walker.attempt).status)

    def some(self, number: int) -> Walker:
        return self.alive[number % len(self.alive)]

    def next_text(self, *, changes: bool) -> str:
        self._texts += 1
        return f"t{self._texts}" if changes else ""

    def begin(self, begin: Callable[[Sequence[Fault]], Run], to: str, trouble: str) -> None:
        """Start an attempt, which walks as far as it may at once."""
        faults: list[Fault] = []
        if trouble == "held":
            self.held.append(Held())
            faults.append(self.held[-1])
        elif trouble != "none":
            faults.append(Unanswered(applied=trouble == "applied"))
        self.walkers.append(Walker(begin, *faults))
        self.walkers[-1].walk(to)

    # --- what may happen --------------------------------------------------------------------

    @initialize()
    def given(self) -> None:
        self.lab.commit(GIVEN)

    @precondition(lambda self: self.current is None and len(self.alive) < MOST_ALIVE)
    @rule(changes=mostly, to=places, trouble=troubles)
    def claim(self, changes: bool, to: str, trouble: str) -> None:
        """A new workflow starts from the head."""
        params = {"text": self.next_text(changes=changes or self.keeps_ledger)}
        self.text_of_step = params["text"]
        self.lab.store.finished_head(self.lab.repository, "main")
        self.begin(lambda faults: self.lab.run(self.task, params, faults=faults), to, trouble)

    @precondition(lambda self: self.current is not None and len(self.alive) < MOST_ALIVE)
    @rule(changes=mostly, to=places, trouble=troubles)
    def retry(self, changes: bool, to: str, trouble: str) -> None:
        """The engine gives the attempt up and hands out the next one, with the same input."""
        assert self.current
        before = self.run_of(self.current, changes=changes)
        if self.keeps_ledger:  # Only with the same params a publication may be adopted.
            before = replace(before, params={"text": self.text_of_step})
        self.begin(lambda faults: self.lab.retry(before, faults=faults), to, trouble)

    @precondition(lambda self: self.fence == "hard" and self.current is not None)
    @precondition(lambda self: len(self.alive) < MOST_ALIVE)
    @rule(to=places, trouble=troubles)
    def twin(self, to: str, trouble: str) -> None:
        """The engine delivers the same attempt once more."""
        assert self.current
        same = self.run_of(self.current, changes=True)
        self.begin(lambda faults: self.lab.again(same, faults=faults), to, trouble)

    def run_of(self, walker: Walker, *, changes: bool) -> Run:
        params = {"text": self.next_text(changes=changes)}
        task = definition_of(self.task)
        return Run(self.lab, task, walker.attempt, walker.workspace, params, None, "")

    @precondition(lambda self: self.alive)
    @rule(number=which, to=places)
    def resume(self, number: int, to: str) -> None:
        """An attempt goes on; whether it is still the current one it has to find out."""
        self.some(number).walk(to)

    @precondition(lambda self: self.alive)
    @rule(number=which)
    def publish(self, number: int) -> None:
        """An attempt goes on to its end."""
        self.some(number).finish()

    @precondition(lambda self: self.alive)
    @rule(number=which)
    def crash(self, number: int) -> None:
        self.some(number).crash()

    @precondition(lambda self: any(held.request for held in self.held))
    @rule(number=which)
    def arrive(self, number: int) -> None:
        """A publication that was held up reaches the store."""
        waiting = [held for held in self.held if held.request]
        waiting[number % len(waiting)].arrive()

    @precondition(lambda self: self.current is not None)
    @rule()
    def give_up(self) -> None:
        """The engine ends the workflow; the next one starts from what is there."""
        assert self.current
        self.lab.broker.set_status(self.current.attempt, Status.CANCELED)

    @precondition(lambda self: self.walkers and len(self.by_hand) < BY_HAND)
    @rule()
    def foreign_commit(self) -> None:
        """Somebody commits straight to the branch, as nobody should, but not amid a replacement."""
        self.lab.store.finished_head(self.lab.repository, "main")
        text = self.next_text(changes=True)
        self.lab.commit({f"foreign/{text}.txt": text})
        self.by_hand.add(self.lab.head.id)

    @precondition(lambda self: self.current is not None and self.resets < BY_HAND)
    @rule()
    def reset(self) -> None:
        """Somebody takes the branch back to where the step began; what is gone was taken away."""
        assert self.current
        self.resets += 1
        before = self.line()
        self.hard_reset(self.current.workspace.ref)
        self.taken_back.update(set(before) - set(self.line()))

    @precondition(lambda self: {run.execution_id for run in self.dead()} - self.swept)
    @rule()
    def sweep(self) -> None:
        """Whoever reaps the dead removes what they left (V7)."""
        for run in self.dead():
            remove_attempt_dir_of(self.lab.attempt_dirs, run.attempt.task_id, run.execution_id)
            for branch in self.branches_of(run.execution_id):
                self.lab.store.drop(Staging(self.lab.repository, branch))
            self.swept.add(run.execution_id)

    # --- what must hold ---------------------------------------------------------------------

    def line(self) -> list[str]:
        """Walk the branch by first parents, newest first; unfinished replacements are finished."""
        head = self.lab.store.finished_head(self.lab.repository, "main")
        return [commit.id for commit in self.lab.store.history(self.lab.repository, head.id)]

    def above(self, line: list[str], base: str) -> list[Commit]:
        """Return what executions have put on a commit of the line."""
        found = line[: line.index(base)]
        commits = [self.lab.store.commit(self.lab.repository, ref) for ref in found]
        return [commit for commit in commits if commit.id not in self.by_hand]

    def completions(self) -> list[tuple[Attempt, str, str]]:
        """Return what the engine accepted: the attempt, the ref, and the text of its result."""
        return [
            (attempt, outcome.output["workspace"]["ref"], outcome.output["result"]["text"])  # type: ignore[index]
            for attempt, outcome in self.lab.broker.reports
            if outcome.completed
        ]

    def accepted(self) -> list[str]:
        return [ref for _, ref, _ in self.completions()]

    def tree(self, ref: str) -> dict[str, bytes]:
        if ref not in self._trees:
            self._trees[ref] = self.lab.files(ref)
        return self._trees[ref]

    def dead(self) -> list[Run]:
        runs = [walker.run for walker in self.walkers]
        return [run for run in runs if run is not None and run.crashed]

    def branches_of(self, execution_id: str) -> list[str]:
        found = self.lab.store.branches(self.lab.repository, hidden=True)
        return [branch.name for branch in found if branch.name.endswith(execution_id)]

    @invariant()
    def v1_the_history_is_a_or_a_and_one_publication(self) -> None:
        line = self.line()
        bases = [walker.workspace.ref for walker in self.walkers[-1:]]
        for base in bases:
            if base not in line:  # It was itself abandoned, and its own step has replaced it.
                assert base not in self.accepted() or base in self.taken_back
                continue
            made = self.above(line, base)
            if self.fence == "lineage":
                assert len({commit.metadata["perago.logical_task_key"] for commit in made}) <= 1
            else:
                assert len(made) <= 1
                assert all(commit.parents == (base,) for commit in made)

    @invariant()
    def v2_what_was_accepted_is_the_result_of_its_attempt(self) -> None:
        for attempt, ref, text in self.completions():
            commit = self.lab.store.commit(self.lab.repository, ref)
            if not text:
                continue
            if not self.keeps_ledger:
                assert commit.metadata["perago.task_id"] == attempt.task_id
            assert self.tree(ref)["ws/all.txt"] == text.encode()

    @invariant()
    def v3_what_was_accepted_stays_reachable(self) -> None:
        line = self.line()
        kept = {*self.accepted()} | (self.by_hand if self.fence == "hard" else set())
        assert not [ref for ref in kept - self.taken_back if ref not in line]

    @invariant()
    def v4_every_publication_is_whole_and_unmixed(self) -> None:
        for ref in self.line():
            commit = self.lab.store.commit(self.lab.repository, ref)
            if "perago.input_ref" not in commit.metadata:
                continue
            found = self.tree(ref)
            text = found["ws/all.txt"].decode()
            given = self.tree(commit.metadata["perago.input_ref"])
            assert found == given | {"ws/all.txt": text.encode(), f"ws/{text}.txt": text.encode()}

    @invariant()
    def v6_nothing_is_written_outside(self) -> None:
        assert {path.name for path in self.place.iterdir()} <= {"lab", "outside.txt"}
        assert (self.place / "outside.txt").read_text() == "untouched"

    @invariant()
    def v7_only_the_living_and_the_unswept_dead_have_left_something(self) -> None:
        attempt_dirs = [path.name for path in self.lab.attempt_dirs.glob("*/")]
        branches = [b.name for b in self.lab.store.branches(self.lab.repository, hidden=True)]
        staged = [name for name in branches if name.startswith("perago-staging-")]
        for left in (attempt_dirs, staged):
            unswept = {run.execution_id for run in self.dead()} - self.swept
            dead = [name for name in left if name.endswith(tuple(unswept))] if unswept else []
            assert len(dead) <= len(unswept)
            assert len(left) - len(dead) <= len(self.alive)

    def teardown(self) -> None:
        """V5: when all others are dead, the next attempt completes, or says why it may not."""
        try:
            for walker in self.alive:
                walker.crash()
            if self.current is not None:
                self.v5_the_next_attempt_completes_or_fails_closed(self.current)
            for held in self.held:
                held.arrive()
            if self.walkers:
                self.v3_what_was_accepted_stays_reachable()
                self.v4_every_publication_is_whole_and_unmixed()
        finally:
            if isinstance(self.lab.ledger, SqlLedger):
                self.lab.ledger.close()
            self.lab.close()
            shutil.rmtree(self.place)

    def v5_the_next_attempt_completes_or_fails_closed(self, last: Walker) -> None:
        line, base = self.line(), last.workspace.ref
        key = last.attempt.logical_task_key
        ours = base in line and all(
            commit.metadata.get("perago.logical_task_key") == key
            for commit in map(self.commit, line[: line.index(base)])
        )
        run = self.lab.retry(self.run_of(last, changes=True))
        if ours:
            assert run.completed, run.reason
        else:
            assert run.completed or "PublishFenceError" in run.reason, run.reason

    def commit(self, ref: str) -> Commit:
        return self.lab.store.commit(self.lab.repository, ref)
