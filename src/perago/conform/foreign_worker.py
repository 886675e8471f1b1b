"""The worker under examination as a process: started, killed with everything in it, started again.

It is started without a shell, in a process group of its own. What it prints is not evidence; it
is kept in a file, whose end is shown when the worker ends although no one asked it to.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from perago.errors import RuntimeConfigError, UsageError

_GRACE_SECONDS: Final = 10.0
_LAST_BYTES: Final = 4000


class ForeignWorker:
    """One command, running or not."""

    def __init__(self, command: str) -> None:
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise UsageError(
                f"--command cannot be split into words: {error}", remedy="close its quotes"
            ) from None
        if not self._words:
            raise UsageError("--command is empty", remedy="name the program to start")
        if shutil.which(self._words[0]) is None:
            raise UsageError(
                f"--command cannot be started: there is no program {self._words[0]!r}",
                remedy="check the program's name",
            )
        self.output = Path()
        """What it prints, both streams, once it was started; deleted with :meth:`forget`."""
        self._output: IO[bytes]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the user's own command
                self._words,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(
                f"--command cannot be started: {error.strerror}", remedy="check the program's name"
            ) from None

    def forget(self) -> None:
        """Delete what it printed."""
        self.output.unlink(missing_ok=True)

    def kill(self) -> None:
        """End it at once, and everything it started that is still in its group."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            self._process.wait(_GRACE_SECONDS)
            self._process = None

    def check(self) -> None:
        """Refuse to go on with a worker that ended by itself."""
        if self._process is None or (code := self._process.poll()) is None:
            return
        size = self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, size - _LAST_BYTES))
        lines = self._output.read().decode(errors="replace").strip().splitlines()
        said = f", its last line is {lines[-1]!a}" if lines else ""
        self._process = None
        raise RuntimeConfigError(
            f"the worker ended by itself with exit code {code}{said}",
            remedy=f"see what it printed in {self.output}, or run its command alone",
        )

    def __enter__(self) -> Self:
        output, name = tempfile.mkstemp(prefix="perago-conform-", suffix=".log")
        self.output, self._output = Path(name), os.fdopen(output, "w+b")
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._signal(signal.SIGTERM)
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE_SECONDS)
            self.kill()
        self._output.close()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
