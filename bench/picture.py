"""One comparison as a picture: a bar for each contender, from its best to its worst."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

_OURS, _OTHERS, _LINE = "#2a6f97", "#b9c4cc", "#333333"
_WIDE = 30.0
"""From here on a bar of the slowest would leave nothing to see of the others."""


def draw(found: Mapping[str, Any], target: Path) -> None:
    """Draw what was measured; the same figures give the same bytes."""
    contenders: Mapping[str, Mapping[str, Any]] = found["contenders"]
    names = list(contenders)[::-1]
    medians = [float(contenders[name]["median"]) for name in names]
    figure = Figure(figsize=(8, 0.9 + 0.42 * len(names)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    colours = [_OTHERS if _foreign(name) else _OURS for name in names]
    axes.barh(names, medians, color=colours, height=0.6)
    for row, name in enumerate(names):
        seconds = contenders[name]["seconds"]
        axes.plot([min(seconds), max(seconds)], [row, row], color=_LINE, linewidth=1.2)
        axes.annotate(
            _told(medians[row]),
            (max(seconds), row),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    if min(medians) > 0 and max(medians) / min(medians) > _WIDE:
        axes.set_xscale("log")
    axes.margins(x=0.15)
    axes.set_xlabel("seconds, median; the line goes from best to worst", fontsize=8)
    axes.set_title(f"{found['name']}: {found['what']}", fontsize=9, loc="left")
    axes.tick_params(labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(target, dpi=110, metadata={"Software": None})


def _told(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _foreign(name: str) -> bool:
    marks = ("0.6.1", "lakectl", "SDK", "cp", "hand", "pydantic", "nothing", "alone", "local disk")
    return any(mark in name for mark in (*marks, "default committer", "read the table"))
