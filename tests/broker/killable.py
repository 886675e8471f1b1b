"""A runner in a process of its own, to be killed.

python -m tests.broker.killable DIRECTORY RUN SECONDS [nested]

Its tasks append one line per execution to a journal, so that a test can count.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from perago.brokers.local import Controls, LocalBroker, Runner, State, TaskTable
from perago.clock import SystemClock
from perago.process.pool import ProcessPool
from perago.process.reports import Send, Work
from perago.protocol.outcome import Outcome
from perago.protocol.values import Claim, Status
from perago.workflow.events import Event
from tests.broker.definitions import Json, flow, fork, join, simple, sub


def step(ref: str, **params: object) -> Json:
    return simple(ref, inputParameters={"params": params})


def workflow(seconds: float) -> Json:
    chain: list[Json] = [step("a", add=1, seconds=seconds)]
    left = simple("l", inputParameters={"params": {"add": "${a.output.sum}", "seconds": seconds}})
    right = simple("r", inputParameters={"params": {"add": "${a.output.sum}", "seconds": seconds}})
    last = {"add": "${j.output.l.sum}", "seconds": seconds, "more": "${r.output.sum}"}
    return flow(
        *chain,
        fork("f", [left], [right]),
        join("j", "l", "r"),
        simple("z", inputParameters={"params": last}),
    )


def nested(seconds: float) -> Json:
    """Write the same steps, the first ones inside of a sub workflow in a sub workflow."""
    inner = flow(
        simple(
            "a", inputParameters={"params": {"add": "${workflow.input.add}", "seconds": seconds}}
        ),
        simple("l", inputParameters={"params": {"add": "${a.output.sum}", "seconds": seconds}}),
        name="inner",
    )
    outer = flow(sub("i", inner, add="${workflow.input.add}"), name="outer")
    right = step("r", add=1, seconds=seconds)
    last = {"add": "${o.output.sum}", "seconds": seconds}
    return flow(
        fork("f", [sub("o", outer, add=1)], [right]),
        join("j", "o", "r"),
        simple("z", inputParameters={"params": last}),
    )


def make(directory: Path, send: Send) -> Work:
    """Work as a real executor does: report to the state, then return."""
    broker = LocalBroker(State(directory / "state.db"), SystemClock())

    def run(claim: Claim) -> Outcome:
        params: Any = claim.input["params"]
        send({"begun": claim.attempt.reference_task_name})
        time.sleep(params["seconds"])  # the work
        if params["seconds"] > 60:
            raise AssertionError("nobody killed me")
        outcome = Outcome(Status.COMPLETED, output={"sum": params["add"] + 1})
        accepted = broker.report(claim.attempt, outcome)
        with (directory / "journal").open("a") as journal:
            line = [claim.attempt.reference_task_name, claim.attempt.retry_count, accepted]
            journal.write(json.dumps(line) + "\n")
        return outcome

    return run


def tell(event: Event) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


def main(
    directory: Path,
    *,
    run_id: str = "",
    seconds: float = 0.02,
    shape: Callable[[float], Json] = workflow,
) -> None:
    table = TaskTable({"t": Controls(retry_count=0)})
    work = functools.partial(make, directory)
    with (
        State(directory / "state.db") as state,
        ProcessPool(work, 2, lock_directory=directory) as pool,
    ):
        runner = Runner(state, pool, table, directory, SystemClock(), on_event=tell)
        if run_id:
            runner.resume(run_id)
        else:
            runner.run(runner.create(shape(seconds), {}).id)


if __name__ == "__main__":
    main(
        Path(sys.argv[1]),
        run_id=sys.argv[2],
        seconds=float(sys.argv[3]),
        shape=nested if sys.argv[4:] else workflow,
    )
