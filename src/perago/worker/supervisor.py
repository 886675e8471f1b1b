"""The supervisor: one thread that owns the executors; others poll, keep leases and clean up.

::

    poller --claims--> queue --> [main loop] --claim--> executor --journal, outcome--> [main loop]
    [main loop] --outcome--> reporter --accepted or lost--> [main loop]
    lease keeper --lost--> [main loop] --cancel, then kill--> executor
    [main loop] --dead execution--> post-mortem: directory, staging branch, FAILED

Whatever another thread has to say comes to the main loop as a call in its inbox.
"""

from __future__ import annotations

import os
import queue
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum
from typing import Any, Final

from perago.brokers.conductor.backoff import Backoff
from perago.errors import PeragoError
from perago.process.reports import (
    Died,
    Finished,
    Message,
    Output,
    Report,
    StartFailed,
)
from perago.protocol import restart
from perago.protocol.lease import beat_seconds, drain_seconds
from perago.protocol.outcome import Outcome
from perago.protocol.values import Claim
from perago.protocol.watch import HealthVerdict
from perago.protocol.worker_events import WorkerEvent
from perago.worker.claim_queue import ClaimQueue
from perago.worker.event_fanout import EventFanout
from perago.worker.executions import NEVER_SEEN, Executions
from perago.worker.leasing import LeaseKeeper
from perago.worker.plan import Plan, SupervisorDeps
from perago.worker.polling import Asking, Poller, give_back
from perago.worker.post_mortem import PostMortem
from perago.worker.reporter import Reporter
from perago.worker.runs import RunningExecution
from perago.worker.signals import listening
from perago.worker.state import StateFile
from perago.worker.status_snapshot import StatusSnapshot
from perago.worker.watchdog import Watchdog

POLL_GRACE_SECONDS: Final = 1.0
"""How long a stopping worker waits for the answer to its last poll."""
LAST_ERRANDS_SECONDS: Final = 15.0
ASSEMBLE_SECONDS: Final = 5.0
"""How long the first executors wait for the others: starting ones would only slow them down."""
AHEAD_CLAIMS: Final = 4
"""How many claims per executor are fetched ahead at the most: a big poll is cheaper per task."""
SOON_SECONDS: Final = 0.5
"""Only so many are fetched ahead as are begun within this time."""
AHEAD_SECONDS: Final = 1.0
"""A claim that was fetched ahead and waits longer than this is given back."""
_BUSY_SECONDS: Final = 0.5
_IDLE_SECONDS: Final = 2.0
_ENDING_SECONDS: Final = 0.02
_HEALTHY_SECONDS: Final = 20.0
INTERRUPTED: Final = 130


class Ending(Enum):
    """Why a supervisor stopped."""

    STOPPED = "stopped"
    RELOAD = "reload"


