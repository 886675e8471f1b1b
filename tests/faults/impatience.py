"""Clients that give up at once when nothing will come, and never because the machine is slow.

A hang is made by the proxy, so the proxy knows of it: whoever waits for such an answer is told
that its time is over, and the clock is put forward by the time it would have waited. All other
requests have the time that users give them. So a test of a hang takes no time, and a server that
is slow on a busy machine is not taken for one that hangs.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from perago.transfer import http_pool
from tests.faults.proxy import Proxy

LOOK_SECONDS = 0.005


class SkippingClock:
    """Real time, in which sleeping takes none; a clock, and a ``time`` module to put in place."""

    def __init__(self) -> None:
        self._ahead = 0.0
        self.meanwhile: list[Callable[[], object]] = []
        """What happens during the next sleeps, one thing in each."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        return time.time() + self._ahead

    def monotonic(self) -> float:
        """Return seconds that never go back."""
        return time.monotonic() + self._ahead

    def sleep(self, seconds: float) -> None:
        """Let the time pass, and what was planned for it happen."""
        self._ahead += seconds
        if self.meanwhile:
            self.meanwhile.pop(0)()


class _Watched:
    """A connection that is told when the proxy keeps silent on it."""

    def __init__(self, inner: socket.socket, proxy: Proxy, clock: SkippingClock) -> None:
        self._inner = inner
        self._proxy = proxy
        self._clock = clock
        self._port = inner.getsockname()[1]
        self._seconds = 0.0

    def settimeout(self, seconds: float) -> None:
        self._seconds = seconds

    def recv(self, size: int) -> bytes:
        until = time.monotonic() + self._seconds
        while not select.select([self._inner], [], [], LOOK_SECONDS)[0]:
            if self._port in self._proxy.silent:
                self._clock.sleep(self._seconds)
                raise TimeoutError
            if time.monotonic() > until:
                raise TimeoutError
        return self._inner.recv(size)


def give_up_on_silence(
    proxy: Proxy, patch: pytest.MonkeyPatch, *modules: ModuleType
) -> SkippingClock:
    """Have no waiting in these modules, and no waiting for what the proxy holds back."""
    clock = SkippingClock()
    heard: Any = vars(http_pool)["_heard"]

    def watched(connection: socket.socket, deadline: float) -> Any:
        return heard(_Watched(connection, proxy, clock), deadline)

    patch.setattr(http_pool, "_heard", watched)
    for module in modules:
        patch.setattr(module, "time", clock)
    return clock
