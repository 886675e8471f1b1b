"""The executor's side of a launcher: start it, hear what its program says, cancel it (Q7)."""

from __future__ import annotations

import codecs
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Self

from perago.errors import RuntimeConfigError, TaskFailed

GRACE_SECONDS: Final = 5.0
"""Between the request to end and the end by force."""
_END_SECONDS: Final = 20.0
"""A launcher gives up on what it cannot end before this."""
_SCRIPT: Final = Path(__file__).with_name("launcher.py")
_FIRST: Final = 3
_CHUNK: Final = 65_536
_LAST_WORDS: Final = 4_096
_HANDED_ON: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""What the interpreter itself may need to start."""

Hear = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class LaunchEnd:
    """How a program ended, and what it left."""

    code: int
    left: int = 0

    @property
    def how(self) -> str:
        """Say it in words."""
        if self.code >= 0:
            return f"ended with exit code {self.code}"
        with suppress(ValueError):
            return f"was ended by {signal.Signals(-self.code).name}"
        return f"was ended by signal {-self.code}"


class ProgramLauncher:
    """A launcher that waits for its program, or runs it. Close it: nothing outlives that."""

    def __init__(self, channels: Sequence[str] = ("events",)) -> None:
        """Start it; ``channels`` are pipes from the program, those that end in ``<`` to it."""
        self.numbers = {channel: number for number, channel in enumerate(channels, _FIRST)}
        """The descriptors that the program is given, by the names of the channels."""
        self.ends: dict[str, int] = {}
        """Our ends of them."""
        self._handed: list[int] = []
        for channel in channels:
            reads, writes = os.pipe()
            ours, theirs = (writes, reads) if channel.endswith("<") else (reads, writes)
            self.ends[channel] = ours
            self._handed.append(theirs)
        self._status, status = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own script
                [sys.executable, "-I", "-S", str(_SCRIPT), str(status)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[status, *self._handed],
                start_new_session=True,
                cwd="/",
                env={name: os.environ[name] for name in _HANDED_ON if name in os.environ},
                bufsize=0,
            )
        finally:
            for descriptor in (status, *self._handed):
                os.close(descriptor)
        self._words = b""
        self._output = [
            Forwarded(_pipe(self._process.stdout), "stdout"),
            Forwarded(_pipe(self._process.stderr), "stderr"),
        ]
        for end in (*(pipe.descriptor for pipe in self._output), self._status):
            os.set_blocking(end, False)
        self.pid: int | None = None
        """That of the program, once it runs."""
        self.end: LaunchEnd | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Return whether it still waits or runs."""
        return self._process.poll() is None

    @property
    def process_id(self) -> int:
        """Return its own process id."""
        return self._process.pid

    @property
    def last_words(self) -> str:
        """Return the last line that the program wrote to its standard error."""
        lines = self._output[1].kept.decode(errors="replace").splitlines()
        return next((line for line in reversed(lines) if line.strip()), "")

    def start(self, command: Sequence[str], environment: Mapping[str, str], directory: str) -> None:
        """Have the program started."""
        request = {
            "command": list(command),
            "environment": dict(environment),
            "directory": directory,
            "handed": self._handed,
            "grace": GRACE_SECONDS,
        }
        self._tell(json.dumps(request).encode() + b"\n")

    def cancel(self) -> None:
        """Have the program asked to end, and ended after a grace; from any thread."""
        with suppress(OSError, ValueError):
            self._tell(b"cancel\n")

    def _tell(self, words: bytes) -> None:
        left = memoryview(words)
        descriptor = _pipe(self._process.stdin)
        while left:
            left = left[os.write(descriptor, left) :]

    # --- hearing -----------------------------------------------------------------------------

    def listen(
        self,
        heard: Mapping[int, Hear],
        until: Callable[[], bool] = lambda: False,
        wait_seconds: Callable[[], float | None] = lambda: None,
    ) -> None:
        """Pass on what comes until the program has ended, or until ``until`` says so.

        ``heard`` maps descriptors to what takes their bytes.
        """
        with selectors.DefaultSelector() as selector:
            for pipe in self._output:
                selector.register(pipe.descriptor, selectors.EVENT_READ, pipe.take)
            for descriptor, take in heard.items():
                os.set_blocking(descriptor, False)
                selector.register(descriptor, selectors.EVENT_READ, take)
            selector.register(self._status, selectors.EVENT_READ, self._note)
            while self.end is None and not until():
                for key, _ in selector.select(wait_seconds()):
                    chunk = _read(key.fd)
                    if chunk:
                        key.data(chunk)
                    elif chunk == b"":
                        selector.unregister(key.fd)
                        if key.fd == self._status:
                            self._lost()
        self._drain(heard.items())

    def _drain(self, heard: Iterable[tuple[int, Hear]]) -> None:
        """Take what is left in the pipes, and wait for no more."""
        output: list[tuple[int, Hear]] = [(each.descriptor, each.take) for each in self._output]
        for descriptor, take in (*output, *heard):
            while chunk := _read(descriptor):
                take(chunk)
        for pipe in self._output:
            pipe.flush()

    def _note(self, chunk: bytes) -> None:
        """Read what the launcher says of its program."""
        *lines, self._words = (self._words + chunk).split(b"\n")
        for line in lines:
            said: dict[str, Any] = json.loads(line)
            if problem := said.get("problem"):
                self.end = LaunchEnd(127)
                raise RuntimeConfigError(
                    f"the program cannot be started: {problem}",
                    remedy="install it on this worker, or correct the command in the manifest",
                )
            if "pid" in said:
                self.pid = said["pid"]
            if "left" in said:
                if stuck := said["stuck"]:
                    raise TaskFailed(
                        f"processes that the program started cannot be ended: {stuck}",
                        remedy="end them by hand; a task must not start processes of another user",
                    )
                code = said["code"]
                self.end = LaunchEnd(-signal.SIGKILL if code is None else code, said["left"])

    def _lost(self) -> None:
        if self.end is None:
            self.end = LaunchEnd(-signal.SIGKILL)
            raise TaskFailed("the launcher of the program was ended before the program")

    def close(self) -> None:
        """End everything that still runs, and wait for it."""
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for descriptor in (self._status, *self.ends.values()):
            with suppress(OSError):
                os.close(descriptor)
        self.ends.clear()


class Forwarded:
    """One stream of a program, passed on to the same stream of this process as it comes."""

    def __init__(self, descriptor: int, stream: str) -> None:
        self.descriptor = descriptor
        self.kept = b""
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._open_line = False

    def take(self, chunk: bytes) -> None:
        """Pass a piece on; its end is kept."""
        self.kept = (self.kept + chunk)[-_LAST_WORDS:]
        self._write(self._decoder.decode(chunk))
        self._open_line = not chunk.endswith(b"\n")

    def flush(self) -> None:
        """End the last line, so that nobody else's words stand on it."""
        if self._open_line:
            self._open_line = False
            self._write(self._decoder.decode(b"", final=True) + "\n")
        with suppress(OSError, ValueError):
            getattr(sys, self._stream).flush()

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            getattr(sys, self._stream).write(text)


def _pipe(stream: IO[bytes] | None) -> int:
    if stream is None:
        raise TypeError("every stream of a launcher is a pipe")
    return stream.fileno()


def _read(descriptor: int) -> bytes | None:
    """Read what is there; None when nothing is, empty at the end."""
    try:
        return os.read(descriptor, _CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""
