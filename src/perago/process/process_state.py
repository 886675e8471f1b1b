"""What belongs to an executor process and not to a body: a body that changes it gives it back.

Limits, descriptors 0 to 2, the umask, blocked signals, timers, the recursion limit, Python's own
streams and functions of its library are the whole process's. Changed by one body and left so, they
would fail the rest of its own attempt and then every attempt after it, of other tasks too.
"""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from perago.process import functions

_STREAMS: Final = ("stdin", "stdout", "stderr")
_ABOVE: Final = 100
"""Copies of 0 to 2 get numbers from here on: far from those a body is given."""
_MOST_RAISED: Final = 1_000
_LIMITS: Final = tuple(
    sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})
)


@dataclass(slots=True)
class ProcessState:
    """One for the life of an executor process."""

    spoiled: str = ""
    """What could not be given back; an executor with a word here takes no other claim."""
    end_if_cut_off: Callable[[], None] = lambda: None
    """Ends the process when the body has closed or replaced its line to the owner."""
    _copies: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for descriptor in range(3):
            with suppress(OSError):
                self._copies[descriptor] = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _ABOVE)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Run a body; whatever it leaves, the process is as before when this ends."""
        if threading.current_thread() is not threading.main_thread():
            yield  # Signals and timers are the main thread's; the process is not ours alone.
            return
        limits = {which: _limit(which) for which in _LIMITS}
        mask = os.umask(0o077)
        os.umask(mask)
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        handlers = {number: signal.getsignal(number) for number in _handled()}
        depth = sys.getrecursionlimit()
        users = os.getresuid(), os.getresgid()
        put_back = functions.kept()
        streams = {name: getattr(sys, name) for name in _STREAMS}

        def give_back() -> None:
            with suppress(RecursionError):
                sys.setrecursionlimit(depth)  # First: what follows calls functions.
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            signal.setitimer(signal.ITIMER_REAL, 0)
            put_back()
            # Whoever took the line took the databases too: what is written to them now goes into
            # another file or nowhere, while the index that all processes share says it is there.
            self.end_if_cut_off()
            if (os.getresuid(), os.getresgid()) != users:
                self.spoiled = "the body changed the user of the process"
            self._raise_limits(limits)
            os.umask(mask)
            _set_handlers(handlers)
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            self._reopen()
            for name, stream in streams.items():
                setattr(sys, name, stream)

        try:
            yield
        finally:
            _until_done(give_back)

    def _raise_limits(self, limits: dict[int, tuple[int, int]]) -> None:
        for which, before in limits.items():
            if _limit(which) != before:
                try:
                    resource.setrlimit(which, before)
                except (OSError, ValueError):
                    self.spoiled = "the body lowered a limit that cannot be raised again"

    def _reopen(self) -> None:
        """Put 0 to 2 back: the next file to be opened would get the number of a closed one."""
        for descriptor, copy in self._copies.items():
            try:
                kept = os.fstat(copy)
            except OSError:
                self.spoiled = "the body closed what the executor had open"
                continue
            try:
                same = os.path.samestat(os.fstat(descriptor), kept)
            except OSError:
                same = False
            if not same:
                os.dup2(copy, descriptor)


def _until_done(work: Callable[[], None]) -> None:
    """Do it, again when a handler of the body raises in the midst of it: a timer may call one."""
    for _ in range(_MOST_RAISED):
        try:
            return work()
        except BaseException:  # noqa: BLE001, S112 - whatever such a handler raises
            continue
    return work()


def _limit(which: int) -> tuple[int, int]:
    try:
        return resource.getrlimit(which)
    except (OSError, ValueError):
        return (-1, -1)


def _handled() -> Iterator[signal.Signals]:
    return (one for one in signal.Signals if one not in {signal.SIGKILL, signal.SIGSTOP})


def _set_handlers(before: dict[signal.Signals, Any]) -> None:
    for number, handler in before.items():
        if handler is not None and signal.getsignal(number) is not handler:
            with suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_IGN)  # What is still to come was for the body's.
                signal.signal(number, handler)


OWN: Final[dict[int, ProcessState]] = {}
"""Those of this process, once it is an executor; a fork has none."""


def own() -> ProcessState:
    """Return the state of this process."""
    return OWN.setdefault(os.getpid(), ProcessState())
