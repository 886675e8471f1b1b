"""Shells that a page is typed into: one behind a pipe, one in a terminal of 80 columns."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.docs.consoles import Ids, Typed, missing, missing_from_screen
from tests.patience import LIMIT, Deadline, until

LINE_WIDTH = "200"
"""Wide enough that nothing is wrapped: pages show lines as they are in a pipe."""


class Shell(ABC):
    """One bash for one page: directories, variables and jobs stay from command to command."""

    def __init__(self) -> None:
        self.ids = Ids()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def play(self, typed: Typed) -> None:
        """Type a command and compare what it shows."""
        output, code = self._typed(typed)
        deadline = Deadline()
        while typed.is_of_the_moment and self.missing(typed, output()) and not deadline.over:
            output, code = self._typed(typed)
        if typed.in_background:
            until(
                lambda: self.missing(typed, output()) is None,
                f"what the page shows of {typed.command}",
            )
        absent = self.missing(typed, output())
        said = "\n".join(output())
        assert absent is None, f"$ {typed.command}\nshows no line\n{absent}\nbut\n{said}"
        assert code == 0 or typed.may_fail, f"$ {typed.command}\nexit code {code}\n{said}"

    def _typed(self, typed: Typed) -> tuple[Callable[[], list[str]], int]:
        """Type a command once; return what gives its output, and its exit code."""
        output = self.begin()
        return output, self.run(self.ids.in_command(typed.command), typed.keys)

    def missing(self, typed: Typed, output: list[str]) -> str | None:
        """Return the first line of the page that was not shown."""
        return missing(typed.shown, output, self.ids)

    def run(self, command: str, keys: tuple[str, ...] = ()) -> int:
        """Run a command to its end, or put it into the background; return its exit code."""
        mark = uuid.uuid4().hex
        lines = "".join(f"{key}\n" for key in keys)
        given = f"<<'KEYS'\n{lines}KEYS" if keys else "</dev/null"
        self.type(f"{{ {command}\n}} {given}\nprintf '\\n%s %s\\n' {mark} $?\n")
        return int(until(partial(self._end, mark), f"the end of {command}"))

    def export(self, variables: Mapping[str, str]) -> None:
        """Set variables for what follows."""
        for name, value in variables.items():
            self.run(f"export {name}={shlex.quote(value)}")

    @abstractmethod
    def begin(self) -> Callable[[], list[str]]:
        """Return what gives the output from now on."""

    @abstractmethod
    def type(self, text: str) -> None:
        """Type lines."""

    @abstractmethod
    def seen(self) -> list[str]:
        """Return all lines that may hold the end of the last command."""

    @abstractmethod
    def close(self) -> None:
        """End the shell and what it started."""

    def _end(self, mark: str) -> str | None:
        """Return the exit code that follows a mark; None when it is not there yet."""
        ends = (line.split()[1] for line in self.seen() if line.startswith(f"{mark} "))
        return next(ends, None)


class Piped(Shell):
    """A bash whose output goes into a pipe."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        super().__init__()
        self._bash = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=directory,
            env={**environment, "COLUMNS": LINE_WIDTH},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def begin(self) -> Callable[[], list[str]]:
        begun = len(self._lines)
        return lambda: self._lines[begun:]

    def type(self, text: str) -> None:
        assert self._bash.stdin
        self._bash.stdin.write(text)
        self._bash.stdin.flush()

    def seen(self) -> list[str]:
        assert self._bash.poll() is None, "\n".join(self._lines)
        return self._lines

    def close(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._bash.pid, signal.SIGKILL)
        self._bash.wait(LIMIT)
        self._reader.join(LIMIT)
        for stream in (self._bash.stdin, self._bash.stdout):
            if stream:
                stream.close()

    def _read(self) -> None:
        assert self._bash.stdout
        for line in self._bash.stdout:
            self._lines.append(line.rstrip("\n"))


class Terminal(Shell):
    """A bash in tmux, 80 columns wide, as on a laptop."""

    def __init__(self, directory: Path, environment: Mapping[str, str]) -> None:
        super().__init__()
        self._server = f"perago-{uuid.uuid4().hex[:8]}"
        self._tmux(
            *("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "300"),
            "bash --norc --noprofile",
            cwd=directory,
            env={**environment, "PS1": "$ ", "TERM": "xterm-256color"},
        )

    def begin(self) -> Callable[[], list[str]]:
        self.type("clear\n")
        self._tmux("clear-history")
        return self.seen

    def type(self, text: str) -> None:
        for line in text.splitlines():
            self._tmux("send-keys", "-l", line)
            self._tmux("send-keys", "Enter")

    def seen(self) -> list[str]:
        return self._tmux("capture-pane", "-p", "-J", "-S", "-").splitlines()

    def missing(self, typed: Typed, output: list[str]) -> str | None:
        return missing_from_screen(typed.shown, output, self.ids)

    def close(self) -> None:
        with suppress(subprocess.CalledProcessError):
            self._tmux("kill-server")

    def _tmux(
        self, *words: str, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._server, *words],
            cwd=cwd,
            env=env,
            check=True,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
        return done.stdout
