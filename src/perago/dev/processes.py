"""Servers as processes that outlive the command that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from perago.workspace.owner import is_alive, token_of

_STEP_SECONDS = 0.05
# The shell forks once and goes: the server belongs to init, not to whoever ran ``perago dev up``,
# and it need not be reaped here.
_DETACH = '"$@" </dev/null >>"$PERAGO_DEV_LOG" 2>&1 & echo $!'


@dataclass(frozen=True, slots=True)
class Process:
    """One process, told from a later one with the same number by its token."""

    pid: int
    token: str

    @property
    def alive(self) -> bool:
        return is_alive(self.pid, self.token)

    def stop(self, grace_seconds: float) -> bool:
        """End it; True when it went by itself on SIGTERM."""
        if not self.send(signal.SIGTERM) or self.wait(grace_seconds):
            return True
        self.kill()
        return False

    def kill(self) -> None:
        """End it without asking, and wait until it is gone."""
        self.send(signal.SIGKILL)
        self.wait(10.0)

    def send(self, number: signal.Signals) -> bool:
        """Signal it; False when it is gone."""
        if not self.alive:
            return False
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)
        return True

    def wait(self, seconds: float) -> bool:
        """Wait until it is gone; False when it still is there."""
        deadline = time.monotonic() + seconds
        while self.alive:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_STEP_SECONDS)
        return True

    def memory(self) -> int:
        """Count the bytes it holds in memory; 0 where that cannot be told."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
            lines = (line for line in status.splitlines() if line.startswith("VmRSS:"))
            return int(next(lines).split()[1]) * 1024
        except (OSError, StopIteration, ValueError):
            return _memory_by_ps(self.pid)


def detach(
    words: Sequence[str], directory: Path, environment: Mapping[str, str], log: Path
) -> Process:
    """Start a process in a session of its own; what it prints is appended to the log."""
    done = subprocess.run(  # noqa: S603 - the words are ours
        ["/bin/sh", "-c", _DETACH, "sh", *words],
        cwd=directory,
        env={**environment, "PERAGO_DEV_LOG": str(log)},
        stdout=subprocess.PIPE,
        start_new_session=True,
        check=True,
        timeout=30,
    )
    pid = int(done.stdout)
    return Process(pid, token_of(pid))


def _memory_by_ps(pid: int) -> int:
    with suppress(OSError, ValueError, subprocess.TimeoutExpired):
        words = ["ps", "-o", "rss=", "-p", str(pid)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=10, check=False)  # noqa: S603
        return int(done.stdout) * 1024
    return 0