class Supervisor:
    """Runs until it is told to stop and everything under way has ended."""

    def __init__(self, plan: Plan, deps: SupervisorDeps) -> None:
        self._plan = plan
        self._settings = plan.settings
        self._connect = deps.connect
        self._pool = deps.pool
        self._clock = clock = deps.clock
        self._wall = clock.now() - clock.monotonic()
        self._started_at = clock.now()
        self._inbox: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._fanout = EventFanout(deps.watchers, clock)
        self._client = deps.connect()
        self._claim_queue = ClaimQueue(self._pool.wake, clock)
        self._keeper = LeaseKeeper(self._client, clock, self._on_lost, self._on_beat_error)
        self._post_mortem = PostMortem(deps.cleanup, clock, self._note)
        self._reporter = Reporter(
            deps.channels,
            clock,
            plan.size,
            self._on_heard,
            self._on_reported,
            self._on_confirmed,
        )
        self._executions = Executions(
            self._pool, self._keeper, self._reporter, self._post_mortem, self._fanout
        )
        self._watchdog = Watchdog(plan.settings, clock)
        self._state = StateFile(plan.settings.workspace_root, _IDLE_SECONDS, _BUSY_SECONDS)
        self._poller: Poller | None = None
        self._worker_ids: dict[str, str] = {}
        self._complete = False
        self._deaths: tuple[float, ...] = ()
        self._closed_until = 0.0
        self._error: PeragoError | None = None
        self._asked_to_end = ""
        self._ending = Ending.STOPPED
        self._deadline = self._last_poll_until = 0.0
        self._looked_at = float("-inf")
        self._swept_at = clock.monotonic()
        self.not_ready = "starting"
        """Why no claim would be taken now; empty when one would."""

    def run(self) -> Ending:
        """Work until a signal ends it; a worker that cannot work raises why."""
        with listening(self._ask_stop, self._end_at_once, self._ask_reload):
            try:
                self._begin()
                while not self._over():
                    for report in self._pool.poll(self._patience()):
                        self._hear(report)
                    self._read_inbox()
                    self._enforce()
                    self._hand_out()
                    self._look_after()
            finally:
                self._close()
        if self._error is not None:
            raise self._error
        return self._ending

    @property
    def healthy(self) -> bool:
        """Return whether the main loop still turns."""
        return self._clock.monotonic() - self._looked_at < _HEALTHY_SECONDS

    @property
    def ended(self) -> dict[str, int]:
        """Return what was done."""
        return self._executions.tally.as_json()

    # --- beginning and ending ------------------------------------------------------------------

    def _begin(self) -> None:
        self._post_mortem.sweep()
        self._pool.want(self._plan.size)
        self._poller = self._new_poller()
        facts = {
            "pid": os.getpid(),
            "executors": self._plan.size,
            "mode": self._plan.mode,
            "tasks": sorted(self._plan.tasks),
        }
        self._fanout.worker(WorkerEvent.STARTED, facts)

    def _new_poller(self) -> Poller:
        settings = self._settings
        asking = Asking(
            names=sorted(self._plan.tasks),
            worker_id=self._worker_id(1),
            domain=settings.task_domain,
            backoff=Backoff(settings.poll_interval_seconds, settings.poll_interval_max_seconds),
        )
        return Poller(
            self._connect(), asking, self._claim_queue, self._clock, self._on_claim, self._note
        )

    def _ask_stop(self, signal_name: str) -> None:
        self._asked_to_end, self._ending = signal_name, Ending.STOPPED
        self._pool.wake()

    def _ask_reload(self) -> None:
        if not self._asked_to_end:
            self._asked_to_end, self._ending = "SIGHUP", Ending.RELOAD
            self._pool.wake()

    def _end_at_once(self) -> None:
        """Leave as we are: the next start finds the directories, ``perago gc`` the branches."""
        for seen in self._pool.look():
            if seen.pid:
                with suppress(OSError):
                    os.killpg(seen.pid, signal.SIGKILL)
        os._exit(INTERRUPTED)

    def _drain(self) -> None:
        """Take nothing new; give running attempts the grace that their tasks ask for (W6)."""
        now = self._clock.monotonic()
        running = self._executions.working
        known = self._plan.tasks
        names = [run.claim.attempt.task_def_name for run in running]
        tasks = [known[name] for name in names if name in known]
        self._deadline = now + drain_seconds(
            [task.budget.worker_shutdown_grace_seconds for task in tasks],
            self._settings.shutdown_force_kill_after_seconds,
        )
        self._last_poll_until = now + POLL_GRACE_SECONDS
        self._stop_polling()
        self._pool.want(0)
        facts = {"signal": self._asked_to_end, "running": len(running)}
        self._fanout.worker(WorkerEvent.DRAINING, facts)

    def _stop_polling(self) -> None:
        if self._poller is not None:
            self._poller.stop()
        for claim in self._claim_queue.close():
            self._give_back(claim)

    def _over(self) -> bool:
        if self._error is not None:
            return True
        if not self._claim_queue.closed or self._executions.working:
            return False
        now = self._clock.monotonic()
        if self._poller is not None and not self._poller.join(0) and now < self._last_poll_until:
            return False
        left = self._post_mortem.left or self._executions.reporting
        return not left or now > self._deadline + LAST_ERRANDS_SECONDS

    def _close(self) -> None:
        self._stop_polling()
        # There are some only when the worker itself cannot go on.
        for run in self._executions.working:
            self._executions.kill(run, f"worker stopped: {self._error}")
        self._pool.close()
        self._post_mortem.sweep_soon()
        self._reporter.close(LAST_ERRANDS_SECONDS)
        self._post_mortem.close(LAST_ERRANDS_SECONDS)
        self._keeper.close(POLL_GRACE_SECONDS)
        self._read_inbox()
        self.not_ready = "stopped"
        self._fanout.worker(WorkerEvent.ENDED, self.ended)
        self._write_state(self._snapshot().as_json() | {"state": "stopped"}, at_once=True)
        self._client.close()
        self._fanout.close(POLL_GRACE_SECONDS)

    # --- the loop ------------------------------------------------------------------------------

    def _patience(self) -> float:
        return (
            _ENDING_SECONDS if self._claim_queue.closed and not self._executions else self._rhythm()
        )

    def _rhythm(self) -> float:
        """Return how often to look after everything: seldom while there is nothing to see."""
        return _BUSY_SECONDS if self._executions or self.not_ready else _IDLE_SECONDS

    def _hear(self, report: Report) -> None:
        match report:
            case Message(_, execution_id, body):
                self._executions.heard(execution_id, body)
            case Output(executor_id, execution_id, stream, line):
                run = self._executions.get(execution_id)
                worker_id = self._worker_ids.get(executor_id, "")
                self._fanout.output(run.claim if run else None, worker_id, stream, line)
            case Finished(executor_id, execution_id, outcome):
                self._executions.finished(execution_id, outcome)
                if self._watchdog.worn_out(self._pool, executor_id):
                    self._recycle(executor_id)
            case Died(executor_id, execution_id, how):
                self._died(executor_id, execution_id, how)
            case StartFailed(error, detail):
                self._fanout.worker(WorkerEvent.START_FAILED, {"why": str(error), "detail": detail})
                self._error = error

    def _died(self, executor_id: str, execution_id: str, how: str) -> None:
        now = self._clock.monotonic()
        worker_id = self._worker_ids.get(executor_id, "")
        facts = {"worker_id": worker_id, "execution_id": execution_id, "how": how}
        self._executions.tally.died += 1
        self._fanout.worker(WorkerEvent.EXECUTOR_DIED, facts)
        self._executions.died(execution_id, how)
        self._deaths = restart.recent_deaths((*self._deaths, now), now)
        until = restart.closed_until(self._deaths, self._plan.size)
        if until > max(now, self._closed_until):
            self._closed_until = until
            paused = {"deaths": len(self._deaths), "pause_seconds": round(until - now)}
            self._fanout.worker(WorkerEvent.CRASH_LOOP, paused)

    def _enforce(self) -> None:
        """End what was given its time and did not use it."""
        if self._asked_to_end and not self._claim_queue.closed:
            self._drain()
        self._executions.end_overdue()
        if self._claim_queue.closed and self._clock.monotonic() >= self._deadline:
            for run in self._executions.working:
                self._executions.kill(
                    run,
                    f"worker stopped by {self._asked_to_end}: the attempt did not end in time;"
                    " give it more in worker_shutdown_grace_seconds",
                )

    def _hand_out(self) -> None:
        """Give waiting claims to idle executors; whoever cleans up will be idle in a moment.

        An engine that takes no results gets no more attempts either: they would only pile up.
        """
        self._reporter.quiet(not self._executions)
        if self._claim_queue.closed or not self._assembled():
            return
        idle = self._pool.idle[: max(0, self._reporter.most - self._executions.reporting)]
        each = min(AHEAD_CLAIMS, int(SOON_SECONDS / max(self._executions.usual_seconds, 0.001)))
        claims = self._claim_queue.take(len(idle), self._executions.ending, each * self._plan.size)
        if self._clock.monotonic() < self._closed_until:
            self._claim_queue.rest()
        for executor_id, claim in zip(idle, claims, strict=False):
            if executor_id not in self._worker_ids:
                self._learn()
            self._executions.begin(claim, executor_id, self._worker_ids[executor_id])
        for claim in self._claim_queue.overdue(AHEAD_SECONDS):
            self._executions.usual_seconds = NEVER_SEEN  # They are not short any more.
            self._give_back(claim)

    def _look_after(self) -> None:
        now = self._clock.monotonic()
        if now - self._looked_at < self._rhythm():
            return
        self._looked_at = now
        self._learn()
        for seen, verdict, why in self._watchdog.rounds(self._pool):
            run = self._executions.get(seen.execution_id)
            if run is not None:
                self._executions.kill(run, why)
            elif verdict is HealthVerdict.NEVER_READY:
                self._error = self._watchdog.never_ready()
            elif verdict is HealthVerdict.RECYCLE:
                self._recycle(seen.executor_id)
        if self._poller is not None and not self._claim_queue.closed and self._poller.hung:
            self._poller.stop()
            self._poller = self._new_poller()
            self._fanout.worker(WorkerEvent.POLLER_REPLACED, {"why": "a poll did not come back"})
        if now - self._swept_at > self._settings.gc_interval_seconds:
            self._swept_at = now
            self._post_mortem.sweep_soon()
        snapshot = self._snapshot()
        self.not_ready = snapshot.not_ready
        self._write_state(snapshot.as_json())

    def _assembled(self) -> bool:
        """Return whether all executors have been there once, or had their time to come."""
        if not self._complete:
            ready = sum(seen.ready for seen in self._pool.look())
            waited = self._clock.now() - self._started_at
            self._complete = ready == self._plan.size or waited > ASSEMBLE_SECONDS
        return self._complete

    # --- small things --------------------------------------------------------------------------

    def _snapshot(self) -> StatusSnapshot:
        return StatusSnapshot(
            draining=self._claim_queue.closed,
            executors=self._pool.look(),
            worker_id=self._worker_id,
            bytes_of=self._watchdog.bytes_of,
            executions=self._executions,
            poller=self._poller,
            now=self._clock.monotonic(),
            wall=self._wall,
            closed_until=self._closed_until,
        )

    def _write_state(self, snapshot: dict[str, Any], *, at_once: bool = False) -> None:
        state = snapshot | {
            "instance_id": self._settings.instance_id,
            "started_at": self._started_at,
            "written_at": self._clock.now(),
            "mode": self._plan.mode,
            "size": self._plan.size,
            "tasks": sorted(self._plan.tasks),
            "problems": list(self._fanout.problems),
        }
        self._state.write(state, self._clock.monotonic(), at_once=at_once)

    def _recycle(self, executor_id: str) -> None:
        facts = {"worker_id": self._worker_ids.get(executor_id, "")}
        self._fanout.worker(WorkerEvent.EXECUTOR_RECYCLED, facts)
        self._pool.end(executor_id)

    def _learn(self) -> None:
        """Learn the names of executors that are new."""
        for seen in self._pool.look():
            if seen.executor_id not in self._worker_ids:
                worker_id = self._worker_id(seen.number)
                if worker_id in self._worker_ids.values():
                    self._post_mortem.sweep_soon()  # One has ended there: its programs had homes.
                self._worker_ids[seen.executor_id] = worker_id
                facts = {"worker_id": worker_id, "executor_pid": seen.pid}
                self._fanout.worker(WorkerEvent.EXECUTOR_STARTED, facts)

    def _worker_id(self, number: int) -> str:
        return f"{self._settings.worker_id_prefix}{number:04d}"

    def _give_back(self, claim: Claim) -> None:
        def action() -> None:
            self._keeper.release(claim.execution_id)  # First: no heartbeat may cross it.
            give_back(self._client, claim.attempt, self._worker_id(1), self._note)

        self._executions.tally.given_back += 1
        self._post_mortem.do(action)

    # --- called by other threads ---------------------------------------------------------------

    def _on_claim(self, claim: Claim) -> None:
        task = self._plan.tasks.get(claim.attempt.task_def_name)
        wanted = task.budget.heartbeat_interval_seconds if task else claim.lease_seconds
        every = beat_seconds(wanted, claim.lease_seconds)
        self._keeper.hold(claim, self._worker_id(1), every)

    def _on_lost(self, execution_id: str, why: str) -> None:
        self._claim_queue.drop(execution_id)
        self._inbox.put(lambda: self._executions.lost(execution_id, why))
        self._pool.wake()

    def _on_heard(self, execution_id: str, body: Mapping[str, object]) -> None:
        self._inbox.put(lambda: self._executions.heard(execution_id, body))

    def _on_reported(self, execution_id: str, outcome: Outcome, problem: str) -> None:
        if problem:
            self._note(WorkerEvent.REPORT_FAILED, {"execution_id": execution_id, "why": problem})
        self._inbox.put(lambda: self._executions.reported(execution_id, outcome))
        self._pool.wake()

    def _on_confirmed(self, run: RunningExecution) -> None:
        self._inbox.put(lambda: self._executions.confirmed(run))
        self._pool.wake()

    def _on_beat_error(self, execution_id: str, why: str) -> None:
        self._note(WorkerEvent.HEARTBEAT_FAILED, {"execution_id": execution_id, "why": why})

    def _note(self, event: WorkerEvent, facts: Mapping[str, object]) -> None:
        """Have the main loop say something when it comes round."""
        self._inbox.put(lambda: self._fanout.worker(event, facts))

    def _read_inbox(self) -> None:
        with suppress(queue.Empty):
            while True:
                self._inbox.get_nowait()()
