"""``perago status``: what the worker of this root does now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from perago.cli.exits import FAILED
from perago.cli.screen import AsJson, emit, fields, plain, say, table, when
from perago.protocol.printable import size


def status(as_json: AsJson = False) -> None:
    """Show the worker of this root: executors, running attempts, polling, last problems.

    Ends with 0 when it would take a task now, with 1 when not.
    """
    from perago.app.local import settings_here
    from perago.clock import SystemClock
    from perago.worker.state import in_use, read_state

    root = settings_here().workspace_root
    alive = in_use(root)
    state = read_state(root)
    if not alive:
        state |= {"state": "stopped" if state.get("state") == "stopped" else "not running"}
        state |= {"ready": False, "running": [], "executors": []}
    if as_json:
        emit({"root": str(root), "alive": alive, **state})
    else:
        _show(root, alive, state, SystemClock().now())
    if not state.get("ready"):
        raise typer.Exit(FAILED)


def _show(root: Path, alive: bool, state: dict[str, Any], now: float) -> None:
    if not alive:
        say(f"no worker runs on {plain(root)}")
        if "written_at" in state:
            say(f"[dim]the last one was seen at {when(state['written_at'])}[/dim]")
        return
    ready = "[green]ready[/green]" if state["ready"] else "[yellow]not ready[/yellow]"
    why = f" ({plain(state['why_not_ready'])})" if state.get("why_not_ready") else ""
    say(f"[bold]{plain(state['state'])}[/bold], {ready}{why}")
    polls = state["polls"]
    counts = state["counts"]
    fields(
        {
            "pid": state["pid"],
            "root": plain(root),
            "since": when(state["started_at"]),
            "executors": plain(f"{state['size']} ({state['mode']})"),
            "tasks": plain(", ".join(state["tasks"])),
            "polls": f"{polls['count']}"
            + (f", {plain(polls['problem'])}" * bool(polls["problem"])),
            "attempts": ", ".join(f"{count} {name}" for name, count in counts.items() if count)
            or "none yet",
            **({"paused until": when(state["paused_until"])} if state["paused_until"] else {}),
        }
    )
    say()
    running = {run["execution_id"]: run for run in state["running"]}
    table(
        ["worker", "pid", "attempts", "memory", "step", "phase", "seconds"],
        [_row(found, running.get(found["execution_id"]), now) for found in state["executors"]],
    )
    for problem in state["problems"]:
        why = f": {plain(problem['why'])}" if problem["why"] else ""
        say(f"[dim]{when(problem['at'])}[/dim]  {plain(problem['what'])}{why}")


def _row(found: dict[str, Any], run: dict[str, Any] | None, now: float) -> list[object]:
    memory = size(found["bytes"]) if found["bytes"] else "-"
    who = [plain(found["worker_id"]), found["pid"] or "-", found["attempts"], memory]
    if run is None:
        return [*who, "-", "idle" if found["ready"] else "starting", "-"]
    phase = "lost" if run["lost"] else run["phase"]
    return [
        *who,
        plain(f"{run['step']}:{run['retry_count']}"),
        plain(phase),
        f"{now - run['since']:.1f}",
    ]
