"""The token of an attempt that is no longer wanted: a body may ask it, a hook may wait for it.

A body that never asks is not asked either: the next phase does, and after a grace the process goes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

Hook = Callable[[], None]


class CancellationToken:
    """Cancelled once, from any thread; hooks are called by whoever cancels."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._hooks: list[Hook] = []

    @property
    def cancelled(self) -> bool:
        """Return whether the attempt was lost."""
        return self._event.is_set()

    def cancel(self) -> None:
        """Say that the attempt was lost; a hook that fails does not keep the others."""
        with self._lock:
            self._event.set()
            hooks, self._hooks = self._hooks, []
        for hook in hooks:
            _call(hook)

    def on_cancel(self, hook: Hook) -> None:
        """Have a hook called when the attempt is lost; at once if it is lost already."""
        with self._lock:
            if not self._event.is_set():
                self._hooks.append(hook)
                return
        _call(hook)


_here: ContextVar[CancellationToken | None] = ContextVar("perago_token", default=None)
_everywhere: list[CancellationToken] = []
"""The token of this process, where one process runs one attempt: an author's threads see it too."""


def cancelled() -> bool:
    """Return whether this attempt was lost: a long body asks now and then, and gives up.

    False outside an attempt. With threads as executors, a thread of the author's own sees its
    attempt only in a copy of the context.
    """
    token = current()
    return token is not None and token.cancelled


def on_cancel(hook: Hook) -> None:
    """Have a hook called when this attempt is lost; outside an attempt it never is."""
    token = current()
    if token is not None:
        token.on_cancel(hook)


def current() -> CancellationToken | None:
    """Return the token of the attempt that runs here."""
    return _here.get() or (_everywhere[-1] if _everywhere else None)


@contextmanager
def holding(token: CancellationToken, *, whole_process: bool) -> Iterator[None]:
    """Make a token the current one while an attempt runs."""
    if whole_process:
        _everywhere.append(token)
    before = _here.set(token)
    try:
        yield
    finally:
        _here.reset(before)
        if whole_process:
            _everywhere.remove(token)


def _call(hook: Hook) -> None:
    with suppress(Exception):  # It is the author's, and must not keep us from ending the attempt.
        hook()
