"""A process that writes state without pause, to be killed: python -m tests.broker.restless FILE."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

from perago.brokers.local.actions import CancelTask, EndRun, Schedule
from perago.brokers.local.state import State
from perago.protocol.values import Status
from perago.workflow.records import RunStatus
from tests.broker.test_state import run_record, task_record


def main(path: Path) -> None:
    with State(path) as state:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        for number in count():
            run_id = f"run-{number}"
            one, two = task_record("a", 1, run_id), task_record("b", 2, run_id)
            state.add_run(run_record(run_id))
            state.apply(run_id, [Schedule(one), Schedule(two)], 1.0)
            state.claim(one, "e", "x", 2.0)
            state.finish(one.task_id, {"status": Status.COMPLETED})
            state.apply(run_id, [CancelTask(two), EndRun(RunStatus.FAILED)], 3.0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
