"""What can go wrong in a test, said in one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from perago.errors import OutcomeUnknownError, UsageError
from perago.protocol.values import Attempt, Status, WorkspaceInput
from perago.testing.arranged import ArrangedStore
from perago.testing.broker import ScriptedBroker
from perago.testing.points import checked_point

Call = Literal["open_staging", "write", "apply", "drop"]
_CALLS = ("open_staging", "write", "apply", "drop")


class Crashed(BaseException):
    """The process is gone: nothing after this point happens, no cleanup either."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What a fault may touch."""

    store: ArrangedStore
    broker: ScriptedBroker
    attempt: Attempt
    workspace: WorkspaceInput | None


class Fault(Protocol):
    """Something that happens when the attempt reaches a point, or makes a call."""

    def at(self, point: str, scene: Scene) -> None:
        """Act when the point is this fault's own."""

    def around(self, call: str, action: Callable[[], object]) -> object:
        """Carry out a call of the store, or spoil it."""


class Counted:
    """A fault that does nothing but count what the others, which change one of the two, do."""

    met = 0
    """How often it happened: an attempt whose fault never does proves nothing."""

    def at(self, point: str, scene: Scene) -> None:
        """Act when the point is this fault's own."""

    def around(self, call: str, action: Callable[[], object]) -> object:  # noqa: ARG002 - a port
        """Carry out a call of the store, or spoil it."""
        return action()


class FailAt(Counted):
    """Kill the attempt at a named point, as ``kill -9`` would."""

    def __init__(self, point: str) -> None:
        self._point = checked_point(point)

    def at(self, point: str, scene: Scene) -> None:  # noqa: ARG002 - a port
        """Die here."""
        if point == self._point:
            self.met += 1
            raise Crashed(point)


class StaleAt(Counted):
    """From a named point on, the broker says the attempt is over."""

    def __init__(self, point: str, status: Status = Status.TIMED_OUT) -> None:
        self._point = checked_point(point)
        self._status = status

    def at(self, point: str, scene: Scene) -> None:
        """Take the attempt away."""
        if point == self._point:
            self.met += 1
            scene.broker.set_status(scene.attempt, self._status)


@dataclass
class MoveHeadAt(Counted):
    """At a named point, somebody else commits to the target branch."""

    point: str
    files: Mapping[str, bytes | str] = field(default_factory=lambda: {"foreign.txt": "foreign"})
    metadata: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checked_point(self.point)

    def at(self, point: str, scene: Scene) -> None:
        """Commit as a stranger."""
        if point != self.point or scene.workspace is None:
            return
        self.met += 1
        repository, branch = scene.workspace.repository, scene.workspace.branch
        for key, content in self.files.items():
            data = content.encode() if isinstance(content, str) else content
            scene.store.put(repository, branch, key, data)
        scene.store.commit_branch(repository, branch, "a stranger's commit", dict(self.metadata))


class LoseAnswer(Counted):
    """A call reaches the store, or not, and its answer is lost."""

    def __init__(self, call: Call, *, applied: bool = True) -> None:
        if call not in _CALLS:
            raise UsageError(f"no call {call!r} to lose", remedy=f"use one of {', '.join(_CALLS)}")
        self._call = call
        self._applied = applied

    def around(self, call: str, action: Callable[[], object]) -> object:
        """Lose the answer of this fault's own call."""
        if call != self._call:
            return action()
        self.met += 1
        if self._applied:
            action()
        raise OutcomeUnknownError(f"the answer to {call} was lost")
