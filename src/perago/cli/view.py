"""What a person sees while a workflow runs: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from perago.cli.screen import block, changes, marked, plain, short
from perago.protocol.attempt_state import STARTING_SPARK, AttemptState
from perago.protocol.event_format import read
from perago.protocol.events import Moved, PhaseBegan, warning_of
from perago.terminal import console

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

_ICONS = {
    "COMPLETED": "[green]✓[/green]",
    "COMPLETED_WITH_ERRORS": "[yellow]✓[/yellow]",
    "INTERRUPTED": "[yellow]■[/yellow]",
}
_INTERRUPTED = "INTERRUPTED"
_WAITS = {"HUMAN": "waits for a person", "WAIT": "waits for its time"}
"""Kinds of step that wait for something outside, and what for."""
_BAR = 16
_NOTICED = 1.5
"""Seconds from which on a wait is announced where nothing moves."""


@dataclass(slots=True)
class StepView:
    """One attempt on the screen."""

    name: str
    retry: int
    began: float
    waiting: str = "waiting"
    """What it waits for, or does, before its first phase."""
    share: float | None = None
    """How much of a transfer is done."""
    state: AttemptState = field(default_factory=AttemptState)
    status: str = ""
    reason: str = ""
    seconds: float = 0.0

    def hear(self, message: Mapping[str, Any]) -> str:
        """Take in one journal event of the executor; return what it warns of."""
        event = read(str(message.get("event", "")), message)
        self.state = self.state.after(event, 0.0)
        if isinstance(event, PhaseBegan):
            self.share = None
        elif isinstance(event, Moved) and event.total:
            self.share = event.done / event.total
        return warning_of(event)

    @property
    def doing(self) -> str:
        """Return what it is doing now."""
        starting = STARTING_SPARK if self.state.starting_spark else ""
        return starting or self.state.last_phase or self.waiting

    @property
    def label(self) -> str:
        """Name the step, and the try when it is not the first."""
        return plain(self.name) + (f" [dim]retry {self.retry}[/dim]" if self.retry else "")

    @property
    def story(self) -> str:
        """Return what it is doing, or how it ended."""
        if not self.status:
            return self.doing + self._bar()
        if self.status == _INTERRUPTED:
            return "[yellow]interrupted[/yellow]"
        if self.status not in _ICONS:
            return f"[red]{block(self.reason or self.status)}[/red]"
        ref = f"[cyan]{short(self.state.ref)}[/cyan]"
        decision = self.state.decision.kind if self.state.decision else ""
        done = {
            "merge": f"published {ref}",
            "replace": f"[yellow]replaced an abandoned publication[/yellow] with {ref}",
            "relocate": "[yellow]took an abandoned publication back[/yellow]",
            "keep": "nothing to publish",
            "adopt": f"[yellow]adopted[/yellow] {ref}, published before",
        }.get(decision, "read-only")
        change = self.state.changed
        if change is None or decision not in {"merge", "replace"}:
            return done
        return f"{done}  {changes(*change.counts)}"

    @property
    def icon(self) -> str:
        """Show the state in one character."""
        return _ICONS.get(self.status, "[red]✗[/red]") if self.status else "[cyan]•[/cyan]"

    def took(self, digits: int) -> str:
        """Return how long it took, or takes so far."""
        seconds = self.seconds if self.status else time.monotonic() - self.began
        return f"{seconds:.{digits}f} s"

    def of_that(self, digits: int) -> str:
        """Return how much of that was a JVM's start; nothing where none was started."""
        seconds = self.state.spark_seconds
        return f" (starting Spark: {seconds:.{digits}f} s)" if seconds else ""

    def _bar(self) -> str:
        if self.share is None:
            return ""
        full = round(self.share * _BAR)
        return f" [cyan]{'━' * full}[/cyan][dim]{'━' * (_BAR - full)}[/dim] {self.share:.0%}"


class View(Protocol):
    """Something that follows a run."""

    def __call__(self, event: dict[str, object]) -> None:
        """Take one event of the runner."""

    def __enter__(self) -> Self:
        """Begin."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End."""


