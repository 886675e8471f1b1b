"""Starts launchers, each of which runs one program: ``python -I -S launcher.py``.

A process of its own beside an executor. For each message on its standard input, a socket, it
forks a launcher, which is given the descriptors that came with the message: forking is quicker
than starting an interpreter. It imports nothing of Perago, so that it is small.

A launcher stands between an executor and a program. It adopts what the program leaves behind,
double forks included, and ends it; it sees on its standard input that the executor is gone, and
ends everything then. It reads one line with the request, later one for each wish to cancel, and
writes its status: a line when the program has started, and one when nothing of it is left.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from typing import Any, NoReturn

_ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER
_SIGNAL_AT_PARENTS_END = 1  # PR_SET_PDEATHSIG
_LONGEST_REQUEST = 64_000_000
_FIRST, _FAR = 3, 50
_MOST_HANDED = 8
_STUCK_SECONDS = 10.0
"""A process that SIGKILL does not end in so long will not end: another user's, or in the kernel."""
_LINUX = sys.platform == "linux"


def main() -> None:
    """Fork a launcher for each message until the other side is gone."""
    if _LINUX:
        _prctl(_ADOPT_ORPHANS, 1)  # Of launchers that were killed.
    launchers: set[int] = set()
    awake = _wake_at_childs_end()
    with socket.socket(fileno=0) as line:
        while True:
            ready, _, _ = select.select([0, awake], [], [])
            if awake in ready:
                _drained(awake)
                ended = _reaped()
                orderly = all(pid in launchers and not status for pid, status in ended.items())
                launchers -= ended.keys()
                if not orderly:
                    _end_strays(launchers)
            if 0 not in ready:
                continue
            message, handed, _, _ = socket.recv_fds(line, 1, _MOST_HANDED)
            if not message:
                return
            pid = os.fork()
            if not pid:
                try:
                    launch(handed)
                finally:
                    os._exit(0)
            launchers.add(pid)
            for descriptor in handed:
                os.close(descriptor)


def _end_strays(launchers: set[int]) -> None:
    """End what a launcher left that was killed before its program; what cannot be ended stays."""
    deadline = time.monotonic() + _STUCK_SECONDS
    while (strays := descendants(besides=launchers)) and time.monotonic() < deadline:
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in strays:
                with suppress(OSError):
                    os.kill(pid, number)
        launchers -= _reaped().keys()
        time.sleep(0.01)


def _reaped() -> dict[int, int]:
    """Take note of the children that have ended, and how."""
    found: dict[int, int] = {}
    with suppress(ChildProcessError):
        while ended := os.waitpid(-1, os.WNOHANG):
            if not ended[0]:
                break
            found[ended[0]] = ended[1]
    return found


def _wake_at_childs_end() -> int:
    """Return a descriptor that can be read when a child has ended."""
    awake, alarm = map(_aside, os.pipe())
    for end in (awake, alarm):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
    return awake


def _drained(awake: int) -> None:
    with suppress(BlockingIOError):
        os.read(awake, 4096)


