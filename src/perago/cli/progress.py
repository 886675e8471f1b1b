"""Progress bars for what takes long; silent where nobody looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from perago.terminal import console, text_column


@contextmanager
def bytes_bar(text: str, total: int) -> Iterator[Callable[[int], None]]:
    """Draw bytes on standard error while a transfer runs."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TransferSpeedColumn

    terminal = console(stderr=True)
    progress = Progress(
        text_column(),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=terminal,
        transient=True,
        disable=not terminal.is_terminal,
    )
    with progress:
        task = progress.add_task(text, total=total)
        yield lambda count: progress.advance(task, count)


@contextmanager
def count_bar(what: str) -> Iterator[Callable[[int], None]]:
    """Count on standard error; nobody knows up to where."""
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn

    terminal = console(stderr=True)
    columns = (SpinnerColumn(), MofNCompleteColumn(), text_column())
    with Progress(
        *columns, console=terminal, transient=True, disable=not terminal.is_terminal
    ) as progress:
        task = progress.add_task(what, total=None)
        yield lambda count: progress.advance(task, count)


@contextmanager
def share_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Draw how much is done of how much, on standard error."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress

    terminal = console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), text_column())
    with Progress(
        *columns, console=terminal, transient=True, disable=not terminal.is_terminal
    ) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
