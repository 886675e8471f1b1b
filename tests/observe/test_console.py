"""What a person sees of a worker: one line each, coloured only on a terminal, never in the way."""

from __future__ import annotations

import io
import os
import pty
import threading
from typing import TextIO

import pytest

from perago.clock import SystemClock
from perago.observe.console import ConsoleLog
from perago.observe.secrets import Secrets
from perago.protocol.worker_events import WorkerEvent
from tests.observe import told
from tests.patience import LIMIT


def open_console(stream: TextIO) -> ConsoleLog:
    return ConsoleLog(SystemClock(), Secrets(told.SECRETS), stream)


def test_one_plain_line_per_attempt_on_a_pipe() -> None:
    stream = io.StringIO()
    console = open_console(stream)
    console.worker(WorkerEvent.STARTED, {"slots": 4})
    console.worker(WorkerEvent.POLLED, {"found": 0})
    told.completed(console, told.claim())
    claim = told.claim(retry=1)
    console.output(claim, "w-0001", "stdout", "rows: 5")
    told.failed(console, claim)
    console.worker(WorkerEvent.EXECUTOR_DIED, {"worker_id": "w-0002", "how": "killed by SIGKILL"})
    console.close(LIMIT)
    lines = [line.partition(" ")[2] for line in stream.getvalue().splitlines()]
    assert lines[0] == "worker started: slots 4"
    assert lines[1].startswith("w-0001 double_ref  COMPLETED  0.0")
    assert lines[1].endswith(" s  +2 -1")
    assert lines[2] == "w-0001 double_ref retry 1 | rows: 5"
    assert lines[3] == (
        "w-0001 double_ref retry 1  warning: failed to clean staging workspace (no [hidden])"
    )
    assert lines[4].endswith("body: ValueError: no")
    assert lines[5] == "worker executor died: worker_id w-0002, how killed by SIGKILL"
    assert "\033" not in stream.getvalue()


def test_colours_on_a_terminal_unless_they_are_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\033[32m" in _on_a_terminal()
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\033" not in _on_a_terminal()


def _on_a_terminal() -> str:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        console = open_console(stream)
        told.completed(console, told.claim())
        console.close(LIMIT)
        shown = os.read(ours, 4096).decode()
    os.close(ours)
    return shown


def test_v8_control_characters_and_secrets_do_not_reach_the_screen() -> None:
    stream = io.StringIO()
    console = open_console(stream)
    console.output(told.claim(), "w-0001", "stdout", f"\033[2Jgone\r {told.SECRETS[1]}")
    console.close(LIMIT)
    assert "\\x1b[2Jgone\\r [hidden]" in stream.getvalue()


def test_a_reader_that_stopped_does_not_stop_the_worker() -> None:
    """Lines that find no room are dropped, and said when there is room again."""
    read_end, write_end = os.pipe()
    with os.fdopen(write_end, "w", encoding="utf-8") as stream:
        console = open_console(stream)
        for number in range(30_000):
            console.output(told.claim(), "w-0001", "stdout", f"{number} {'x' * 80}")
        console.close(0.1)  # It cannot be finished now, and is not waited for.
        found: list[str] = []
        reader = threading.Thread(target=_swallow, args=(read_end, found), daemon=True)
        reader.start()
        console.close(LIMIT)
    reader.join(LIMIT)
    assert "lines were dropped here" in "".join(found)


def _swallow(descriptor: int, found: list[str]) -> None:
    while chunk := os.read(descriptor, 65_536):
        found.append(chunk.decode())
    os.close(descriptor)
