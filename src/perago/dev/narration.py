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


class Step(Protocol):
    """One long piece of work."""

    def show(self, line: str, done: int) -> None:
        """Take the last line of the work's output and how much is done."""


class Narrator(Protocol):
    """Where the news goes."""

    def note(self, text: str) -> None:
        """Say one thing."""

    def step(self, title: str, total: int = 0) -> AbstractContextManager[Step]:
        """Cover one piece of work; a total of 0 is unknown."""


class Silent:
    """Say nothing: for tests and for machines."""

    def note(self, text: str) -> None:
        """Drop it."""

    def show(self, line: str, done: int) -> None:
        """Drop it."""

    @contextmanager
    def step(self, title: str, total: int = 0) -> Iterator[Step]:  # noqa: ARG002 - of the port
        yield self


class Plain(Silent):
    """Two lines per step on standard error."""

    def note(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    @contextmanager
    def step(self, title: str, total: int = 0) -> Iterator[Step]:  # noqa: ARG002 - of the port
        self.note(f"{title} ...")
        began = time.monotonic()
        yield self
        self.note(f"{title}: done in {time.monotonic() - began:.0f} s")


class Drawn(Plain):
    """A bar with elapsed time and the last line of the work."""

    @contextmanager
    def step(self, title: str, total: int = 0) -> Iterator[Step]:
        from rich.progress import (  # noqa: PLC0415 - only where somebody looks
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


def narrator(*, quiet: bool = False) -> Narrator:
    """Choose by who is looking."""
    if quiet:
        return Silent()
    return Drawn() if sys.stderr.isatty() else Plain()
