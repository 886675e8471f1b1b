"""Nothing that an executor sends can end, block or deceive its owner (R3, W5)."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perago.process import messages
from perago.process.channel import ExecutorsEnd, OwnersEnd, framed
from perago.process.executor import LINE_LOST
from perago.process.messages import BadMessageError, Done, ReceivedMessages, body_of, decode, encode
from perago.process.reports import Died, Finished, Message, Output
from perago.protocol.outcome import Outcome
from perago.protocol.plain import MOST_DEPTH
from perago.protocol.values import Attempt, Claim, Phase, Status
from tests.patience import LIMIT, Deadline
from tests.process.executors import claim
from tests.process.test_pool import Pool, idle, pool, reports_until, run

__all__ = ["pool"]
HUGE = struct.pack(">I", 0xFFFFFFFF)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
OBJECT = st.dictionaries(st.text(), JSON, max_size=5)


def nested(depth: int) -> list[Any]:
    deep: list[Any] = []
    for _ in range(depth - 1):
        deep = [deep]
    return deep


# --- what a message is ------------------------------------------------------------------------


@settings(deadline=None)
@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_whatever_comes_is_a_message_or_an_error_of_its_own(data: bytes) -> None:
    try:
        decode(data)
    except BadMessageError as error:
        assert len(str(error)) < 500  # noqa: PT017 - it may also be a message


@settings(deadline=None)
@given(st.sampled_from(sorted(messages._READERS)), st.lists(JSON, max_size=7))  # noqa: SLF001
def test_a_known_kind_with_any_fields_is_a_message_or_an_error(
    kind: str, fields: list[object]
) -> None:
    with contextlib.suppress(BadMessageError):
        decode(json.dumps([kind, *fields]).encode())


@settings(deadline=None)
@given(OBJECT, OBJECT, st.text())
def test_claims_and_outcomes_arrive_as_they_were_sent(
    value: dict[str, object], output: dict[str, object], reason: str
) -> None:
    one = Claim(Attempt("w", "t", 1, "r", "d", 2, 3, 4), value, "e", 1.5, {"traceparent": "x"})
    assert decode(encode(one)) == one
    done = Done("e", Outcome(Status.COMPLETED, output, reason, Phase.PUBLISH, "hard"), last=True)
    assert decode(encode(done)) == done


@settings(deadline=None)
@given(OBJECT)
def test_what_is_said_arrives(body: dict[str, object]) -> None:
    heard = decode(encode(messages.WorkMessages("e", (body_of(body), body_of({})))))
    assert heard == ReceivedMessages("e", (body, {}))


@pytest.mark.parametrize(
    "value",
    [object(), {1: {2}}, nested(100_000), {(1, 2): 3}, 10**5000],
    ids=["object", "set", "deep", "tuple", "long"],
)
def test_a_body_that_is_not_json_is_told_as_far_as_it_can_be(value: object) -> None:
    said = json.loads(body_of({"event": "metric", "execution_id": "e", "value": value}))
    assert said["event"] == "metric"
    assert said["execution_id"] == "e"


class Unspeakable:
    def __str__(self) -> str:
        raise ValueError("no words")


def test_a_body_without_words_is_told_without_them() -> None:
    assert json.loads(body_of({"event": "x", "v": Unspeakable()}))["unsendable"] == "ValueError"


def test_a_body_without_end_is_cut() -> None:
    body = {"event": "changed", "added": ["x" * 1000] * 40_000, "text": "y" * (40 << 20)}
    written = body_of(body)
    assert len(written) < 2 << 20
    assert json.loads(written)["added"][-1] == "... 39800 more"


@pytest.mark.parametrize("depth", [MOST_DEPTH * 3, 100_000])
def test_a_claim_that_is_too_deep_is_refused_in_words(depth: int) -> None:
    with pytest.raises(ValueError, match="nested deeper than"):
        encode(claim("e", params=nested(depth)))


# --- the line ---------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=8), st.data())
def test_messages_come_out_whole_however_they_arrive(sent: list[bytes], data: Any) -> None:
    ours, theirs = multiprocessing.Pipe()
    end = OwnersEnd(ours)
    stream = b"".join(map(framed, sent))
    heard: list[bytes] = []
    while stream:
        count = data.draw(st.integers(1, len(stream)))
        os.write(theirs.fileno(), stream[:count])
        stream = stream[count:]
        heard += end.receive()
        assert not end.at_end
    theirs.close()
    assert heard + end.receive() == sent
    assert end.at_end
    end.close()


def test_an_owner_never_waits_for_one_who_does_not_read() -> None:
    ours, theirs = multiprocessing.Pipe()
    end, other = OwnersEnd(ours), ExecutorsEnd(theirs)
    message = os.urandom(4 << 20)
    end.send(message)
    end.send(b"next")
    assert end.unsent
    heard: list[bytes] = []
    os.set_blocking(theirs.fileno(), True)
    reader = threading.Thread(target=lambda: heard.extend([other.receive(), other.receive()]))
    reader.start()
    deadline = Deadline()
    while end.unsent and not deadline.over:
        end.flush()
    reader.join(LIMIT)
    assert heard == [message, b"next"]
    end.close()
    theirs.close()


# --- executors that misbehave -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("deed", "how"),
    [
        ({"write": [*HUGE]}, "it sent what is not a message"),
        ({"write": [*framed(b"\x80\x04garbage")]}, "it sent what is not a message"),
        ({"write": [*framed(b'["done","e1"]')]}, "it sent what is not a message"),
        (
            {"write": [*framed(b'["done","e1",false,["SPLENDID",{},"",null,null]]')]},
            "not a message",
        ),
        ({"write": [*framed(b"[" * 50_000)]}, "it sent what is not a message"),
        ({"half_and_fork": 1}, "exit code 4"),
        ({"close_all": 1}, ""),
    ],
    ids=["length", "pickle", "fields", "status", "depth", "half, and a copy", "all closed"],
)
def test_r3_an_executor_that_spoils_its_line_is_ended_and_replaced(
    pool: Pool, deed: dict[str, object], how: str
) -> None:
    one = pool()
    (executor_id,) = idle(one)
    one.submit(claim("e1", say=[1], **deed), executor_id)
    reports = reports_until(one, Died)
    assert [report for report in reports if isinstance(report, Message)]
    last = reports[-1]
    assert isinstance(last, Died)
    assert last.execution_id == "e1"
    assert how in last.how
    assert run(one, "e2", n=1).outcome.completed


def test_half_a_message_keeps_nobody_waiting(pool: Pool) -> None:
    """An executor that stands still in the middle of one; the others go on, and it can be ended."""
    one = pool(size=2)
    first, second = idle(one, 2)
    one.submit(claim("e1", say=[1], half_and_stop=1), first)
    reports_until(one, Message)
    for number in range(3):
        one.submit(claim(f"f{number}", n=1), second)
        (*_, ended) = reports_until(one, Finished)
        assert isinstance(ended, Finished)
        assert ended.outcome.completed
    assert one.kill("e1")


def test_v6_a_closed_line_is_not_written_to_when_its_number_is_a_file(
    pool: Pool, tmp_path: Path
) -> None:
    one = pool()
    (executor_id,) = idle(one)
    file = tmp_path / "out.txt"
    one.submit(claim("e1", close_and_reuse=str(file)), executor_id)
    (*_, last) = reports_until(one, Died)
    assert isinstance(last, Died)
    assert file.read_bytes() == b""


def test_v1_an_executor_whose_line_was_replaced_does_nothing_more(
    pool: Pool, tmp_path: Path
) -> None:
    """What it had open is gone with the line: it would publish and log into another file."""
    one = pool()
    (executor_id,) = idle(one)
    went_on = tmp_path / "went-on"
    one.submit(claim("e1", replace_line=1, touch=str(went_on)), executor_id)
    (*_, last) = reports_until(one, Died)
    assert isinstance(last, Died)
    assert last.how == f"exit code {LINE_LOST}"
    assert not went_on.exists()


def test_a_big_claim_for_an_executor_that_stands_still(pool: Pool) -> None:
    """The owner keeps it; nobody waits, and whoever stands still can be ended."""
    one = pool()
    (executor_id,) = idle(one)
    (pid,) = one.pids
    os.kill(pid, 19)
    one.submit(claim("e1", given="x" * (8 << 20)), executor_id)
    assert one.poll(0.2) == []
    os.kill(pid, 18)
    (*_, ended) = reports_until(one, Finished)
    assert isinstance(ended, Finished)
    assert ended.outcome.output["in"] == {"given": "x" * (8 << 20)}


@pytest.mark.parametrize("depth", [600, 100_000])
def test_a_claim_that_cannot_travel_fails_and_its_executor_stays(pool: Pool, depth: int) -> None:
    """It used to end the worker, and then the next one that the task came to."""
    one = pool()
    (executor_id,) = idle(one)
    one.submit(claim("e1", given=nested(depth)), executor_id)
    (ended,) = reports_until(one, Finished)
    assert isinstance(ended, Finished)
    assert ended.outcome.status is Status.FAILED
    assert "nested deeper than" in ended.outcome.reason
    assert one.idle == (executor_id,)
    assert run(one, "e2", n=1).outcome.completed


def test_what_belongs_to_the_process_is_given_back(pool: Pool) -> None:
    one = pool(capture_output=True)
    (executor_id,) = idle(one)
    one.submit(claim("e1", change=1), executor_id)
    reports = reports_until(one, Finished)
    (*_, ended) = reports
    assert isinstance(ended, Finished)
    assert ended.outcome.completed, ended.outcome.reason
    assert [report.line for report in reports if isinstance(report, Output)] == ["still heard"]
    assert one.idle == (executor_id,)


def test_an_executor_whose_limits_stay_low_is_replaced_before_the_next_claim(pool: Pool) -> None:
    """Where the process may raise them again, it stays."""
    one = pool()
    (first,) = idle(one)
    assert run(one, lower=1).outcome.completed
    (second,) = idle(one)
    assert (first == second) is may_raise_limits()
    assert run(one, "e2", n=1).outcome.completed


def may_raise_limits() -> bool:
    """Tell whether this process is privileged enough, by trying it in a child."""
    program = (
        "import resource as r; h = r.getrlimit(r.RLIMIT_NOFILE);"
        "r.setrlimit(r.RLIMIT_NOFILE, (64, 64)); r.setrlimit(r.RLIMIT_NOFILE, h)"
    )
    asked = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    return asked.returncode == 0


def test_what_is_said_may_be_nested_as_deep_as_it_likes(pool: Pool) -> None:
    one = pool()
    assert run(one, nested=5000).outcome.completed
    assert run(one, "e2", nested=500).outcome.completed
