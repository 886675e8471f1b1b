"""Conductor's task log: joined entries, hidden secrets, nothing that an attempt could wait for."""

from __future__ import annotations

import threading

from perago.errors import BrokerUnavailableError
from perago.observe.secrets import Secrets
from perago.observe.tasklog import TaskLog
from tests.observe import told
from tests.patience import LIMIT, until


class Server:
    """Takes entries; may refuse, or not answer for a while."""

    def __init__(self, refuse: int = 0) -> None:
        self.entries: list[tuple[str, str]] = []
        self.refuse = refuse
        self.answering = threading.Event()
        self.answering.set()

    def log(self, task_id: str, text: str) -> None:
        assert self.answering.wait(LIMIT)
        if self.refuse:
            self.refuse -= 1
            raise BrokerUnavailableError("log task: no answer")
        self.entries.append((task_id, text))


def open_log(server: Server, said: list[str] | None = None, most_lines: int = 1000) -> TaskLog:
    complain = said.append if said is not None else (lambda _: None)
    secrets = Secrets(told.SECRETS)
    return TaskLog(server, secrets, complain, most_lines=most_lines, every_seconds=3600)


def test_lines_warnings_and_traceback_are_one_entry_at_the_end_of_the_attempt() -> None:
    server = Server()
    log = open_log(server)
    claim = told.claim()
    for number in range(5):
        log.output(claim, "w-0001", "stdout", f"line {number}")
    log.output(None, "w-0001", "stdout", "between attempts")
    told.failed(log, claim)
    until(lambda: server.entries)  # Long before the interval is over.
    (task_id, text), *others = server.entries
    assert not others
    assert task_id == claim.attempt.task_id
    assert text.splitlines()[:6] == [*(f"line {number}" for number in range(5)), "Traceback:"]
    assert "warning: failed to clean staging workspace: no [hidden]" in text
    assert not any(secret in text for secret in told.SECRETS)  # V8
    log.close(LIMIT)


def test_attempts_are_kept_apart_and_the_rest_is_sent_on_close() -> None:
    server = Server()
    log = open_log(server)
    one, two = told.claim(), told.claim()
    for claim in (one, two, one, two):
        log.output(claim, "w", "stdout", claim.attempt.task_id)
    log.close(LIMIT)
    assert server.entries == [
        (claim.attempt.task_id, "\n".join([claim.attempt.task_id] * 2)) for claim in (one, two)
    ]


def test_a_very_long_log_becomes_several_entries() -> None:
    server = Server()
    log = open_log(server)
    claim = told.claim()
    for _ in range(100):
        log.output(claim, "w", "stdout", "x" * 1000)
    log.close(LIMIT)
    assert len(server.entries) == 2
    assert sum(len(text.splitlines()) for _, text in server.entries) == 100


def test_a_refusal_is_tried_again() -> None:
    server = Server(refuse=2)
    log = open_log(server)
    log.output(told.claim(), "w", "stdout", "hello")
    log.close(LIMIT)
    assert [text for _, text in server.entries] == ["hello"]
    assert log.dropped == 0


def test_lost_lines_are_counted_and_said() -> None:
    server = Server(refuse=3)
    said: list[str] = []
    log = open_log(server, said)
    claim = told.claim()
    log.output(claim, "w", "stdout", "lost")
    told.completed(log, claim)
    until(lambda: log.dropped == 1)
    log.output(claim, "w", "stdout", "kept")
    log.close(LIMIT)
    assert [text for _, text in server.entries] == ["kept\n[1 lines were lost here]"]
    assert said == [
        "lines are lost on their way to Conductor's task log",
        "1 lines did not reach Conductor's task log",
    ]


def test_a_server_that_does_not_answer_never_keeps_the_attempt() -> None:
    server = Server()
    said: list[str] = []
    server.answering.clear()
    log = open_log(server, said, most_lines=100)
    claim = told.claim()
    for _ in range(1000):
        log.output(claim, "w", "stdout", "line")
    told.completed(log, claim)
    assert log.dropped >= 800
    log.close(0.2)
    assert any("no time" in text for text in said)
    server.answering.set()
