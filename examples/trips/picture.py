"""The gold tables as a picture: fares by day and borough, and the hours of the week."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

BACKGROUND, INK = "#ffffff", "#222222"
COLOURS = ("#2a6f97", "#61a5c2", "#f4a259", "#bc4b51", "#8cb369", "#5b5b7b")
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


def rows_of(table: Path) -> list[dict[str, Any]]:
    """Read a small table."""
    files = sorted(map(str, table.rglob("*.parquet")))
    found: list[dict[str, Any]] = ds.dataset(files).to_table().to_pylist()
    return found


def draw(gold: Path, target: Path) -> int:
    """Draw the picture; returns how many days it shows."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - slow to import
    from matplotlib.figure import Figure  # noqa: PLC0415 - as above

    figure = Figure(figsize=(11, 4.2), facecolor=BACKGROUND, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.4))
    days = _fares(left, rows_of(gold / "daily"))
    _hours(right, rows_of(gold / "hourly"))
    # Without a date inside, the same tables give the same bytes.
    figure.savefig(target, dpi=110, metadata={"Software": None})
    return days


def _fares(axes: Any, rows: list[dict[str, Any]]) -> int:
    days = sorted({row["day"] for row in rows})
    boroughs = sorted({row["borough"] for row in rows})
    fares = {(row["day"], row["borough"]): float(row["fares"]) / 1000 for row in rows}
    below = [0.0] * len(days)
    for colour, borough in zip(COLOURS, boroughs, strict=False):
        heights = [fares.get((day, borough), 0.0) for day in days]
        labels = [f"{day:%d %b}" for day in days]
        axes.bar(labels, heights, bottom=below, color=colour, label=borough, width=0.7)
        below = [low + high for low, high in zip(below, heights, strict=True)]
    axes.set_title("fares by day of the trip, in thousands", loc="left", color=INK)
    axes.set_xlim(-0.6, max(len(days), 5) - 0.4)  # one day alone is not a wall
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=3)
    axes.spines[["top", "right"]].set_visible(False)
    return len(days)


def _hours(axes: Any, rows: list[dict[str, Any]]) -> None:
    grid = [[0] * 24 for _ in WEEKDAYS]
    for row in rows:
        grid[row["weekday"]][row["hour"]] = row["trips"]
    image = axes.imshow(grid, aspect="auto", cmap="YlGnBu")
    axes.set_yticks(range(7), WEEKDAYS)
    axes.set_xticks(range(0, 24, 3), [f"{hour}:00" for hour in range(0, 24, 3)])
    axes.set_title("trips by weekday and hour", loc="left", color=INK)
    axes.figure.colorbar(image, ax=axes, shrink=0.9)
