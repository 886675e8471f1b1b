"""Everything that can happen next: writers, the engine, requests that are held up, a person.

A state is the head of the branch, what the engine thinks of each task, where each writer stands,
which requests are still on their way, and what was accepted as completed. A writer that dies takes
no further step; what it has sent may still arrive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from perago.protocol.kinds import FenceKind
from perago.protocol.values import Phase, Status
from tests.model.attempt import Standing, Writer, retry, stand
from tests.model.server import BRANCH, A, Library, Move
from tests.model.wire import (
    UNKNOWN,
    Answer,
    AskEngine,
    AskStanding,
    Look,
    Post,
    Question,
    ReadLedger,
    Report,
)

ABANDONED = "H0"
GONE = -1
"""Where a writer stands that is through, or dead: nothing more will come from it."""
WAITS, CURRENT, OVER, DONE = (
    Status.SCHEDULED,
    Status.IN_PROGRESS,
    Status.TIMED_OUT,
    Status.COMPLETED,
)
Start = Literal["A", "H0"]


@dataclass(frozen=True)
class Scenario:
    """Who writes. ``tasks`` says whose each writer is; the first ``chain`` tasks are one step's.

    Of a step, the next attempt exists only when the one before is over.
    """

    writers: tuple[Writer, ...]
    tasks: tuple[int, ...]
    chain: int
    start: Start = "A"
    person: bool = False
    """Whether somebody commits straight to the branch, once."""
    lost: int = 2
    """How many answers each writer may lose."""
    short: bool = False
    """Whether the final operation is short: nobody acts between a second read and what follows."""
    faults: bool = True
    """Whether answers can be lost, requests held up and writers killed."""
    then: int | None = None
    """The task of a later step of the same workflow: it is handed out when the step completes."""

    @property
    def fence(self) -> FenceKind:
        """Name the fence kind, which is the same for all writers of a branch (K6)."""
        return self.writers[0].fence


class State(NamedTuple):
    """All that matters for what can come."""

    head: str
    tasks: tuple[Status, ...]
    writers: tuple[int, ...]
    flight: tuple[int, ...]
    accepted: tuple[str, ...]
    person: bool
    ledger: tuple[str, ...] = ()


class Event(NamedTuple):
    """What happened in one step, for people."""

    kind: Literal["answered", "unanswered", "late", "over", "dies", "person"]
    who: int
    question: Question | None = None
    answer: Answer | None = None


@dataclass
class World:
    """One scenario, and all that was found out about it so far."""

    scenario: Scenario
    library: Library = field(default_factory=Library)
    _answers: list[tuple[int, tuple[Answer, ...]]] = field(default_factory=list)
    _standings: list[Standing] = field(default_factory=list)
    _next: dict[tuple[int, Answer], int] = field(default_factory=dict)
    _known: dict[object, int] = field(default_factory=dict)
    _sent: list[tuple[int, Move | Report]] = field(default_factory=list)
    _numbers: dict[tuple[int, Move | Report], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.library.add(A, (), frozenset({"a"}))
        abandoned = Writer("0", retry(0), self.scenario.fence, "attempt 0")
        made = self.alone(abandoned, A).ref
        said = tuple(sorted(self.library.commits[made].metadata.items()))
        self.library.add(ABANDONED, (A,), self.library.trees[made], said)

    def next_attempt(self) -> Writer:
        """Return an attempt of the step that comes after all others."""
        return Writer("9", retry(9), self.scenario.fence, "attempt 9")

    def alone(self, writer: Writer, head: str) -> Report:
        """Run one more attempt with nothing in its way; returns what it reports."""
        answers: tuple[Answer, ...] = ()
        while True:
            question = stand(writer, self.library, answers).question
            match question:
                case Look():
                    answers += (head,)
                case AskEngine():
                    answers += (CURRENT,)
                case AskStanding():
                    answers += (OVER,)  # All others have died, or were given up.
                case Move():
                    head, answer = self.library.apply(head, question)
                    answers += (answer,)
                case Report():
                    return question
                case None:
                    raise AssertionError("it ended without a report")

    @property
    def again(self) -> bool:
        """Tell whether a request may arrive more than once: under ``hard`` it is sent again."""
        return self.scenario.fence == "hard"

    def first(self) -> State:
        """Return the state in which all begins."""
        scenario = self.scenario
        waiting = {*range(1, scenario.chain), scenario.then}
        tasks = [WAITS if number in waiting else CURRENT for number in range(self._many)]
        return State(
            head=scenario.start,
            tasks=tuple(tasks),
            writers=tuple(self._stand(who, ()) for who in range(len(scenario.writers))),
            flight=(),
            accepted=("",) * self._many,
            person=scenario.person,
        )

    @property
    def _many(self) -> int:
        return max(self.scenario.tasks) + 1

    def standing(self, state: State, who: int) -> Standing | None:
        """Tell where a writer stands; None when nothing more will come from it."""
        at = state.writers[who]
        if at == GONE or state.tasks[self.scenario.tasks[who]] is WAITS:
            return None
        return self._standings[at]

    def heard(self, state: State, who: int) -> tuple[Answer, ...]:
        """Return the answers a writer has had."""
        return self._answers[state.writers[who]][1]

    # --- steps ------------------------------------------------------------------------------

    def steps(self, state: State) -> Iterator[tuple[Event, State]]:
        """Yield everything that can happen next, the plain things first."""
        if self.scenario.short and (busy := self._publishing(state)) is not None:
            yield self.answer(state, busy)
            yield Event("dies", busy), self._move_on(state, busy, GONE)
            return
        # The latest first: of two histories that are equally short, the one is told in which the
        # early attempt is the late one.
        for who in reversed(range(len(state.writers))):
            if standing := self.standing(state, who):
                yield self.answer(state, who)
                if self._may_be_lost(state.writers[who], standing.question):
                    yield self.lose(state, who)
        yield from self._steps_of_others(state)
        if self.scenario.faults:
            for who in range(len(state.writers)):
                if self.standing(state, who):
                    yield Event("dies", who), self._move_on(state, who, GONE)

    def _steps_of_others(self, state: State) -> Iterator[tuple[Event, State]]:
        for number in state.flight:
            yield self.arrive(state, number)
        for number in range(self.scenario.chain - 1):
            if state.tasks[number] is CURRENT:
                yield Event("over", number), self.time_out(state, number)
        if state.person:
            tree = self.library.trees[state.head] | {"f"}
            head = self.library.add(f"F/{state.head}", (state.head,), tree)
            yield Event("person", 0, answer=head), state._replace(head=head, person=False)

    def _publishing(self, state: State) -> int | None:
        for who in range(len(state.writers)):
            standing = self.standing(state, who)
            if standing and standing.phase is Phase.PUBLISH:
                return who
        return None

    def answer(self, state: State, who: int) -> tuple[Event, State]:
        """Let a writer have its question answered."""
        standing = self.standing(state, who)
        assert standing
        question = standing.question
        answer: Answer
        match question:
            case Look():
                answer = state.head
            case AskEngine():
                answer = state.tasks[self.scenario.tasks[who]]
            case AskStanding(task_id):
                answer = self._status(state, task_id)
            case Move():
                head, answer = self.library.apply(state.head, question)
                state = state._replace(head=head)
            case Report():
                state, answer = self._report(state, who, question)
            case ReadLedger():
                answer = state.ledger
            case Post(execution, name):
                others = [each for each in state.ledger if not each.startswith(f"{execution}:")]
                state, answer = state._replace(ledger=(*others, name)), True
            case _:
                raise AssertionError(question)
        at = GONE if isinstance(question, Report) else self._after(state, who, answer)
        return Event("answered", who, question, answer), self._move_on(state, who, at)

    def _status(self, state: State, task_id: str) -> Status:
        """Tell what the engine says of a task; attempt 0 is long over."""
        for writer, number in zip(self.scenario.writers, self.scenario.tasks, strict=True):
            if writer.attempt.task_id == task_id:
                return state.tasks[number]
        return OVER

    def time_out(self, state: State, number: int) -> State:
        """Let the engine give an attempt up; the next one of the step is handed out."""
        tasks = list(state.tasks)
        tasks[number] = OVER
        if number + 1 < self.scenario.chain:
            tasks[number + 1] = CURRENT
        return state._replace(tasks=tuple(tasks))

    def _may_be_lost(self, at: int, question: Question | None) -> bool:
        """Tell whether it moves the branch, or says so: only then a lost answer leaves traces."""
        if not self.scenario.faults:
            return False
        if isinstance(question, Report):
            return question.completed
        enough = self._answers[at][1].count(UNKNOWN) >= self.scenario.lost
        return isinstance(question, Move) and question.ref != BRANCH and not enough

    def lose(self, state: State, who: int) -> tuple[Event, State]:
        """Let a writer wait for an answer in vain; what it has sent is held up on its way."""
        standing = self.standing(state, who)
        assert standing
        question = standing.question
        assert isinstance(question, Move | Report)
        sent = who, question
        if isinstance(question, Move) and question.kind == "reset":
            sent = GONE, replace(question, who="")  # Nobody can tell whose it is.
        number = self._numbers.setdefault(sent, len(self._sent))
        if number == len(self._sent):
            self._sent.append(sent)
        if number not in state.flight:
            state = state._replace(flight=tuple(sorted((*state.flight, number))))
        at = GONE if isinstance(question, Report) else self._after(state, who, UNKNOWN)
        return Event("unanswered", who, question), self._move_on(state, who, at)

    def arrive(self, state: State, number: int) -> tuple[Event, State]:
        """Let something that was held up reach the server, or the engine."""
        who, question = self._sent[number]
        if not self.again:
            flight = tuple(other for other in state.flight if other != number)
            state = state._replace(flight=flight)
        answer: Answer
        if isinstance(question, Report):
            state, answer = self._report(state, who, question)
        else:
            head, answer = self.library.apply(state.head, question)
            state = state._replace(head=head)
        return Event("late", who, question, answer), state

    def _report(self, state: State, who: int, said: Report) -> tuple[State, bool]:
        """Take a result, if the task is still current (R2)."""
        number = self.scenario.tasks[who]
        if state.tasks[number] is not CURRENT:
            return state, False
        if not said.completed:
            return self.time_out(state, number), True
        tasks, accepted = list(state.tasks), list(state.accepted)
        tasks[number], accepted[number] = DONE, said.ref
        if self.scenario.then is not None and number < self.scenario.chain:
            tasks[self.scenario.then] = CURRENT
        return state._replace(tasks=tuple(tasks), accepted=tuple(accepted)), True

    # --- where writers stand ----------------------------------------------------------------

    def _move_on(self, state: State, who: int, at: int) -> State:
        writers = (*state.writers[:who], at, *state.writers[who + 1 :])
        rest = state.flight, state.accepted, state.person, state.ledger
        return State(state.head, state.tasks, writers, *rest)

    def _after(self, state: State, who: int, answer: Answer) -> int:
        at = state.writers[who]
        key = at, answer
        if key not in self._next:
            self._next[key] = self._stand(who, (*self._answers[at][1], answer))
        return self._next[key]

    def _stand(self, who: int, answers: tuple[Answer, ...]) -> int:
        """Number a standing; of two that have only their report left, one is enough."""
        found = stand(self.scenario.writers[who], self.library, answers)
        key = (who, found if isinstance(found.question, Report) else answers)
        if key not in self._known:
            self._known[key] = len(self._standings)
            self._standings.append(found)
            self._answers.append((who, answers))
        return self._known[key]
