"""``make run``: the Spark pipeline on the embedded store, told step by step."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from examples.showing import console, perago, what_next
from perago.app.local import Home, home_here
from perago.errors import PeragoError
from perago.spark import java

HERE = Path("examples/trips")
REPOSITORY = "trips"
WEEK = 7
WIDTH = 40
SHADES = " ░▒▓█"


def main() -> int:
    """Run a first week of trips, or one more day, then a broken day, and show the result."""
    arguments = _arguments()
    try:
        java.check()
        batch = arguments.batch or _next_batch()
    except PeragoError as error:
        sys.exit(f"error: {error}")
    from examples.trips.data import day_of  # noqa: PLC0415 - it imports Spark, which may be missing

    began = time.monotonic()
    days = 1 if arguments.batch or batch > 1 else WEEK
    last = f" to {day_of(batch + days - 1)}" if days > 1 else ""
    console.rule(f"[bold]taxi trips of {day_of(batch)}{last}", align="left")
    console.print(
        "Seven steps, six of them on Spark, each a transaction. [dim]picture[/dim] is killed with "
        "SIGKILL\nright after it published, before anyone heard of it: watch the retry replace "
        "what it left.\nThe first step starts the JVM, which takes a while.\n"
    )
    code = _pipeline(batch, days, arguments.rows, PERAGO_KILL_AT="picture:0:after publish")
    if code:
        return code
    if not arguments.quick:
        batch += days
        console.rule(f"[bold]a bad day: {day_of(batch)}", align="left")
        console.print(
            "The vendor now sends fares in cents and has told nobody. Every row is plausible by "
            "itself;\n[dim]max_drift[/dim] compares the table with the one before.\n"
        )
        if not _pipeline(batch, 1, arguments.rows, "-i", "in_cents=true"):
            sys.exit("error: the bad day was published")
        console.print("\nThe raw day has landed; nothing that was made of it became visible:\n")
    perago("log", REPOSITORY, "-n", "8")
    _show()
    console.print(f"\n[dim]{time.monotonic() - began:.0f} s in all[/dim]")
    what_next(_NEXT)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make run ARGS=...", description=main.__doc__)
    parser.add_argument("--batch", type=int, help="day to load; the next one when left out")
    parser.add_argument("--rows", type=int, default=4_500, help="trips on a day")
    parser.add_argument("--quick", action="store_true", help="leave out the bad day")
    return parser.parse_args()


def _pipeline(batch: int, days: int, rows: int, *more: str, **environment: str) -> int:
    given = {"batch": batch, "days": days, "rows": rows * days}
    inputs = [word for key, value in given.items() for word in ("-i", f"{key}={value}")] + [*more]
    workflow = [f"{HERE}/workflow.json", "examples.trips.tasks", "--repo", REPOSITORY]
    return perago("run", *workflow, *inputs, **environment)


def _next_batch() -> int:
    """Count the days that went all the way; a bad one is loaded again."""
    home = home_here()
    try:
        if REPOSITORY not in home.store.repositories():
            return 1
        trips = home.store.listing(REPOSITORY, "main", "silver/trips/")
        return len({info.key.split("/")[2] for info in trips}) + 1
    finally:
        home.close()


def _show() -> None:
    """Draw the published tables as they are on the branch now, here and as a picture."""
    from examples.trips.picture import WEEKDAYS, rows_of  # noqa: PLC0415 - as above

    home = home_here()
    with tempfile.TemporaryDirectory() as folder:
        gold = Path(folder)
        _bring(home, gold)
        days, hours = rows_of(gold / "daily"), rows_of(gold / "hourly")
        shown = home.path / "trips.png"
        shown.write_bytes((gold / "trips.png").read_bytes())
    home.close()
    fares: Counter[str] = Counter()
    for row in days:
        fares[str(row["day"])] += row["fares"]
    most = max(map(Decimal, fares.values()))
    console.print("\n[bold]fares by day of the trip[/bold], read from the published gold/daily")
    for day, total in sorted(fares.items())[-10:]:
        bar = "█" * max(1, round(WIDTH * float(total / most)))
        console.print(f"  {day}  [cyan]{bar}[/cyan] {total:,.2f}")
    console.print("\n[bold]trips by weekday and hour[/bold], read from the published gold/hourly")
    busiest = max(row["trips"] for row in hours)
    for number, name in enumerate(WEEKDAYS):
        counts = {row["hour"]: row["trips"] for row in hours if row["weekday"] == number}
        if counts:
            cells = "".join(2 * _shade(counts.get(hour, 0) / busiest) for hour in range(24))
            console.print(f"  {name} 0:00 [cyan]{cells}[/cyan] 24:00")
    console.print(f"\nthe picture of both, also published as gold/trips.png: [bold]{shown}[/bold]")


def _shade(share: float) -> str:
    return SHADES[min(len(SHADES) - 1, round(share * (len(SHADES) - 1)))]


def _bring(home: Home, target: Path) -> None:
    """Copy the gold tables out of the store."""
    for info in home.store.listing(REPOSITORY, "main", "gold/"):
        place = target / info.key.removeprefix("gold/")
        place.parent.mkdir(parents=True, exist_ok=True)
        with home.store.open_object(REPOSITORY, "main", info.key) as content:
            place.write_bytes(content.read())


_NEXT: Sequence[tuple[str, str]] = (
    (".venv/bin/perago ui --open", "all of it in a browser: runs, attempts, versions"),
    ("make run", "the next day; only what changes is published"),
    ('make run ARGS="--rows 1000000 --quick"', "a busier day, without the bad one"),
    (".venv/bin/perago inspect COMMIT", "phases, guards and changes of one publication"),
    (".venv/bin/perago checkout /tmp/trips -r trips", "the published files as a directory"),
    (".venv/bin/python -m examples.orders", "a pipeline of plain Python, without Spark"),
    (".venv/bin/perago init /tmp/words", "a small project of your own"),
)


if __name__ == "__main__":
    sys.exit(main())
