"""A step that waits for a person, here or on Conductor (Q10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from perago.errors import UsageError
from perago.protocol.values import Attempt, Claim, Person, Status

CLAIMED_BY: Final = "claimed_by"
"""Where the output of an open step names who has taken it; it is no lock (Q13)."""


@dataclass(frozen=True, slots=True)
class HumanTask:
    """One attempt of a step, as whoever may do it sees it."""

    attempt: Attempt
    input: Mapping[str, object]
    workflow: str
    """The name of the workflow."""
    since: float | None = None
    claimed_by: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    """Where its task is declared, if the engine knows."""
    store: str = "lakefs"
    where: str = ""
    """Which engine it is of."""
    status: str = Status.IN_PROGRESS
    done_by: str = ""
    """Who completed it, where the engine knows."""

    @property
    def open(self) -> bool:
        """Return whether it can be done now."""
        return self.status == Status.IN_PROGRESS

    @property
    def end(self) -> str:
        """Say how it ended."""
        return f"{self.status} by {self.done_by}" if self.done_by else self.status

    def is_called(self, given: str) -> bool:
        """Return whether a name is that of the step, also without the number of a loop's round."""
        return given in {self.step, self.step.removesuffix(f"__{self.attempt.iteration}")}

    def is_still(self, other: HumanTask | None) -> bool:
        """Return whether what the engine has now is this attempt, and open."""
        return other is not None and other.open and other.attempt == self.attempt

    @property
    def step(self) -> str:
        """Return the name of the step in its workflow."""
        return self.attempt.reference_task_name

    def claim(self, execution_id: str, person: Person) -> Claim:
        """Make the claim of one execution by a person."""
        return Claim(self.attempt, self.input, execution_id, person=person)

    def taken_by(self, person: str) -> HumanTask:
        """Return it with one more who has taken it."""
        return replace(self, claimed_by=(*(n for n in self.claimed_by if n != person), person))

    def given_back_by(self, person: str) -> HumanTask:
        """Return it without one who had taken it."""
        return replace(self, claimed_by=tuple(n for n in self.claimed_by if n != person))

    def as_json(self) -> dict[str, object]:
        """Return it as plain values; params may hold what must not be shown (V8)."""
        return {
            "where": self.where,
            "task_id": self.attempt.task_id,
            "step": self.step,
            "task": self.attempt.task_def_name,
            "retry_count": self.attempt.retry_count,
            "workflow": self.workflow,
            "workflow_id": self.attempt.workflow_instance_id,
            "since": self.since,
            "claimed_by": list(self.claimed_by),
        }


class HumanTasks(Protocol):
    """The steps of one workflow engine that people do.

    Any call may raise ``BrokerUnavailableError``.
    """

    @property
    def where(self) -> str:
        """Name the engine."""

    def waiting(self) -> Sequence[HumanTask]:
        """List those that can be done now, the oldest first."""

    def task(self, task_id: str) -> HumanTask | None:
        """Read one by its whole id, also one that is over; None when there is no such."""

    def note_claims(self, task: HumanTask) -> None:
        """Write down who has taken it, where it is still open."""

    def begin(self, claim: Claim) -> None:
        """Hear of an execution before it does anything."""


def chosen(given: str, waiting: Sequence[HumanTask]) -> HumanTask | None:
    """Find the one that is meant: by its step, or by the beginning of its id."""
    found = [task for task in waiting if task.attempt.task_id.startswith(given)] or [
        task for task in waiting if task.is_called(given)
    ]
    if len(found) > 1:
        ids = ", ".join(
            f"{each.attempt.task_id[:8]} of {each.workflow} {each.attempt.workflow_instance_id[:8]}"
            for each in found
        )
        raise UsageError(f"several steps that wait are called {given!r}", remedy=f"name one: {ids}")
    return found[0] if found and given else None


def done_by(output: Mapping[str, object]) -> str:
    """Read who did a step from its output."""
    name = output.get("person")
    return name if isinstance(name, str) else ""


def claimed_by(output: Mapping[str, object]) -> tuple[str, ...]:
    """Read who has taken a step from its output."""
    names = output.get(CLAIMED_BY)
    return tuple(map(str, names)) if isinstance(names, list) else ()
