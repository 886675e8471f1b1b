"""A program that does one attempt after the other (Q8)."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from perago.programs import launching, serving
from perago.protocol.values import Status
from perago.tasks.cancellation import CancellationToken, holding
from perago.testing import Lab
from tests.patience import until
from tests.programs.conftest import Declare
from tests.programs.test_ending import processes_with
from tests.programs.test_running import told

SERVER = """
import json, os, subprocess, sys, time
attempts = os.fdopen(int(os.environ["PERAGO_ATTEMPTS"]))
answers = os.fdopen(int(os.environ["PERAGO_ANSWERS"]), "w", buffering=1)
events = os.fdopen(int(os.environ["PERAGO_EVENTS"]), "w", buffering=1)
def answer(**words): answers.write(json.dumps(words) + chr(10))
count = 0
for line in attempts:
    asked = json.loads(line)
    if "cancel" in asked:
        answer(execution_id=asked["cancel"], error="cancelled")
        continue
    count += 1
    own, params = asked["execution_id"], asked["params"]
    print("prints do no harm", params)
    do = params.get("do", "")
    if do == "write":
        open(os.path.join(asked["workspace"], "new.txt"), "w").write(str(count))
    if do == "tell":
        event = {"type": "metric", "name": "x", "value": 1}
        events.write(json.dumps(event | {"execution_id": own}) + chr(10))
        events.write(json.dumps(event | {"execution_id": "another"}) + chr(10))
    if do == "crash": print("out of luck", file=sys.stderr); sys.exit(3)
    if do == "leave": subprocess.Popen(["sleep", "1000"], start_new_session=True)
    if do == "orphan": subprocess.run(["sh", "-c", "sleep 1000 &"], stdout=2)
    if do == "wait":
        open(params["ready"], "w").write("x")
        continue
    if do == "deaf":
        open(params["ready"], "w").write("x")
        time.sleep(1000)
    if do == "fail": answer(execution_id=own, error="no song")
    elif do == "never": answer(execution_id=own, error="no song", terminal=True)
    elif do == "other": answer(execution_id="another", result={})
    elif do == "junk": answers.write("junk" + chr(10))
    elif do == "last":
        import threading
        late = os.path.join(asked["workspace"], "late.txt")
        threading.Timer(0.05, lambda: open(late, "w")).start()
        answer(execution_id=own, result={"pid": os.getpid()}, last=True)
    elif do == "late":
        answer(execution_id=own)
        time.sleep(0.1)
        answer(execution_id=own)
    elif do == "typo": answer(execution_id=own, reslut={})
    elif do == "object": answer(execution_id=own, error={})
    elif do == "closed":
        answers.close()
        time.sleep(1000)
    elif do == "list": answer(execution_id=own, result=[])
    elif do == "twice": answers.write((json.dumps({"execution_id": own}) + chr(10)) * 2)
    else: answer(execution_id=own, result={"count": count, "pid": os.getpid(), "tmp": asked["tmp"]})
