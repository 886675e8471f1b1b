"""The executor's side of a launcher: start it, hear what its program says, cancel it (Q7)."""

from __future__ import annotations

import codecs
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from perago.errors import PeragoError, RuntimeConfigError, TaskFailed

GRACE_SECONDS: Final = 5.0
"""Between the request to end and the end by force."""
_END_SECONDS: Final = 20.0
"""A launcher gives up on what it cannot end before this."""
_SCRIPT: Final = Path(__file__).with_name("launcher.py")
_FIRST: Final = 3
_CHUNK: Final = 65_536
_LOOK_SECONDS: Final = 0.2
_LAST_WORDS: Final = 4_096
_HANDED_ON: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""What the interpreter itself may need to start."""

Hear = Callable[[bytes], None]


def _never() -> bool:
    return False


class Outgoing:
    """What is still to be sent to a program; never waits for it to read."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._left = b""
        self._watched = False
        os.set_blocking(descriptor, False)

    def add(self, words: Mapping[str, object]) -> None:
        """Put one line behind what is there."""
        self._left += json.dumps(words).encode() + b"\n"

    def watch(self, selector: selectors.BaseSelector) -> None:
        """Have the selector say when it can be sent, as long as there is something."""
        if bool(self._left) != self._watched:
            self._watched = bool(self._left)
            if self._watched:
                selector.register(self.descriptor, selectors.EVENT_WRITE)
            else:
                selector.unregister(self.descriptor)

    def flush(self) -> None:
        """Send as much as the program takes now; one that is gone takes nothing."""
        try:
            self._left = self._left[os.write(self.descriptor, self._left) :]
        except BlockingIOError:
            return
        except OSError:
            self._left = b""


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


class Launchers:
    """The process that forks the launchers of one executor; it is started with the first."""

    def __init__(self) -> None:
        self._line: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def open(self, channels: Sequence[str]) -> ProgramLauncher:
        """Have a launcher started, with a pipe from the program for each channel.

        One whose name ends in ``<`` leads to the program.
        """
        theirs: list[int] = []

        def pipe(*, to_it: bool = False) -> int:
            reads, writes = os.pipe()
            theirs.append(reads if to_it else writes)
            return writes if to_it else reads

        control, out, err, status = pipe(to_it=True), pipe(), pipe(), pipe()
        ends = {channel: pipe(to_it=channel.endswith("<")) for channel in channels}
        made = ProgramLauncher(control, out, err, status, ends)
        try:
            self._hand_over(theirs)
        except OSError:  # It was killed: by a person, or for want of memory.
            self.close()
            self._hand_over(theirs)
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        return made

    def _hand_over(self, descriptors: Sequence[int]) -> None:
        if self._line is None:
            self._line, other = socket.socketpair()
            with other:
                self._process = subprocess.Popen(  # noqa: S603 - our own script
                    [sys.executable, "-I", "-S", str(_SCRIPT)],
                    stdin=other.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    cwd="/",
                    env={name: os.environ[name] for name in _HANDED_ON if name in os.environ},
                )
        socket.send_fds(self._line, [b"."], descriptors)

    def close(self) -> None:
        """End it; launchers that run end by themselves."""
        if self._line is not None:
            self._line.close()
        if self._process is not None:
            self._process.wait()
        self._line = self._process = None


class ProgramLauncher:
    """A launcher that waits for its program, or runs it. Close it: nothing outlives that."""

    def __init__(self, control: int, out: int, err: int, status: int, ends: dict[str, int]) -> None:
        self.numbers = {channel: number for number, channel in enumerate(ends, _FIRST)}
        """The descriptors that the program is given, by the names of the channels."""
        self.ends = ends
        """Our ends of them."""
        self.pid: int | None = None
        """That of the program, once it runs."""
        self.process_id: int | None = None
        """That of the launcher itself, once the program runs."""
        self.end: LaunchEnd | None = None
        self._closed = False
        self._closing = threading.Lock()
        self._control = control
        self._status = status
        self._words = b""
        self._output = [Forwarded(out, "stdout"), Forwarded(err, "stderr")]
        for end in (out, err, status):
            os.set_blocking(end, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """Return whether the program still runs, or is about to."""
        try:
            while chunk := _read(self._status):
                self._note(chunk)
        except PeragoError:
            return False
        return chunk is None and self.end is None

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
            "grace": GRACE_SECONDS,
        }
        self._tell(json.dumps(request).encode() + b"\n")

    def cancel(self) -> None:
        """Have the program asked to end, and ended after a grace; from any thread."""
        with self._closing:  # Once it is closed, its descriptor is somebody else's.
            if not self._closed:
                with suppress(OSError):
                    self._tell(b"cancel\n")

    def _tell(self, words: bytes) -> None:
        left = memoryview(words)
        while left:
            left = left[os.write(self._control, left) :]

    # --- hearing -----------------------------------------------------------------------------

    def listen(
        self,
        heard: Mapping[int, Hear],
        until: Callable[[], bool] = _never,
        sending: Outgoing | None = None,
    ) -> None:
        """Pass on what comes until the program has ended, or until ``until`` says so.

        ``heard`` maps descriptors to what takes their bytes, at their end none. ``until`` is asked
        whenever something has come, and some times a second.
        """
        with selectors.DefaultSelector() as selector:
            for pipe in self._output:
                selector.register(pipe.descriptor, selectors.EVENT_READ, pipe.take)
            for descriptor, take in heard.items():
                os.set_blocking(descriptor, False)
                selector.register(descriptor, selectors.EVENT_READ, take)
            selector.register(self._status, selectors.EVENT_READ, self._note)
            while self.end is None and not until():
                # Both ways at once: a program may print before it reads.
                if sending is not None:
                    sending.watch(selector)
                for key, _ in selector.select(None if until is _never else _LOOK_SECONDS):
                    if sending is not None and key.fd == sending.descriptor:
                        sending.flush()
                    elif (chunk := _read(key.fd)) is not None:
                        self._pass_on(selector, key, chunk)
        self._drain(heard.items())

    def _pass_on(
        self, selector: selectors.BaseSelector, key: selectors.SelectorKey, chunk: bytes
    ) -> None:
        if not chunk:
            selector.unregister(key.fd)
            if key.fd == self._status:
                self._lost()
        key.data(chunk)

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
                self.pid, self.process_id = said["pid"], said["launcher"]
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
        with self._closing:
            if self._closed:
                return
            self._closed = True
            os.close(self._control)
        deadline = time.monotonic() + _END_SECONDS
        while (chunk := _read(self._status)) != b"":
            left = deadline - time.monotonic()
            if chunk is None and left <= 0:
                if self.process_id is not None:
                    os.kill(self.process_id, signal.SIGKILL)
                break
            select.select([self._status], [], [], max(0.0, left))
        outputs = (pipe.descriptor for pipe in self._output)
        for descriptor in (self._status, *outputs, *self.ends.values()):
            os.close(descriptor)


class Forwarded:
    """One stream of a program, passed on to the same stream of this process as it comes."""

    def __init__(self, descriptor: int, stream: str) -> None:
        self.descriptor = descriptor
        self.kept = b""
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._open_line = False

    def take(self, chunk: bytes) -> None:
        """Pass a piece on; its end is kept. An empty one is the end of the stream."""
        if not chunk:
            return
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


def _read(descriptor: int) -> bytes | None:
    """Read what is there; None when nothing is, empty at the end."""
    try:
        return os.read(descriptor, _CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""
