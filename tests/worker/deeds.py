"""Tasks that do what their params say; copied beside a worker under test and imported there.

``DEEDS`` in the environment makes the task names of one test its own.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import sys
import time
from pathlib import Path

from pydantic import BaseModel

import perago
from perago import (
    PublishBudget,
    RetryPolicy,
    TaskControls,
    TaskFailed,
    TimeoutPolicy,
    WorkspaceSpec,
    task,
)
from perago.history.event_log import AttemptJournal
from perago.protocol.events import Event

TAG = os.environ["DEEDS"]
RESPONSE = float(os.environ.get("DEEDS_RESPONSE", "30"))
GRACE = float(os.environ.get("DEEDS_GRACE", "30"))
OWNER = "tests@example.com"
CONTROLS = TaskControls(
    retry=RetryPolicy(count=3, delay_seconds=0),
    timeout=TimeoutPolicy(response_seconds=int(RESPONSE), policy="RETRY"),
)
BUDGET = PublishBudget(
    observed_merge_p99_seconds=1,
    safety_margin_seconds=1,
    lakefs_merge_timeout_seconds=10,
    conductor_completion_timeout_seconds=10,
    worker_shutdown_grace_seconds=GRACE,
    heartbeat_interval_seconds=10,
)


class Params(BaseModel):
    do: str = ""
    seconds: float = 0
    path: str = ""
    name: str = "out.txt"
    text: str = "written"
    pause: str = ""
    """Wait at this point of the journal until a file ``path`` + ``.go`` is there."""


class Result(BaseModel):
    text: str
    pid: int


@task(name=f"free_{TAG}", owner_email=OWNER, controls=CONTROLS)
def free(params: Params) -> Result:
    DEEDS[params.do](params)
    return Result(text=params.text, pid=os.getpid())


@task(
    name=f"write_{TAG}",
    owner_email=OWNER,
    workspace=WorkspaceSpec(prefix="/data"),
    controls=CONTROLS.model_copy(update={"publish_budget": BUDGET}),
)
def write(workspace: Path, params: Params) -> Result:
    (workspace / params.name).write_text(params.text)
    DEEDS[params.do](params)
    return Result(text=params.text, pid=os.getpid())


def _nothing(params: Params) -> None:
    pass


def _sleep(params: Params) -> None:
    _begun(params)
    time.sleep(params.seconds)  # the work


def _wait(params: Params) -> None:
    """Work until told to go on; a lost attempt gives up."""
    _begun(params)
    while not Path(f"{params.path}.go").exists():
        if perago.cancelled():
            Path(f"{params.path}.cancelled").touch()
            raise TaskFailed("nobody wants this any more")
        time.sleep(0.02)  # between two looks


def _deaf(params: Params) -> None:
    """Work for ever, whoever asks."""
    _begun(params)
    while True:
        time.sleep(1)  # the work


def _exit(params: Params) -> None:
    if _first(params):
        os._exit(3)


def _signal(params: Params) -> None:
    if _first(params):
        os.kill(os.getpid(), signal.SIGKILL)


def _fail_once(params: Params) -> None:
    if _first(params):
        raise TaskFailed("not this time")


def _fail(params: Params) -> None:
    raise TaskFailed("never")


def _fork(params: Params) -> None:
    """Leave the body twice: in this process and in a copy of it."""
    if _first(params):
        os.fork()


def _fork_and_leave(params: Params) -> None:
    if _first(params) and os.fork() == 0:
        time.sleep(600)  # until it is killed


def _memory(params: Params) -> None:
    if _first(params):
        kept = []
        while True:
            kept.append(bytearray(os.urandom(1 << 20)) * 8)
            time.sleep(0.005)  # the supervisor has to see it grow


def _hold_the_gil(params: Params) -> None:
    if _first(params):
        re.match(r"(a+)+$", "a" * 64 + "b")


def _use_no_more_descriptors(params: Params) -> None:
    """Lower a limit for good: nothing can be opened, so nothing can be removed either."""
    if _first(params):
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))


def _big(params: Params) -> None:
    params.text = "x" * int(params.seconds)


def _print(params: Params) -> None:
    sys.stdout.write("printed by the body\n")


def _begun(params: Params) -> None:
    if params.path:
        Path(f"{params.path}.begun").write_text(str(os.getpid()))


def _first(params: Params) -> bool:
    """Tell whether no attempt was here before."""
    path = Path(f"{params.path}.first")
    if path.exists():
        return False
    path.touch()
    return True


DEEDS = {
    "": _nothing,
    "sleep": _sleep,
    "wait": _wait,
    "deaf": _deaf,
    "exit": _exit,
    "signal": _signal,
    "fail once": _fail_once,
    "fail": _fail,
    "fork": _fork,
    "fork and leave": _fork_and_leave,
    "memory": _memory,
    "gil": _hold_the_gil,
    "no descriptors": _use_no_more_descriptors,
    "big": _big,
    "print": _print,
}

_event = AttemptJournal.event


def _pausing_event(self: AttemptJournal, event: Event) -> None:
    """Stop at the point that the params name, as a slow machine would."""
    _event(self, event)
    given = vars(self)["_claim"].input.get("params") or {}
    if given.get("pause") == event.title and vars(self)["_claim"].attempt.retry_count == 0:
        path = given["path"]
        Path(f"{path}.paused").touch()
        while not Path(f"{path}.go").exists():
            time.sleep(0.02)  # between two looks


AttemptJournal.event = _pausing_event  # type: ignore[method-assign]
