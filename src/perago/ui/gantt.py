"""The attempts of a run along the time, with their phases, as an SVG picture. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup, escape

from perago.protocol.printable import printable
from perago.workflow.graph import cut

_WIDTH, _LABEL, _ROW, _BAR, _TOP = 1000.0, 220.0, 26.0, 16.0, 24.0
_LONGEST: Final = 28
_TICKS: Final = 6
_THINNEST: Final = 2.0


@dataclass(frozen=True, slots=True)
class GanttPart:
    """A part of an attempt: one phase."""

    name: str
    began: float
    ended: float


@dataclass(frozen=True, slots=True)
class GanttBar:
    """One attempt; ``ended`` is now for one that goes on."""

    label: str
    kind: str
    """The class of its status."""
    says: str
    began: float
    ended: float
    link: str = ""
    parts: Sequence[GanttPart] = ()


def gantt(bars: Sequence[GanttBar]) -> Markup:
    """Draw bars below each other; the words of the picture are in its elements, for all readers."""
    if not bars:
        return Markup("")
    first = min(bar.began for bar in bars)
    span = max(max(_end(bar) for bar in bars) - first, 1e-3)
    height = _TOP + _ROW * len(bars) + 4
    scale = (_WIDTH - _LABEL - 8) / span
    marks = [_tick(second, scale, height) for second in ticks(span)]
    marks += [_row(index, bar, first, scale) for index, bar in enumerate(bars)]
    return Markup(
        '<svg class="gantt" viewBox="0 0 {:.0f} {:.0f}" role="group" aria-label="{}">{}</svg>'
    ).format(_WIDTH, height, f"{len(bars)} attempts along the time", Markup("").join(marks))


def _end(bar: GanttBar) -> float:
    """Return where a bar ends: what is tidied up behind the report belongs to the attempt."""
    return max([bar.ended, *(part.ended for part in bar.parts)])


def ticks(span: float) -> list[float]:
    """Choose round seconds for the marks of an axis; from 0 on, few enough to be read."""
    rough = span / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    return [step * number for number in range(int(span / step) + 1)]


def _tick(second: float, scale: float, height: float) -> Markup:
    x = _LABEL + second * scale
    return Markup(
        '<path class="grid" d="M{:.1f} {:.0f}V{:.0f}"/><text class="faint" x="{:.1f}" y="14">{}'
        "</text>"
    ).format(x, _TOP - 6, height, x + 2, f"{second:g} s")


def _row(index: int, bar: GanttBar, first: float, scale: float) -> Markup:
    y = _TOP + _ROW * index
    left = _LABEL + (bar.began - first) * scale
    width = max((_end(bar) - bar.began) * scale, _THINNEST)
    label = printable(bar.label)
    parts = Markup("").join(_part(part, first, scale, y) for part in bar.parts)
    drawn = Markup(
        '<g class="bar {}"><title>{}</title><text class="ink" x="0" y="{:.1f}">{}</text>'
        '<rect class="whole" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.0f}" rx="2"/>{}</g>'
    ).format(
        bar.kind,
        printable(f"{bar.label}: {bar.says}"),
        y + _BAR - 3,
        cut(label, _LONGEST),
        left,
        y,
        width,
        _BAR,
        parts,
    )
    return Markup('<a href="{}">{}</a>').format(bar.link, drawn) if bar.link else drawn


def _part(part: GanttPart, first: float, scale: float, y: float) -> Markup:
    left = _LABEL + (part.began - first) * scale
    width = max((part.ended - part.began) * scale, 0.5)
    return Markup(
        '<rect class="part {}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.0f}">'
        "<title>{}</title></rect>"
    ).format(
        "body" if part.name == "body" else "around",
        left,
        y + 4,
        width,
        _BAR - 8,
        escape(printable(f"{part.name}: {part.ended - part.began:.3f} s")),
    )