class QuietView:
    """For ``--json``: nothing until the end."""

    def __call__(self, event: dict[str, object]) -> None:
        """Ignore."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class RunView:
    """Follows the attempts of one run."""

    def __init__(self, console: Console, *, live: bool) -> None:
        self._console = console
        self._wants_live = live
        self._steps: dict[str, StepView] = {}
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._wants_live and self._console.is_terminal:
            from rich.live import Live

            self._live = Live(
                console=self._console, get_renderable=self._table, refresh_per_second=8
            )
            self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def __call__(self, event: dict[str, object]) -> None:
        """Take one event of the runner."""
        kind = event.get("kind")
        if event.get("within"):
            name = f"{event['within']}/{event['reference_task_name']}"
            event = {**event, "reference_task_name": name}
        if kind in _WAITS:
            self._about_waiting(event, _WAITS[str(kind)])
        if kind not in {None, "SIMPLE"}:
            return
        name, task_id = str(event["event"]), str(event.get("task_id", ""))
        if name in {"task_scheduled", "task_retry"}:
            self._schedule(name, task_id, event)
        elif name == "output":
            self._print(
                f"[dim]{plain(event.get('reference_task_name', 'executor'))} |[/dim] ", event
            )
        elif name == "alert":
            said = f"{plain(event['subject'])}: {plain(event['reason'])}"
            self._console.print(marked(f"[yellow]alert[/yellow] {said}"))
        elif task_id:
            if task_id not in self._steps:  # scheduled before this command began
                if name == "task_lost":
                    return  # the interruption was the end of that command
                self._schedule(name, task_id, event)
            self._follow(name, self._steps[task_id], event)

    def _about_waiting(self, event: Mapping[str, Any], why: str) -> None:
        """Tell of a step that no executor does: that it waits, and that it failed."""
        label, name = plain(event["reference_task_name"]), event["event"]
        if name in {"task_scheduled", "task_retry"}:
            self._console.print(marked(f"[yellow]?[/yellow] {label}  {why}"))
        elif name == "task_finished" and event["status"] not in _ICONS:
            why = block(event["reason"] or event["status"])
            self._console.print(marked(f"[red]✗[/red] {label}  [red]{why}[/red]"))

    def _schedule(self, name: str, task_id: str, event: Mapping[str, Any]) -> None:
        step = StepView(
            str(event["reference_task_name"]), int(event["retry_count"]), time.monotonic()
        )
        wait = float(event.get("in_seconds") or 0.0)
        self._steps[task_id] = step
        if name == "task_retry" and wait >= _NOTICED:
            step.waiting = f"starts in {wait:.0f} s"
            if self._live is None:
                self._console.print(marked(f"{step.icon} {step.label}  {step.story}"))

    def _follow(self, name: str, step: StepView, event: Mapping[str, Any]) -> None:
        if name == "task_claimed":
            step.began, step.waiting = time.monotonic(), "starting"
        elif name == "task_running":
            step.waiting = "running"
        elif name == "message":
            if warning := step.hear(event["message"]):
                said = f"[yellow]![/yellow] {step.label}  [yellow]{plain(warning)}[/yellow]"
                self._console.print(marked(said))
        elif name == "task_lost":
            step.status, step.seconds = _INTERRUPTED, time.monotonic() - step.began
            self._ended(step)
        elif name == "task_finished":
            step.status, step.reason = str(event["status"]), str(event["reason"])
            step.seconds = float(event["seconds"])
            self._ended(step)

    def _ended(self, step: StepView) -> None:
        """Print a line about an attempt that is over, where there is no live table."""
        if self._live is None:
            took = f"{step.took(2)}{step.of_that(2)}"
            said = f"{step.icon} {step.label}  {step.story}  [dim]{took}[/dim]"
            self._console.print(marked(said))

    def _table(self) -> RenderableType:
        from rich.table import Table

        table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
        for step in self._steps.values():
            # The column of seconds stays narrow, so that stories are not folded for it.
            story = f"{step.story}[dim]{step.of_that(1)}[/dim]"
            row = (step.icon, step.label, f"[dim]{step.took(1)}[/dim]", story)
            table.add_row(*map(marked, row))
        return table

    def _print(self, lead: str, event: Mapping[str, Any]) -> None:
        self._console.print(marked(lead + plain(event["line"])))


def view_for(*, as_json: bool, live: bool) -> View:
    """Choose by who is looking; a debugger's prompt must not be painted over."""
    if as_json:
        return QuietView()
    wide = None if sys.stdout.isatty() else 200
    return RunView(console(width=wide, soft_wrap=wide is not None), live=live)
