"""``python -m examples.orders``: a pipeline without Spark, told step by step."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from examples.orders.data import day_of
from examples.showing import console, perago, what_next
from perago.app.local import home_here
from perago.errors import PeragoError

HERE = Path("examples/orders")
REPOSITORY = "orders"
WIDTH = 40


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
    code = perago(*command, PERAGO_KILL_AT="daily_revenue:0:after publish")
    if code and arguments.broken:
        console.print("\nThe raw day has landed; nothing that was made of it became visible:")
        return perago("log", REPOSITORY, "-n", "6")
    if code:
        return code
    console.print()
    perago("log", REPOSITORY, "-n", "8")
    _plot()
    what_next(_NEXT)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make run ARGS=...", description=main.__doc__)
    parser.add_argument("--batch", type=int, help="day to load; the next one when left out")
    parser.add_argument("--rows", type=int, default=20_000, help="orders on that day")
    parser.add_argument(
        "--broken", action="store_true", help="load an unusable day and see it refused"
    )
    return parser.parse_args()


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


_NEXT: Sequence[tuple[str, str]] = (
    (".venv/bin/python -m examples.orders", "the next day; only what changes is published"),
    (".venv/bin/python -m examples.orders --broken", "a day that a guardrail refuses"),
    (".venv/bin/perago inspect COMMIT", "phases, guards and changes of one publication"),
    (".venv/bin/perago checkout /tmp/orders -r orders", "the published files as a directory"),
    (".venv/bin/perago init /tmp/words", "a small project of your own"),
)


if __name__ == "__main__":
    sys.exit(main())