"""
MORE = "serve = true"


def test_q8_it_is_started_once(lab: Lab, declare: Declare) -> None:
    step = declare(SERVER, MORE)
    first = lab.run(step, {"do": "write"})
    second = lab.run(step, {"do": "write"})
    assert first.result["pid"] == second.result["pid"]
    assert first.result["tmp"] != second.result["tmp"]
    assert second.files == {"new.txt": b"2"}


FAILURES = {
    "fail": (Status.FAILED, "TaskFailed: no song", True),
    "never": (Status.FAILED_WITH_TERMINAL_ERROR, "TaskTerminalError: no song", True),
    "crash": (Status.FAILED, "exit code 3 before it answered: out of luck", False),
    "other": (Status.FAILED, "does not carry the execution_id", False),
    "junk": (Status.FAILED, "is not JSON", False),
    "typo": (Status.FAILED, "has 'reslut', which is unknown", True),
    "object": (Status.FAILED, "an error that is not a text", True),
    "closed": (Status.FAILED, "closed PERAGO_ANSWERS before it answered", False),
    "list": (Status.FAILED, "is not an object", True),
    "twice": (Status.FAILED, "one object for each attempt", False),
}


@pytest.mark.parametrize("do", FAILURES)
def test_q8_a_failure_is_one_attempts_own(lab: Lab, declare: Declare, do: str) -> None:
    step = declare(SERVER, MORE)
    before = lab.run(step).result["pid"]
    status, reason, stays = FAILURES[do]
    failed = lab.run(step, {"do": do})
    assert failed.status == status
    assert reason in failed.reason
    after = lab.run(step)
    assert after.completed, after.reason
    assert (after.result["pid"] == before) is stays


def test_q8_what_it_says_too_late_is_no_other_attempts_failure(lab: Lab, declare: Declare) -> None:
    step = declare(SERVER, MORE)
    before = lab.run(step).result["pid"]
    assert lab.run(step, {"do": "late"}).completed
    time.sleep(0.5)  # until the second answer is there
    after = lab.run(step)
    assert after.completed, after.reason
    assert after.result["pid"] != before


def test_q8_a_program_may_print_before_it_reads(lab: Lab, declare: Declare) -> None:
    step = declare("print('x' * 300_000, flush=True)\n" + SERVER, MORE)
    assert lab.run(step, {"much": "y" * 300_000}).completed


@pytest.mark.parametrize("do", ["leave", "orphan"])
def test_q8_what_it_leaves_ends_it(lab: Lab, declare: Declare, tmp_path: Path, do: str) -> None:
    step = declare(SERVER, MORE)
    before = lab.run(step).result["pid"]
    run = lab.run(step, {"do": do})
    assert run.completed, run.reason
    assert told(run) == ["the program left processes running"]
    assert processes_with(str(tmp_path / "lab")) == []
    assert lab.run(step).result["pid"] != before


def test_q8_one_that_asks_for_its_end_is_ended_before_its_files_are_read(
    lab: Lab, declare: Declare
) -> None:
    step = declare(SERVER, MORE)
    first = lab.run(step, {"do": "last"})
    assert first.completed, first.reason
    assert not Path(f"/proc/{first.result['pid']}").exists()
    assert "late.txt" not in "".join(first.files)
    assert lab.run(step).result["count"] == 1


def test_q8_events_carry_the_id_of_their_execution(lab: Lab, declare: Declare) -> None:
    run = lab.run(declare(SERVER, MORE), {"do": "tell"})
    assert run.events.count("metric") == 1


@pytest.mark.parametrize("do", ["wait", "deaf"])
def test_q8_a_lost_attempt_is_told_and_then_ended(
    lab: Lab, declare: Declare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, do: str
) -> None:
    monkeypatch.setattr(launching, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(serving, "GRACE_SECONDS", 0.2)
    step, ready = declare(SERVER, MORE), tmp_path / "ready"
    token = CancellationToken()

    def cancel() -> None:
        until(ready.exists, "the attempt has begun")
        token.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    with holding(token, whole_process=False):
        run = lab.run(step, {"do": do, "ready": str(ready)})
    thread.join()
    reason = "TaskFailed: cancelled" if do == "wait" else "before it answered"
    assert reason in run.reason
    assert lab.run(step).completed


def test_q8_one_that_never_starts_is_told(lab: Lab, declare: Declare) -> None:
    run = lab.run(declare(more='serve = true\ncommand = ["no-such-program"]'))
    assert "the program cannot be started" in run.reason


@pytest.mark.parametrize("do", ["last", "crash", "leave", "closed"])
def test_v7_what_a_program_had_for_itself_goes_with_it(lab: Lab, declare: Declare, do: str) -> None:
    step = declare(SERVER, MORE)
    lab.run(step)
    assert len(attempt_dirs(lab)) == 1, "it is there for the next attempt"
    lab.run(step, {"do": do})
    assert attempt_dirs(lab) == []


def test_v7_what_one_that_never_starts_would_have_had_goes(lab: Lab, declare: Declare) -> None:
    lab.run(declare(more='serve = true\ncommand = ["no-such-program"]'))
    assert attempt_dirs(lab) == []


def attempt_dirs(lab: Lab) -> list[Path]:
    return [path for path in lab.attempt_dirs.iterdir() if path.is_dir()]


def test_q8_it_ends_with_its_executor(lab: Lab, declare: Declare, tmp_path: Path) -> None:
    lab.run(declare(SERVER, MORE))
    assert processes_with(str(tmp_path / "lab"))
    lab.close()
    assert processes_with(str(tmp_path / "lab")) == []
