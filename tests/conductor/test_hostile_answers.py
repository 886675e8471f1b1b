"""Whatever a server sends, polling goes on, and a task that cannot be taken is failed in words."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perago.brokers.conductor.backoff import Backoff
from perago.brokers.conductor.client import ConductorClient
from perago.brokers.conductor.mapping import claim_of, refusal_of, snapshot_of
from perago.clock import SystemClock
from perago.errors import PeragoError
from perago.protocol import plain
from perago.protocol.values import Attempt, Claim
from perago.settings import ConductorSettings
from perago.transfer.wire import parsed
from perago.worker.claim_queue import ClaimQueue
from perago.worker.polling import Asking, Poller
from tests.patience import LIMIT

TASK: dict[str, Any] = {
    "taskType": "count",
    "taskDefName": "count",
    "status": "IN_PROGRESS",
    "referenceTaskName": "step",
    "workflowInstanceId": "w-1",
    "taskId": "t-1",
    "retryCount": 0,
    "responseTimeoutSeconds": 600,
    "inputData": {"params": {"x": 1}},
}
ATTEMPT = Attempt("w-1", "t-1", 0, "step", "count")
WEIRD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats()
    | st.text()
    | st.just("\ud800")
    | st.just("x" * 2000),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(sorted([*TASK, "seq", "startTime"])), WEIRD))
def test_any_task_is_a_claim_or_refused_in_words(changes: dict[str, Any]) -> None:
    task = TASK | changes
    try:
        claim = claim_of(task, "e")
    except PeragoError as error:
        assert str(error)  # noqa: PT017 - it may also be a claim
        refusal = refusal_of(task, str(error), "w")
        if refusal is not None:
            assert refusal["status"] == "FAILED"
            json.dumps(refusal)
    else:
        assert 0 <= claim.lease_seconds < 1e16
        assert claim.attempt.task_id.isprintable()
    with suppress(PeragoError):
        snapshot_of(ATTEMPT, task)


@settings(deadline=None)
@given(st.binary() | WEIRD.map(lambda value: json.dumps(value).encode()))
def test_any_answer_is_read_or_none(data: bytes) -> None:
    parsed(data)


@settings(deadline=None)
@given(WEIRD, st.integers(0, 3))
def test_what_can_be_read_is_read_as_it_is(value: object, indent: int) -> None:
    text = json.dumps(value, indent=indent or None)
    assert plain.readable(text) == text


def deep(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize(
    "value",
    [deep(600), deep(100_000), "9" * 5000, '{"a":' * 5000 + "1" + "}" * 5000],
    ids=["600 levels", "100,000 levels", "5,000 digits", "5,000 objects"],
)
def test_one_bad_value_does_not_hide_the_others(value: str) -> None:
    text = json.dumps(TASK)
    bad = json.dumps(TASK | {"taskId": "t-2", "inputData": {"params": "@"}}).replace('"@"', value)
    first, second, third = parsed(f"[{text},{bad},{text}]".encode())
    assert first == third == TASK
    with pytest.raises(PeragoError, match=r"task input (is nested|holds a number)"):
        claim_of(second, "e")
    assert refusal_of(second, "why", "w")


def test_the_look_at_an_answer_is_linear() -> None:
    """Every token is looked at once, also in what is no JSON: counted, not timed."""
    for text in ('"\\"' * 50_000, "[" * 50_000, '"' * 100_001, "9" * 400_000, '{"a":"' * 20_000):
        tokens = sum(1 for _ in plain._TOKEN.finditer(text[:2000]))  # noqa: SLF001 - counted
        assert tokens <= 2000
        plain.readable(text)


# --- a poller on a server that sends anything ---------------------------------------------------


class Server:
    """Answers every poll with the next of its bodies, and every report with 200."""

    def __init__(self, *polls: bytes) -> None:
        self._polls = list(polls)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/api"
        self.reports: list[dict[str, Any]] = []
        self.empty = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._socket.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream, suppress(OSError):
            while line := stream.readline():
                length = 0
                while (header := stream.readline().strip().lower()) != b"":
                    if header.startswith(b"content-length:"):
                        length = int(header.partition(b":")[2])
                body = stream.read(length)
                answer = b""
                if line.startswith(b"GET"):
                    answer = self._polls.pop(0) if self._polls else b"[]"
                    if not self._polls:
                        self.empty.set()
                else:
                    self.reports.append(json.loads(body))
                head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(answer)}\r\n\r\n"
                connection.sendall(head.encode() + answer)


@contextmanager
def polling(server: Server) -> Iterator[list[Claim]]:
    """Run a poller until the server has said all of it."""
    clock = SystemClock()
    client = ConductorClient(ConductorSettings(server.url), call_seconds=10)
    desk = ClaimQueue(lambda: None, clock)
    desk.take(50, 0)
    claims: list[Claim] = []
    asking = Asking(["count"], "w", "", Backoff(0.01, 0.01))
    poller = Poller(client, asking, desk, clock, claims.append, lambda *_: None)
    try:
        assert server.empty.wait(LIMIT)
        yield claims
    finally:
        poller.stop()
        desk.close()
        assert poller.join(LIMIT)
        client.close()
        server.close()


def body(*tasks: object) -> bytes:
    return json.dumps(tasks).encode()


@pytest.mark.parametrize(
    "bad",
    [
        *(b"null", b"7", b'"x"', b"{}", b'[null, 7, [], "x"]', b"[{}]", b"\xff\xfe", b"<html>"),
        *(deep(100_000).encode(), b"[" * 100_000, b'[{"taskId": 1e999}]'),
        body(TASK | {"taskId": None}),
        body(TASK | {"retryCount": float("inf")}),
        body(TASK).replace(b'"retryCount": 0', b'"retryCount": ' + b"9" * 5000),
    ],
    ids=range(14),
)  # fmt: skip
def test_polling_goes_on_after_any_answer(bad: bytes) -> None:
    server = Server(bad, body(TASK | {"taskId": "good"}), b"[]")
    with polling(server) as claims:
        assert [claim.attempt.task_id for claim in claims] == ["good"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"inputData": [1]}, "input: TaskInputError: task input is not an object"),
        ({"inputData": "x"}, "input: TaskInputError: task input is not an object"),
        ({"retryCount": -1}, "input: BrokerError: Conductor gave a task whose retryCount is -1"),
        ({"retryCount": "many"}, "whose retryCount is 'many'"),
        ({"responseTimeoutSeconds": -5}, "whose responseTimeoutSeconds is -5"),
        ({"taskDefName": "other"}, "Conductor gave a task 'other' for 'count'"),
        ({"referenceTaskName": ""}, "without referenceTaskName"),
        ({"referenceTaskName": "a\nb"}, "whose referenceTaskName is 'a\\nb'"),
        ({"inputData": {"params": json.loads(deep(600))}}, "nested deeper than 200 levels"),
    ],
    ids=range(9),
)
def test_i1_a_task_that_cannot_be_claimed_is_failed_and_does_not_come_back_for_ever(
    change: dict[str, Any], reason: str
) -> None:
    server = Server(body(TASK | change, TASK | {"taskId": "good"}), b"[]")
    with polling(server) as claims:
        assert [claim.attempt.task_id for claim in claims] == ["good"]
    (report,) = server.reports
    assert report["taskId"] == "t-1"
    assert report["status"] == "FAILED"
    assert reason in report["reasonForIncompletion"]
