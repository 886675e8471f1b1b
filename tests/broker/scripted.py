"""Executors that follow a script, in time the test owns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from perago.process.reports import Died, Finished, Message, Output, Report, StartFailed
from perago.protocol.outcome import Outcome
from perago.protocol.values import Claim, Status


@dataclass
class ManualClock:
    """Time moves only when somebody waits."""

    time: float = 10_000.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


COMPLETED = Outcome(Status.COMPLETED)


@dataclass(frozen=True)
class Deed:
    """What an executor does with one claim."""

    seconds: float = 0.0
    outcome: Outcome = COMPLETED
    dies: str = ""
    says: tuple[dict[str, object], ...] = ()
    prints: tuple[str, ...] = ()
    then: Callable[[], None] | None = None


DONE = Deed()
FAILED = Deed(outcome=Outcome(Status.FAILED, reason="no luck"))
TERMINAL = Deed(outcome=Outcome(Status.FAILED_WITH_TERMINAL_ERROR, reason="never"))
HANGS = Deed(seconds=1e9)


@dataclass
class ScriptedPool:
    """Runs claims by a script: the deeds of each task reference name, one per attempt."""

    clock: ManualClock
    script: dict[str, list[Deed]] = field(default_factory=dict)
    size: int = 4
    start_error: StartFailed | None = None
    claims: list[Claim] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)
    busiest: int = 0
    _busy: dict[str, tuple[float, Claim, Deed]] = field(default_factory=dict)
    _wanted: int = 0
    _woken: bool = False

    @property
    def idle(self) -> tuple[str, ...]:
        names = (f"x{number}" for number in range(min(self.size, self._wanted)))
        return tuple(name for name in names if name not in self._busy)

    def want(self, count: int) -> None:
        self._wanted = count

    def submit(self, claim: Claim, executor_id: str) -> None:
        assert executor_id in self.idle
        deeds = self.script.get(claim.attempt.reference_task_name, [])
        number = claim.attempt.retry_count
        deed = deeds[number] if number < len(deeds) else DONE
        self.claims.append(claim)
        self._busy[executor_id] = (self.clock.now() + deed.seconds, claim, deed)
        self.busiest = max(self.busiest, len(self._busy))

    def poll(self, timeout_seconds: float) -> list[Report]:
        assert timeout_seconds >= 0
        if self.start_error and self._wanted:
            return [self.start_error]
        if self._woken:
            self._woken = False
            return []
        end = self.clock.now() + timeout_seconds
        due = sorted((at, name) for name, (at, _, _) in self._busy.items() if at <= end)
        if not due:
            self.clock.time = end
            return []
        at, name = due[0]
        self.clock.time = max(self.clock.time, at)
        _, claim, deed = self._busy.pop(name)
        if deed.then is not None:
            deed.then()
        told = claim.execution_id
        reports: list[Report] = [Message(name, told, body) for body in deed.says]
        reports += [Output(name, told, "stdout", line) for line in deed.prints]
        end_report = Died(name, told, deed.dies) if deed.dies else None
        return [*reports, end_report or Finished(name, told, deed.outcome)]

    def kill(self, execution_id: str) -> bool:
        for name, (_, claim, _) in self._busy.items():
            if claim.execution_id == execution_id:
                del self._busy[name]
                self.killed.append(claim.attempt.reference_task_name)
                return True
        return False

    def wake(self) -> None:
        self._woken = True

    def close(self, grace_seconds: float = 0.0) -> None:
        self._busy.clear()
