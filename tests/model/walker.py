"""An attempt that walks from point to point when it is told to, and stands still in between."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from perago.errors import OutcomeUnknownError, PeragoError
from perago.protocol.values import Attempt, WorkspaceInput
from perago.testing import Fault, Run
from perago.testing.faults import Crashed, Scene
from perago.testing.points import checked_point
from tests.patience import LIMIT

STOPS = frozenset(
    map(
        checked_point,
        (
            "claimed",
            "after body",
            "before first attempt fence",
            "branch created",
            "committed",
            "before second attempt fence",
            "after second attempt fence",
            "decision",
            "applied",
            "published",
            "before staging cleanup",
            "before report",
        ),
    )
)
SECONDS = LIMIT


class Held:
    """A fault: the publication is held up on its way, and its answer is lost."""

    def __init__(self) -> None:
        self.request: Callable[[], object] | None = None

    def at(self, point: str, scene: Scene) -> None:
        """Do nothing."""

    def around(self, call: str, action: Callable[[], object]) -> object:
        if call != "apply":
            return action()
        self.request = action
        raise OutcomeUnknownError("it is held up on its way")

    def arrive(self) -> None:
        """Let the store have it now; what it answers goes nowhere."""
        request, self.request = self.request, None
        if request is not None:
            try:
                request()
            except PeragoError:
                return


class Unanswered:
    """A fault: the answer to the publication is lost, if the attempt lives until it publishes."""

    def __init__(self, *, applied: bool) -> None:
        self._applied = applied

    def at(self, point: str, scene: Scene) -> None:
        """Do nothing."""

    def around(self, call: str, action: Callable[[], object]) -> object:
        if call != "apply":
            return action()
        if self._applied:
            action()
        raise OutcomeUnknownError("its answer was lost")


class Walker:
    """One execution in a thread of its own; it and its owner never run at the same time."""

    def __init__(self, begin: Callable[[Sequence[Fault]], Run], *faults: Fault) -> None:
        self._go, self._stood = threading.Semaphore(0), threading.Semaphore(0)
        self._scene: Scene | None = None
        self._crash = False
        self._begin = begin
        self._faults = faults
        self.run: Run | None = None
        self.point = ""
        self._thread = threading.Thread(target=self._walk)
        self._thread.start()
        self.step()

    @property
    def alive(self) -> bool:
        """Tell whether it has steps to take."""
        return self.run is None

    @property
    def attempt(self) -> Attempt:
        assert self._scene
        return self._scene.attempt

    @property
    def workspace(self) -> WorkspaceInput:
        assert self._scene
        assert self._scene.workspace
        return self._scene.workspace

    def step(self) -> None:
        """Walk to the next point."""
        self._go.release()
        assert self._stood.acquire(timeout=SECONDS), f"it did not come beyond {self.point!r}"
        if not self.alive:
            self._thread.join(SECONDS)

    def walk(self, to: str) -> None:
        """Walk to the next point of that name, or to the end."""
        while self.alive:
            self.step()
            if self.point == to:
                return

    def finish(self) -> None:
        """Walk to the end."""
        self.walk("the end")

    def crash(self) -> None:
        """Die where it stands."""
        self._crash = True
        self.finish()

    def at(self, point: str, scene: Scene) -> None:
        """Stand still (a fault's method)."""
        self._scene = scene
        if point not in STOPS:
            return
        self.point = point
        self._wait()
        if self._crash:
            raise Crashed(point)

    def around(self, call: str, action: Callable[[], object]) -> object:
        return action()

    def _wait(self) -> None:
        self._stood.release()
        assert self._go.acquire(timeout=SECONDS), "nobody told it to go on"

    def _walk(self) -> None:
        assert self._go.acquire(timeout=SECONDS)
        self.run = self._begin([self, *self._faults])
        self._stood.release()
