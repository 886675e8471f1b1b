"""One place for an executor process: starts it, hears it, ends it, starts the next."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Final

from perago.process import child
from perago.process.channel import OwnersEnd
from perago.process.lines import LineReader
from perago.process.lock import executor_lock
from perago.process.reports import Make

REAP_SECONDS: Final = 10.0
"""A killed process is gone in milliseconds; longer means the kernel holds it."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the executors of one pool are made."""

    make: Make
    capture_output: bool = False
    lock_directory: Path | None = None


@dataclass(slots=True, eq=False)
class ExecutorProcess:
    """A live executor: the process, the channel to it, and what it works on."""

    executor_id: str
    number: int
    process: SpawnProcess
    channel: OwnersEnd
    born: float
    streams: tuple[LineReader, ...] = ()
    ready: bool = False
    execution_id: str = ""
    heard: float = 0.0
    attempts: int = 0

    @property
    def idle(self) -> bool:
        """Return whether it waits for a claim."""
        return self.ready and not self.execution_id

    def kill(self) -> None:
        """Kill it with everything it started.

        Nothing here asks for the exit code: that would reap a dead leader and free the number by
        which the rest of its group is found.
        """
        pid = self.process.pid
        if pid is None:
            return
        with suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
        with suppress(OSError):  # it may not lead its group yet
            os.kill(pid, signal.SIGKILL)

    def reap(self, lock_directory: Path | None) -> int | None:
        """Wait for a killed process, close what belongs to it, return its exit code."""
        self.process.join(REAP_SECONDS)
        code = self.process.exitcode
        if code is not None:
            self.process.close()
        self.channel.close()
        if lock_directory is not None:
            executor_lock(lock_directory, self.executor_id).path.unlink(missing_ok=True)
        return code


@dataclass(slots=True, eq=False)
class Slot:
    """A place in the pool, with the history that decides when it is filled again."""

    number: int
    executor: ExecutorProcess | None = None
    deaths: int = 0
    start_at: float = 0.0


def spawn(recipe: Recipe, number: int, now: float) -> ExecutorProcess:
    """Start a fresh interpreter: nothing of this process leaks into an executor."""
    context = get_context("spawn")
    executor_id = uuid.uuid4().hex[:12]
    ours, theirs = context.Pipe()
    readers: list[LineReader] = []
    pipes: list[child.Channel | None] = [None, None]
    if recipe.capture_output:
        for index, name in enumerate(("stdout", "stderr")):
            read_end, pipes[index] = context.Pipe(duplex=False)
            readers.append(LineReader(name, read_end))
    start = child.Start(
        executor_id=executor_id,
        number=number,
        make=recipe.make,
        channel=theirs,
        stdout=pipes[0],
        stderr=pipes[1],
        lock_directory=recipe.lock_directory,
    )
    process = context.Process(target=child.main, args=(start,), name=f"perago-{executor_id}")
    with _sigint_blocked():
        process.start()
    theirs.close()
    for pipe in pipes:
        if pipe is not None:
            pipe.close()
    return ExecutorProcess(
        executor_id, number, process, OwnersEnd(ours), born=now, heard=now, streams=tuple(readers)
    )


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """A Ctrl-C must not hit an executor before it has learned to leave it to us."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
