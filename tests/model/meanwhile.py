"""While an attempt stands still at a point, the next attempt of its step runs to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from perago.attempt.fence import AttemptFence, FencedHead, no_task
from perago.protocol.values import Commit, Status, WorkspaceInput
from perago.tasks.declaration import definition_of
from perago.testing import Lab, Run
from perago.testing.faults import Scene


class Meanwhile:
    """A fault that runs the retry: at a named point, or when it is called."""

    def __init__(self, lab: Lab, task: Callable[..., Any], text: str, point: str = "") -> None:
        self.retried: Run | None = None
        self._lab = lab
        self._task = definition_of(task)
        self._params = {"text": text}
        self._point = point
        self._scene: Scene | None = None

    def at(self, point: str, scene: Scene) -> None:
        self._scene = scene
        if point == self._point:
            self()

    def around(self, call: str, action: Callable[[], object]) -> object:
        return action()

    def __call__(self) -> None:
        if self._scene is None or self.retried is not None:
            return
        attempt, workspace = self._scene.attempt, self._scene.workspace
        stale = Run(self._lab, self._task, attempt, workspace, self._params, None, "")
        self._scene = None
        self.retried = self._lab.retry(stale)


class NaiveOrder(AttemptFence):
    """Asks first and reads once: what F3 forbids.

    What made the head is asked as the history of ``test_naive_order.py`` has it: after the retry
    has published and before its report is accepted (P2a).
    """

    pause: Callable[[], None]

    def head(
        self,
        workspace: WorkspaceInput,
        first: Callable[[], Commit],
        others: Callable[[Commit], Iterable[str]] = no_task,
    ) -> FencedHead:
        self.check()
        type(self).pause()
        head = first()
        return FencedHead(head, dict.fromkeys(others(head), Status.IN_PROGRESS))


class RightOrder(AttemptFence):
    """The product's order, standing still at the same place: after the engine's answer."""

    pause: Callable[[], None]
    asked: list[str]

    def check(self) -> None:
        super().check()
        self.asked.append(self.attempt.task_id)
        if self.asked.count(self.attempt.task_id) > 1:
            type(self).pause()
