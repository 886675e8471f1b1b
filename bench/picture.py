"""One comparison as a picture: a bar for each contender, from its best to its worst."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

_OURS, _OTHERS, _LINE = "#2a6f97", "#b9c4cc", "#333333"
_FOREIGN = (
    *("0.6.1", "lakectl", "SDK", "s5cmd", "lakefs-spec", "cp", "hand", "pydantic", "nothing"),
    *("alone", "local disk", "default committer", "read the table"),
)
_DASHES = ("-", "--", ":")
_OVER, _BESIDE, _UNDER = (-6, 3, "right"), (6, 4, "left"), (6, -9, "left")
_UNITS = ("bytes", "KiB", "MiB", "GiB")
_WIDE = 30.0
"""From here on a bar of the slowest would leave nothing to see of the others."""

Contenders = Mapping[str, Mapping[str, Any]]


def draw(found: Mapping[str, Any], target: Path) -> None:
    """Draw what was measured; the same figures give the same bytes."""
    curve = found.get("curve")
    rows = 8 if curve else len(found["contenders"])
    figure = Figure(figsize=(8, 0.9 + 0.42 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    if curve:
        _lines(axes, curve, found["contenders"])
    else:
        _bars(axes, found["contenders"])
    axes.set_title(f"{found['name']}: {found['what']}", fontsize=9, loc="left")
    axes.tick_params(labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(target, dpi=110, metadata={"Software": None})


def _bars(axes: Axes, contenders: Contenders) -> None:
    names = list(contenders)[::-1]
    medians = [float(contenders[name]["median"]) for name in names]
    colours = [_OTHERS if _foreign(name) else _OURS for name in names]
    axes.barh(names, medians, color=colours, height=0.6)
    for row, name in enumerate(names):
        seconds = contenders[name]["seconds"]
        axes.plot([min(seconds), max(seconds)], [row, row], color=_LINE, linewidth=1.2)
        axes.annotate(
            f"{_told(medians[row])}, {_times(len(seconds))}",
            (max(seconds), row),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    if min(medians) > 0 and max(medians) / min(medians) > _WIDE:
        axes.set_xscale("log")
    axes.margins(x=0.15)
    axes.set_xlabel("seconds, in the middle of the runs; the line: best to worst", fontsize=8)


def _lines(axes: Axes, curve: Mapping[str, Any], contenders: Contenders) -> None:
    """Draw one line for each way to do it; a straight one grows as its input does."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for name, (line, x) in curve["at"].items():
        lines.setdefault(line, []).append((x, float(contenders[name]["median"])))
    places = sorted({x for _, x in curve["at"].values()})
    for number, (line, points) in enumerate(lines.items()):
        colour = _OTHERS if _foreign(line) else _OURS
        style = _DASHES[number % len(_DASHES)]
        axes.plot(*zip(*sorted(points), strict=True), style, color=colour, marker="o", label=line)
    for x in places:
        _figures(axes, x, sorted(y for points in lines.values() for at, y in points if at == x))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(places, [_amount(x, curve["axis"]) for x in places])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda seconds, _: _tick(seconds)))
    axes.margins(x=0.1, y=0.15)
    axes.set_xlabel(curve["axis"], fontsize=8)
    axes.set_ylabel("time, in the middle of the runs", fontsize=8)
    axes.legend(fontsize=8, frameon=False)


def _times(runs: int) -> str:
    return "1 run" if runs == 1 else f"{runs} runs"


def _figures(axes: Axes, x: float, found: Sequence[float]) -> None:
    """Write the values of points above each other, each at a corner of its own."""
    for rank, y in enumerate(found):
        right, up, side = _UNDER if rank == 0 else _BESIDE
        if rank == len(found) - 1:
            right, up, side = _OVER
        axes.annotate(
            _told(y), (x, y), xytext=(right, up), textcoords="offset points", ha=side, fontsize=7
        )


def _told(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _tick(seconds: float) -> str:
    return f"{seconds * 1000:g} ms" if seconds < 1 else f"{seconds:g} s"


def _amount(x: float, axis: str) -> str:
    if axis != "bytes":
        return f"{x:,g}"
    power = min(int(math.log2(x)) // 10, len(_UNITS) - 1)
    return f"{x / 1024**power:g} {_UNITS[power]}"


def _foreign(name: str) -> bool:
    return any(mark in name for mark in _FOREIGN)
