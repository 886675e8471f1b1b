"""Running a long command of another program: output to a log, its last line to whoever waits."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from perago.dev.errors import BuildFailedError
from perago.dev.progress import ProgressStep

_POLL_SECONDS = 0.25
_LIMIT_SECONDS = 3600.0
Measure = Callable[[], int]


@dataclass(frozen=True, slots=True)
class CommandLine:
    """What is run, and where."""

    words: Sequence[str]
    directory: Path
    environment: Mapping[str, str]

    def run(self, log: Path, step: ProgressStep, measure: Measure | None = None) -> None:
        """Run it to its end; what it prints is appended to the log.

        Progress is ``measure()``, or without one the number of lines printed so far.
        """
        with log.open("ab") as output, log.open("rb") as reader:
            reader.seek(0, os.SEEK_END)
            process = self._start(output)
            try:
                code = _watch(process, _Tail(reader), step, measure)
            finally:
                _end(process)
        if code:
            raise BuildFailedError(
                f"{Path(self.words[0]).name} {self.words[1]} failed with exit code {code}: "
                f"{last_line(log)}",
                remedy=f"read {log}, correct it and run the command again",
            )

    def _start(self, output: BinaryIO) -> subprocess.Popen[bytes]:
        # In a session of its own, so that all it starts can be ended together.
        return subprocess.Popen(  # noqa: S603 - the words are ours
            list(self.words),
            cwd=self.directory,
            env=dict(self.environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


class _Tail:
    """Counts the lines of a growing file and remembers the last one."""

    def __init__(self, reader: BinaryIO) -> None:
        self._reader = reader
        self.lines = 0
        self.last = ""

    def read(self) -> None:
        new = self._reader.read()
        self.lines += new.count(b"\n")
        words = new.decode(errors="replace").strip().splitlines()
        self.last = words[-1].strip() if words else self.last


def _watch(
    process: subprocess.Popen[bytes], tail: _Tail, step: ProgressStep, measure: Measure | None
) -> int:
    for _ in range(int(_LIMIT_SECONDS / _POLL_SECONDS)):
        with suppress(subprocess.TimeoutExpired):
            return process.wait(_POLL_SECONDS)
        tail.read()
        step.show(tail.last, measure() if measure else tail.lines)
    raise BuildFailedError(
        f"a build was still not done after {_LIMIT_SECONDS / 60:.0f} minutes",
        remedy="run the command again: it continues where it stopped",
    )


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def last_line(log: Path) -> str:
    """Read the last thing a log says; empty when it says nothing."""
    with suppress(OSError), log.open("rb") as reader:
        reader.seek(max(0, log.stat().st_size - 4096))
        lines = reader.read().decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""
    return ""