def launch(handed: list[int]) -> None:
    """Be a launcher: of what was handed over, all but the status is standard or the program's."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    far = [_aside(descriptor) for descriptor in handed]
    for number, descriptor in enumerate(far[:3]):
        os.dup2(descriptor, number)
        os.close(descriptor)
    if _LINUX:
        _prctl(_ADOPT_ORPHANS, 1)
    line, rest = _read_line()
    if line:
        ProgramLaunch(far[3], far[4:], json.loads(line), cancelled=bool(rest)).run()


class ProgramLaunch:
    """One program from its start to the end of the last process it left."""

    def __init__(
        self, status: int, handed: list[int], request: dict[str, Any], *, cancelled: bool
    ) -> None:
        self._status = status
        self._handed = handed
        self._cancelled = cancelled
        self._own = os.getpid()
        self._command: list[str] = request["command"]
        self._environment: dict[str, str] = request["environment"]
        self._directory: str = request["directory"]
        self._grace: float = request["grace"]
        self._awake = _wake_at_childs_end()
        self._code: int | None = None
        self._pid = 0

    def run(self) -> None:
        """Start it, wait for its end or for ours, end what is left."""
        problem = self._start()
        for descriptor in self._handed:
            os.close(descriptor)
        if problem:
            self._say({"problem": problem})
            return
        self._say({"pid": self._pid, "launcher": self._own})
        self._wait()
        left, stuck = self._end_all()
        self._say({"code": self._code, "left": left, "stuck": stuck})

    def _start(self) -> str:
        """Start the program; return why it cannot be."""
        heard, failed = map(_aside, os.pipe())
        self._pid = os.fork()
        if not self._pid:
            os.close(heard)
            self._become(failed)
        os.close(failed)
        with os.fdopen(heard, "rb") as end:
            problem = end.read().decode(errors="replace")
        if problem:
            os.waitpid(self._pid, 0)
        return problem

    def _become(self, failed: int) -> NoReturn:
        """Turn this copy of the process into the program."""
        try:
            os.setpgid(0, 0)
            if _LINUX:
                _prctl(_SIGNAL_AT_PARENTS_END, signal.SIGKILL)
                if os.getppid() != self._own:  # It ended before it could be said.
                    os._exit(127)
            signal.set_wakeup_fd(-1)
            for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
                with suppress(OSError, ValueError):  # What the worker ignores, a program need not.
                    signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            os.chdir(self._directory)
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, 0)
            _hand_on(self._handed)
            os.execvpe(self._command[0], self._command, self._environment)  # noqa: S606 - no shell
        except OSError as error:
            os.write(failed, (error.strerror or str(error)).encode())
        except BaseException as error:  # noqa: BLE001 - nothing of it may run on as a launcher
            os.write(failed, repr(error).encode())
        os._exit(127)

    # --- waiting -----------------------------------------------------------------------------

    def _wait(self) -> None:
        """Wait until the program has ended, its grace is over, or the executor is gone."""
        deadline: float | None = None
        while self._reap() and self._code is None:
            if self._cancelled and deadline is None:
                deadline = time.monotonic() + self._grace
                with suppress(OSError):
                    os.killpg(self._pid, signal.SIGTERM)
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return
            ready, _, _ = select.select([0, self._awake], [], [], left)
            if self._awake in ready:
                _drained(self._awake)
            if 0 in ready:
                if not os.read(0, 4096):
                    return
                self._cancelled = True

    def _reap(self) -> bool:
        """Take note of what has ended; False when there is no child any more."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if not pid:
                return True
            if pid == self._pid:
                self._code = os.waitstatus_to_exitcode(status)

    # --- ending ------------------------------------------------------------------------------

    def _end_all(self) -> tuple[int, list[int]]:
        """End every descendant; return how many there were, and those that cannot be ended."""
        if not self._reap():
            return 0, []
        if not _LINUX:
            with suppress(OSError):
                os.killpg(self._pid, signal.SIGKILL)
        seen: set[int] = set()
        deadline = time.monotonic() + _STUCK_SECONDS
        while self._reap():
            alive = descendants()
            # Stopped first: what is stopped starts no other process meanwhile.
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for pid in alive:
                    with suppress(OSError):
                        os.kill(pid, number)
            seen |= alive
            if time.monotonic() > deadline:
                return len(seen - {self._pid}), sorted(alive)
            select.select([self._awake], [], [], 0.02)
            _drained(self._awake)
        return len(seen - {self._pid}), []

    def _say(self, words: dict[str, object]) -> None:
        with suppress(OSError):
            os.write(self._status, json.dumps(words).encode() + b"\n")


def _hand_on(handed: list[int]) -> None:
    """Give the program these descriptors as 3, 4, 5: a shell can write to one digit only."""
    for number, descriptor in enumerate([_aside(each) for each in handed], _FIRST):
        os.dup2(descriptor, number)


def _aside(descriptor: int) -> int:
    """Move a descriptor out of the way of those that a program is given."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FAR)
    os.close(descriptor)
    return moved


def descendants(besides: Collection[int] = ()) -> set[int]:
    """Find the processes below this one, without some and what is below them.

    There are none where the system does not tell.
    """
    children: dict[int, list[int]] = {}
    with suppress(OSError):
        for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib is slow to import
            if name.isdigit() and (parent := _parent_of(name)):
                children.setdefault(parent, []).append(int(name))
    found: set[int] = set()
    pending = [os.getpid()]
    while pending:
        children_here = children.get(pending.pop(), ())
        below = [pid for pid in children_here if pid not in found and pid not in besides]
        found.update(below)
        pending += below
    return found


def _parent_of(pid: str) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:  # noqa: PTH123 - as above
            # The name of a process may hold anything, brackets too.
            state, parent = stat.read().rpartition(b")")[2].split()[:2]
            return 0 if state == b"Z" else int(parent)
    except (OSError, IndexError, ValueError):
        return 0


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _read_line() -> tuple[bytes, bytes]:
    """Read the first line, and what came with it; empty when the other side is gone before."""
    parts: list[bytes] = []
    size = 0
    while size < _LONGEST_REQUEST:
        part = os.read(0, 65_536)
        if not part:
            break
        parts.append(part)
        size += len(part)
        if b"\n" in part:
            line, _, rest = b"".join(parts).partition(b"\n")
            return line, rest
    return b"", b""


if __name__ == "__main__":
    main()
