"""R2: what nobody waits for is read back in a quiet moment, and not much later in any case."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from perago.clock import SystemClock
from perago.worker import confirming
from perago.worker.confirming import Confirmations
from tests.patience import LIMIT
from tests.worker.stage import eventually

NEVER = 3600.0
LONG_ENOUGH = 0.3
"""In this time nothing happens that should not."""


class Asked:
    """Errands, and how many of them were done."""

    def __init__(self) -> None:
        self.times = 0
        self._done = threading.Event()

    def __call__(self) -> None:
        self.times += 1
        self._done.set()

    def is_soon(self) -> bool:
        return self._done.wait(LIMIT)

    def is_not(self) -> bool:
        return not self._done.wait(LONG_ENOUGH)


@pytest.fixture
def confirmations(monkeypatch: pytest.MonkeyPatch) -> Iterator[Confirmations]:
    monkeypatch.setattr(confirming, "LATEST_SECONDS", NEVER)
    monkeypatch.setattr(confirming, "QUIET_SECONDS", 0.05)
    made = Confirmations(SystemClock())
    yield made
    made.close(LIMIT)


def test_a_busy_worker_does_not_ask(confirmations: Confirmations) -> None:
    asked = Asked()
    confirmations.quiet(False)
    confirmations.add(asked)
    assert asked.is_not()
    assert confirmations.left == 1
    confirmations.quiet(True)
    assert asked.is_soon()
    eventually(lambda: confirmations.left == 0, "no more questions")


def test_a_moment_without_work_is_not_quiet_yet(
    confirmations: Confirmations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confirming, "QUIET_SECONDS", NEVER)
    asked = Asked()
    confirmations.add(asked)
    for _ in range(3):
        confirmations.quiet(True)
        confirmations.quiet(False)
    assert asked.is_not()


def test_no_question_waits_for_ever(
    confirmations: Confirmations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confirming, "LATEST_SECONDS", 0.1)
    asked = Asked()
    confirmations.add(asked)
    assert asked.is_soon()


def test_there_are_never_too_many(
    confirmations: Confirmations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confirming, "MOST", 3)
    asked = Asked()
    for _ in range(5):
        confirmations.add(asked)
    eventually(lambda: asked.times == 2, "the oldest ones")
    assert confirmations.left == 3


def test_all_is_asked_before_the_end(confirmations: Confirmations) -> None:
    asked = Asked()
    for _ in range(10):
        confirmations.add(asked)
    assert confirmations.close(LIMIT)
    assert (asked.times, confirmations.left) == (10, 0)
