"""A day of orders with the blemishes of real ones: skew, duplicates, bad rows, late arrivals."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, timedelta

FIELDS = ("order_id", "ordered_on", "customer", "country", "item", "quantity", "unit_price")
COUNTRIES = ("DE", "FR", "NL", "PL", "ES", "SE", "PT", "LV")
ITEMS = {"mug": 8.5, "poster": 14.0, "lamp": 39.9, "chair": 89.0, "desk": 249.0, "sofa": 899.0}
FIRST_DAY = date(2026, 1, 5)

Row = dict[str, str]


def day_of(batch: int) -> date:
    """Return the calendar day of a batch; batches count from 1."""
    return FIRST_DAY + timedelta(days=batch - 1)


def orders(batch: int, rows: int) -> Iterator[Row]:
    """Yield one day of orders; the same batch always gives the same rows."""
    chance = random.Random(batch)
    day = day_of(batch)
    for number in range(rows):
        # A few customers and countries buy most of what is sold.
        customer = int(chance.paretovariate(1.2)) % 5000
        country = COUNTRIES[min(int(chance.expovariate(0.6)), len(COUNTRIES) - 1)]
        item = chance.choices(tuple(ITEMS), weights=(30, 22, 14, 9, 4, 1))[0]
        late = chance.random() < 0.02 and batch > 1
        row = {
            "order_id": f"{batch:03d}-{number:06d}",
            "ordered_on": (day - timedelta(days=1) if late else day).isoformat(),
            "customer": f"C{customer:04d}",
            "country": country,
            "item": item,
            "quantity": str(1 + int(chance.expovariate(1.1))),
            "unit_price": f"{ITEMS[item] * chance.uniform(0.9, 1.1):.2f}",
        }
        yield _spoiled(row, chance)
        if chance.random() < 0.005:
            yield row  # The source system sends some rows twice.


def _spoiled(row: Row, chance: random.Random) -> Row:
    """Break about one row in a hundred, each in its own way."""
    damage = chance.random()
    if damage < 0.004:
        return row | {"quantity": "-1"}
    if damage < 0.007:
        return row | {"unit_price": "n/a"}
    if damage < 0.010:
        return row | {"customer": ""}
    return row
