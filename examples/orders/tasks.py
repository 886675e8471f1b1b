"""Six steps from raw orders to a daily report. Each is a plain function on a directory."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path

from pydantic import BaseModel, Field

from examples.orders.data import FIELDS, day_of, orders
from perago import (
    GuardrailViolation,
    MetricRecorder,
    RetryPolicy,
    TaskControls,
    TaskTerminalError,
    WorkspaceSpec,
    forbid_glob,
    require_file,
    require_glob,
    task,
)

OWNER = "data-team@example.com"
QUICK = TaskControls(retry=RetryPolicy(count=2, delay_seconds=1))
MAX_REJECTED_SHARE = 0.05


class Nothing(BaseModel):
    """A step without params."""


class Batch(BaseModel):
    """Which day to load, and how many orders it has."""

    batch: int = Field(ge=1)
    rows: int = Field(default=20_000, ge=1)
    broken: bool = False


class Rows(BaseModel):
    """How many rows went in and came out."""

    read: int
    written: int
    rejected: int = 0


class Totals(BaseModel):
    """What the shop took."""

    days: int
    orders: int
    revenue: Decimal


# --- bronze: as it came --------------------------------------------------------------------------


@task(
    name="orders_ingest",
    owner_email=OWNER,
    workspace=WorkspaceSpec(prefix="bronze", post=[require_glob("day=*/orders.csv")]),
    controls=QUICK,
)
def ingest(workspace: Path, params: Batch) -> Rows:
    """Land one day of raw orders, exactly as the shop sent them."""
    target = workspace / f"day={day_of(params.batch)}" / "orders.csv"
    rows = list(orders(params.batch, params.rows))
    if params.broken:
        rows = [row | {"unit_price": "n/a"} for row in rows]
    return Rows(read=len(rows), written=write(target, FIELDS, rows))


# --- silver: clean, without duplicates -----------------------------------------------------------


def few_rejects(workspace: Path) -> None:
    """Refuse a batch of which too much is broken: somebody should look at the source."""
    for rejects in workspace.glob("silver/day=*/rejects.csv"):
        bad = sum(1 for _ in read(rejects))
        good = sum(1 for _ in read(rejects.with_name("orders.csv")))
        if bad > MAX_REJECTED_SHARE * (good + bad):
            raise GuardrailViolation(
                f"{rejects.parent.name} has {bad} broken rows of {good + bad}",
                remedy="ask the shop for a new export",
            )


@task(
    name="orders_clean",
    owner_email=OWNER,
    workspace=WorkspaceSpec(
        pre=[require_glob("bronze/day=*/orders.csv")],
        post=[require_glob("silver/day=*/orders.csv"), few_rejects, forbid_glob("**/*.tmp")],
    ),
    controls=TaskControls(retry=RetryPolicy(count=0)),
)
def clean(workspace: Path, params: Nothing, metrics: MetricRecorder) -> Rows:
    """Keep good rows once, put broken ones aside; days that are already clean stay untouched."""
    counted = Rows(read=0, written=0)
    for raw in sorted(workspace.glob("bronze/day=*/orders.csv")):
        folder = workspace / "silver" / raw.parent.name
        if (folder / "orders.csv").exists():
            continue
        seen: dict[str, dict[str, str]] = {}
        rejects = []
        for row in read(raw):
            counted.read += 1
            if broken(row):
                rejects.append(row)
            else:
                seen[row["order_id"]] = row
        counted.written += write(folder / "orders.csv", FIELDS, seen.values())
        counted.rejected += write(folder / "rejects.csv", FIELDS, rejects)
    metrics.gauge("orders.rejected", counted.rejected)
    return counted


# --- gold: what people ask for -------------------------------------------------------------------


@task(
    name="orders_daily_revenue",
    owner_email=OWNER,
    workspace=WorkspaceSpec(
        pre=[require_glob("silver/day=*/orders.csv")], post=[require_file("gold/daily_revenue.csv")]
    ),
    controls=QUICK,
)
def daily_revenue(workspace: Path, params: Nothing) -> Totals:
    """Sum revenue by day and country; an order counts on the day it was made, however late."""
    revenue: dict[tuple[str, str], Decimal] = defaultdict(Decimal)
    count = 0
    for row in silver(workspace):
        revenue[row["ordered_on"], row["country"]] += price(row)
        count += 1
    lines = [
        {"day": day, "country": country, "revenue": f"{total:.2f}"}
        for (day, country), total in sorted(revenue.items())
    ]
    write(workspace / "gold" / "daily_revenue.csv", ("day", "country", "revenue"), lines)
    days = len({day for day, _ in revenue})
    return Totals(days=days, orders=count, revenue=sum(revenue.values(), Decimal(0)))


@task(
    name="orders_best_customers",
    owner_email=OWNER,
    workspace=WorkspaceSpec(
        pre=[require_glob("silver/day=*/orders.csv")],
        post=[require_file("gold/best_customers.csv")],
    ),
    controls=QUICK,
)
def best_customers(workspace: Path, params: Nothing) -> Rows:
    """List the hundred customers who spent most."""
    spent: dict[str, Decimal] = defaultdict(Decimal)
    for row in silver(workspace):
        spent[row["customer"]] += price(row)
    best = sorted(spent.items(), key=lambda pair: (-pair[1], pair[0]))[:100]
    lines = [{"customer": who, "spent": f"{total:.2f}"} for who, total in best]
    written = write(workspace / "gold" / "best_customers.csv", ("customer", "spent"), lines)
    return Rows(read=len(spent), written=written)


# --- a step that changes nothing when there is nothing to do, and one that may not change anything


@task(name="orders_drop_empty_days", owner_email=OWNER, workspace=WorkspaceSpec(), controls=QUICK)
def drop_empty_days(workspace: Path, params: Nothing) -> Rows:
    """Remove days without a single good row; usually there are none, and no commit is made."""
    days = sorted(workspace.glob("silver/day=*/orders.csv"))
    empty = [day for day in days if not any(True for _ in read(day))]
    for day in empty:
        for file in day.parent.iterdir():
            file.unlink()
    return Rows(read=len(days), written=len(days) - len(empty))


@task(
    name="orders_reconcile",
    owner_email=OWNER,
    workspace=WorkspaceSpec(pre=[require_file("gold/daily_revenue.csv")], read_only=True),
    controls=QUICK,
)
def reconcile(workspace: Path, params: Nothing) -> Totals:
    """Check that gold and silver tell the same revenue, to the cent."""
    rows = list(silver(workspace))
    gold = list(read(workspace / "gold" / "daily_revenue.csv"))
    expected = sum(map(price, rows), Decimal(0))
    found = sum((Decimal(row["revenue"]) for row in gold), Decimal(0))
    if found != expected:
        raise TaskTerminalError(f"gold says {found}, silver says {expected}")
    return Totals(days=len({row["day"] for row in gold}), orders=len(rows), revenue=found)


# --- files ---------------------------------------------------------------------------------------


def silver(workspace: Path) -> Iterator[dict[str, str]]:
    """Read every clean order."""
    for file in sorted(workspace.glob("silver/day=*/orders.csv")):
        yield from read(file)


def price(row: dict[str, str]) -> Decimal:
    """Return what one order line costs."""
    return Decimal(row["unit_price"]) * int(row["quantity"])


def broken(row: dict[str, str]) -> bool:
    """Tell whether a row cannot be used."""
    try:
        return not row["customer"] or int(row["quantity"]) < 1 or Decimal(row["unit_price"]) <= 0
    except (InvalidOperation, ValueError):
        return True


def read(file: Path) -> Iterator[dict[str, str]]:
    """Read a CSV file row by row."""
    with file.open(newline="") as lines:
        yield from csv.DictReader(lines)


def write(file: Path, fields: Sequence[str], rows: Iterable[dict[str, str]]) -> int:
    """Write a CSV file; returns the number of rows."""
    file.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with file.open("w", newline="") as lines:
        writer = csv.DictWriter(lines, fields, lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow(row)
            count += 1
    return count
