"""``make run``: the pipeline on the embedded store, told step by step."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from rich.console import Console

from examples.orders.data import day_of
from perago.errors import PeragoError
from perago.wiring import home_here

HERE = Path("examples/orders")
REPOSITORY = "orders"
WIDTH = 40
console = Console(highlight=False, soft_wrap=True)


def main() -> int:
    """Run one more day through the pipeline, then show what happened."""
    arguments = _arguments()
    batch = arguments.batch or _next_batch()
    console.rule(f"[bold]orders of {day_of(batch)}", align="left")
    console.print(
        "Six steps, each a transaction. [dim]daily_revenue[/dim] is killed with SIGKILL right after"
        "\nit published, before anyone heard of it: watch the retry replace what it left.\n"
    )
    command = ["run", f"{HERE}/workflow.json", "examples.orders.tasks", "--repo", REPOSITORY]
    command += ["-i", f"batch={batch}", "-i", f"rows={arguments.rows}"]
    if arguments.broken:
        command += ["-i", "broken=true"]
    code = _perago(*command, PERAGO_KILL_AT="daily_revenue:0:after publish")
    if code and arguments.broken:
        console.print("\nThe raw day has landed; nothing that was made of it became visible:")
        return _perago("log", REPOSITORY, "-n", "6")
    if code:
        return code
    console.print()
    _perago("log", REPOSITORY, "-n", "8")
    _plot()
    _what_next()
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make run ARGS=...", description=main.__doc__)
    parser.add_argument("--batch", type=int, help="day to load; the next one when left out")
    parser.add_argument("--rows", type=int, default=20_000, help="orders on that day")
    parser.add_argument(
        "--broken", action="store_true", help="load an unusable day and see it refused"
    )
    return parser.parse_args()


def _perago(*arguments: str, **environment: str) -> int:
    """Run a command the way a person would, and show it."""
    console.print(f"[bold green]$[/bold green] [bold]{shlex.join(('perago', *arguments))}[/bold]")
    command = [sys.executable, "-m", "perago", *arguments]
    return subprocess.run(command, env=os.environ | environment, check=False).returncode  # noqa: S603


def _next_batch() -> int:
    """Count the days that are already clean; a broken one is loaded again."""
    home = home_here()
    try:
        if REPOSITORY not in home.store.repositories():
            return 1
        listing = home.store.listing(REPOSITORY, "main", "silver/")
        return sum(1 for info in listing if info.key.endswith("/orders.csv")) + 1
    except PeragoError as error:
        sys.exit(f"error: {error}")
    finally:
        home.close()


def _plot() -> None:
    """Draw the published table as it is on the branch now."""
    home = home_here()
    totals: dict[str, Decimal] = {}
    with home.store.open_object(REPOSITORY, "main", "gold/daily_revenue.csv") as table:
        lines = table.read().decode().splitlines()[1:]
    home.close()
    for line in lines:
        day, _, revenue = line.split(",")
        totals[day] = totals.get(day, Decimal(0)) + Decimal(revenue)
    console.print("\n[bold]revenue by day[/bold], read from the published gold/daily_revenue.csv")
    most = max(totals.values())
    for day, total in sorted(totals.items())[-10:]:
        bar = "█" * max(1, round(WIDTH * float(total / most)))
        console.print(f"  {day}  [cyan]{bar}[/cyan] {total:,.2f}")


def _what_next() -> None:
    console.print("\n[bold]what to try next[/bold]")
    for command, why in _NEXT:
        console.print(f"  [bold]{command:<44}[/bold] [dim]{why}[/dim]")


_NEXT: Sequence[tuple[str, str]] = (
    ("make run", "the next day; only what changes is published"),
    ("make run ARGS=--broken", "a day that a guardrail refuses"),
    (".venv/bin/perago inspect COMMIT", "phases, guards and changes of one publication"),
    (".venv/bin/perago checkout /tmp/orders", "the published files as a directory"),
    (".venv/bin/perago init /tmp/words", "a small project of your own"),
)


if __name__ == "__main__":
    sys.exit(main())
