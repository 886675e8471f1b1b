"""A body that forks: the copy must never come back into the runtime and publish a second time.

Only copies of this interpreter matter. A program the body starts is the author's own affair: it
is in the executor's process group and ends with the executor.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from perago.errors import TaskFailed
from perago.process.memory import children_of

CAME_BACK: Final = 71
"""Exit code of a copy that returned from the body."""
_REMEDY: Final = "end every forked process in the body, with os._exit, and wait for it"


class ForkWatch:
    """Counts this process's forks; one for the life of an executor process."""

    def __init__(self) -> None:
        self._forks = 0
        os.register_at_fork(after_in_parent=self._count)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Run a body; a copy that leaves it ends here, and one left behind is a failure."""
        own, before = os.getpid(), self._forks
        try:
            yield
        finally:
            if os.getpid() != own:
                os._exit(CAME_BACK)
        if self._forks != before:
            self._refuse_copies(own)

    def _count(self) -> None:
        self._forks += 1

    def _refuse_copies(self, own: int) -> None:
        ours = _command(own)
        left = [pid for pid in children_of(own) if ours and _command(pid) == ours]
        for pid in left:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        if left:
            raise TaskFailed(
                f"the body left a copy of its process running (pid {left[0]})", remedy=_REMEDY
            )
        if [pid for pid in children_of(own) if _came_back(pid)]:
            raise TaskFailed("a forked copy of the process returned from the body", remedy=_REMEDY)


def _command(pid: int) -> bytes:
    """Read the words a process was started with; empty for one that has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _came_back(pid: int) -> bool:
    """Return whether a child has ended as a copy that came back, and reap that one."""
    if _command(pid):
        return False
    # A process without words is on its way out: its end is waited for, and is near.
    with suppress(OSError):
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        if ended and (ended.si_code, ended.si_status) == (os.CLD_EXITED, CAME_BACK):
            os.waitpid(pid, 0)
            return True
    return False
