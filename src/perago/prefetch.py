"""Questions that are asked before their answers are wanted: a server's time costs nothing then."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol, TypeVar

T = TypeVar("T")


class Prefetch(Protocol):
    """Takes a question and returns what gives its answer, or raises why there is none."""

    def __call__(self, ask: Callable[[], T]) -> Callable[[], T]:
        """Decide when to ask."""


def when_needed(ask: Callable[[], T]) -> Callable[[], T]:
    """Ask when the answer is wanted, not before."""
    return ask


def in_background(ask: Callable[[], T]) -> Callable[[], T]:
    """Ask now, beside whatever comes next; a question nobody comes back to ends by itself."""
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:  # noqa: BLE001 - raised where the answer is wanted
            answer.set_exception(error)

    threading.Thread(target=run, name="perago-ahead", daemon=True).start()
    return answer.result
