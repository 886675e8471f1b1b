"""The signals of a worker (W6): the first one drains, the second ends at once, HUP reloads."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

STOPPING: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def listening(
    stop: Callable[[str], None], at_once: Callable[[], None], reload: Callable[[], None]
) -> Iterator[None]:
    """Call these while the block runs, on the main thread; they must be quick."""
    received = 0

    def on_stop(number: int, _: FrameType | None) -> None:
        nonlocal received
        received += 1
        if received > 1:
            at_once()
        else:
            stop(signal.Signals(number).name)

    def on_hangup(_number: int, _: FrameType | None) -> None:
        reload()

    before = {number: signal.signal(number, on_stop) for number in STOPPING}
    # A worker started with nohup outlives its terminal.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        before[signal.SIGHUP] = signal.signal(signal.SIGHUP, on_hangup)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
