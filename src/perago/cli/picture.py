"""Publish latencies as a picture: how they are spread, and how they went over time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from perago.errors import RuntimeConfigError, UsageError

_KINDS: Final = (".png", ".svg")
_COLOURS: Final = ("#2a6f97", "#f4a259", "#bc4b51", "#8cb369", "#5b5b7b", "#61a5c2")
_P99: Final = 0.99


def check_target(target: Path) -> None:
    """Refuse a file that could not be drawn, before anything is counted."""
    if target.suffix.lower() not in _KINDS:
        raise UsageError(
            f"{target} is not a picture", remedy=f"end its name in {' or '.join(_KINDS)}"
        )
    if not target.absolute().parent.is_dir():
        raise UsageError(f"there is no directory {target.absolute().parent}")
    if find_spec("matplotlib") is None:
        raise RuntimeConfigError(
            "--plot needs the package 'matplotlib'", remedy="install it: pip install matplotlib"
        )


def draw(points: Sequence[tuple[str, float, float]], target: Path) -> None:
    """Draw publications, given as task, time and seconds."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2), facecolor="#ffffff", layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    by_task: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for task, at, seconds in points:
        by_task[task].append((at, seconds))
    for number, task in enumerate(sorted(by_task)):
        colour = _COLOURS[number % len(_COLOURS)]
        _spread(left, sorted(seconds for _, seconds in by_task[task]), task, colour)
        _over_time(right, by_task[task], colour)
    _finish(left, right, drawn=bool(points))
    # Without a date inside, the same history gives the same bytes.
    nothing = {"Date": None} if target.suffix.lower() == ".svg" else {"Software": None}
    try:
        figure.savefig(target, dpi=110, metadata=nothing)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}") from None


def _spread(axes: Any, ordered: list[float], task: str, colour: str) -> None:
    shares = [(number + 1) / len(ordered) for number in range(len(ordered))]
    axes.step(ordered, shares, where="post", color=colour, label=f"{task} ({len(ordered)})")


def _over_time(axes: Any, points: list[tuple[float, float]], colour: str) -> None:
    times = [datetime.fromtimestamp(at, UTC) for at, _ in points]
    axes.plot(times, [seconds for _, seconds in points], ".", color=colour, markersize=4)


def _finish(left: Any, right: Any, *, drawn: bool) -> None:
    left.set_title("share of publications done within", loc="left")
    left.axhline(_P99, color="#999999", linewidth=0.8, linestyle=":")
    left.set_xlabel("seconds")
    right.set_title("publish latency over time (UTC)", loc="left")
    right.set_ylabel("seconds")
    right.tick_params(axis="x", labelrotation=30)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    if drawn:
        left.set_xscale("log")
        right.set_yscale("log")
        left.legend(frameon=False, fontsize=8, loc="lower right")
    else:
        left.text(0.5, 0.5, "nothing was published", ha="center", transform=left.transAxes)
