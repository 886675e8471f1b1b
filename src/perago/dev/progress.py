"""Telling whoever waits what is going on: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from perago.protocol.printable import printable
from perago.terminal import console, text_column

_LAST_LINE_WIDTH = 60


class ProgressStep(Protocol):
    """One long piece of work."""

    def show(self, line: str, done: int) -> None:
        """Take the last line of the work's output and how much is done."""


class ProgressReporter(Protocol):
    """Where the news goes."""

    def note(self, text: str) -> None:
        """Say one thing."""

    def step(self, title: str, total: int = 0) -> AbstractContextManager[ProgressStep]:
        """Cover one piece of work; a total of 0 is unknown."""


class NoProgress:
    """Say nothing: for tests and for machines."""

    def note(self, text: str) -> None:
        """Drop it."""

    def show(self, line: str, done: int) -> None:
        """Drop it."""

    @contextmanager
    def step(self, title: str, total: int = 0) -> Iterator[ProgressStep]:  # noqa: ARG002 - of the port
        yield self


class Plain(NoProgress):
    """Two lines per step on standard error."""

    def note(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    @contextmanager
    def step(self, title: str, total: int = 0) -> Iterator[ProgressStep]:  # noqa: ARG002 - of the port
        self.note(f"{title} ...")
        began = time.monotonic()
        yield self
        self.note(f"{title}: done in {time.monotonic() - began:.0f} s")


class DrawnProgress(Plain):
    """A bar with elapsed time and the last line of the work."""

    @contextmanager
    def step(self, title: str, total: int = 0) -> Iterator[ProgressStep]:
        from rich.progress import (  # noqa: PLC0415 - only on a terminal
            BarColumn,
            Progress,
            SpinnerColumn,
            TaskProgressColumn,
            TimeElapsedColumn,
        )

        columns = (
            SpinnerColumn(),
            text_column(),
            *((BarColumn(bar_width=24), TaskProgressColumn()) if total else ()),
            TimeElapsedColumn(),
            text_column("{task.fields[line]}", "dim"),
        )
        with Progress(*columns, console=console(stderr=True), transient=True) as progress:
            task = progress.add_task(title, total=total or None, line="")

            class Bar:
                def show(self, line: str, done: int) -> None:
                    shown = printable(line[-_LAST_LINE_WIDTH:])
                    progress.update(task, completed=min(done, total or done), line=shown)

            began = time.monotonic()
            yield Bar()
        self.note(f"{title}: done in {time.monotonic() - began:.0f} s")


def narrator(*, quiet: bool = False) -> ProgressReporter:
    """Choose by who is looking."""
    if quiet:
        return NoProgress()
    return DrawnProgress() if sys.stderr.isatty() else Plain()
