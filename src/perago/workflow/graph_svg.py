"""A workflow as an SVG picture, laid out in boxes: each has its way in at the top, out below.

The picture stands alone. Its parts have classes, so that a page that it is part of can dress it in
its own colours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from perago.workflow.graph import Graph, GraphBranch, Node, cells, cut

_LETTER, _LINE, _PAD, _GAP, _MARGIN = 7.3, 17.0, 12.0, 26.0, 16.0
_LONGEST: Final = 44
_INK, _FAINT, _PAPER, _FORK, _CHOICE = "#23323d", "#5c6f7b", "#ffffff", "#e8f1f6", "#fdf0e2"
_FILL: Final = {"FORK_JOIN": _FORK, "JOIN": _FORK, "SWITCH": _CHOICE, "DO_WHILE": _CHOICE}


@dataclass(frozen=True, slots=True)
class _Box:
    """A drawing of a known size; nothing follows behind a box that ends."""

    width: float
    height: float
    marks: tuple[str, ...]
    ends: bool = False

    def at(self, x: float, y: float) -> str:
        return f'<g transform="translate({x:.1f} {y:.1f})">{"".join(self.marks)}</g>'


@dataclass(frozen=True, slots=True)
class StepLook:
    """What a page adds to a step: a class, a line below its name, where a click on it leads."""

    kind: str = ""
    says: str = ""
    link: str = ""


_PLAIN: Final = StepLook()
Looks = Mapping[str, StepLook]


def svg_of(graph: Graph, looks: Looks | None = None) -> str:
    """Draw the workflow from top to bottom; steps that only read have a dashed border."""
    looks = looks or {}
    title = _frame(Node(graph.name, "", "", "", "", "workflow"), 18, {})
    body = _stack([title, *(_step(node, looks) for node in graph.nodes)])
    width, height = body.width + 2 * _MARGIN, body.height + 2 * _MARGIN
    linked = any(look.link for look in looks.values())  # An image has nothing to click on inside.
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="{"group" if linked else "img"}" '
        'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12">\n'
        f"<title>{escape(graph.name)}</title>\n"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path class="tip" d="M0 0 8 4 0 8z" fill="{_FAINT}"/>'
        "</marker>"
        "</defs>\n"
        f'<rect class="paper" width="100%" height="100%" fill="{_PAPER}"/>\n'
        f"{body.at(_MARGIN, _MARGIN)}\n</svg>\n"
    )


def _step(node: Node, looks: Looks) -> _Box:
    frame = _frame(node, 4, looks)
    if not node.lanes:
        return _Box(frame.width, frame.height, frame.marks, node.ends)
    return _stack([frame, _beside([_lane(lane, looks) for lane in node.lanes])], arrows=False)


def _frame(node: Node, radius: int, looks: Looks) -> _Box:
    """Draw one step: its name, and below it what it is."""
    look = looks.get(node.reference, _PLAIN)
    whole = [text for text in (node.reference, node.caption, look.says) if text]
    texts = [cut(text, _LONGEST) for text in whole]
    width = max(cells(text) for text in texts) * _LETTER + 2 * _PAD
    height = len(texts) * _LINE + _PAD
    dashes = ' stroke-dasharray="5 4"' if node.mark == "read-only" else ""
    lines = "".join(
        f'<text x="{width / 2:.1f}" y="{_LINE * (row + 1):.1f}" text-anchor="middle" '
        f'class="{"faint" if row else "ink"}" fill="{_FAINT if row else _INK}">'
        f"{escape(text)}</text>"
        for row, text in enumerate(texts)
    )
    shape = "choice" if _FILL.get(node.kind) == _CHOICE else "fork" if node.kind in _FILL else ""
    names = " ".join(filter(None, ("step", shape, look.kind)))
    drawn = (
        f'<g class="{names}"><title>{escape("  ".join(whole))}</title><rect width="{width:.1f}" '
        f'height="{height:.1f}" rx="{radius}" fill="{_FILL.get(node.kind, _PAPER)}" '
        f'stroke="{_INK}"{dashes}/>{lines}</g>'
    )
    if look.link:
        drawn = f'<a href="{escape(look.link)}">{drawn}</a>'
    return _Box(width, height, (drawn,))


def _lane(lane: GraphBranch, looks: Looks) -> _Box:
    """Draw the steps of a lane; its label stands above them, to the right of the line."""
    steps = (
        _stack([_step(node, looks) for node in lane.nodes])
        if lane.nodes
        else _Box(0, _LINE, (_line(0, 0, _LINE),))
    )
    if not lane.label:
        return steps
    label = cut(lane.label, _LONGEST)
    middle = max(steps.width / 2, cells(label) * _LETTER + _PAD)
    text = (
        f'<text x="{middle + _PAD / 2:.1f}" y="{_LINE - 5:.1f}" class="faint" fill="{_FAINT}">'
        f"{escape(label)}</text>"
    )
    marks = (text, _line(middle, 0, _LINE), steps.at(middle - steps.width / 2, _LINE))
    return _Box(2 * middle, steps.height + _LINE, marks, steps.ends)


def _stack(boxes: Sequence[_Box], *, arrows: bool = True) -> _Box:
    """Put boxes below each other, with arrows from one to the next."""
    width = max(box.width for box in boxes)
    gap = _GAP if arrows else 0.0
    marks, y, before = [], 0.0, None
    for box in boxes:
        if before is not None:
            if arrows and not before.ends:
                marks.append(_line(width / 2, y, y + gap, tip=True))
            y += gap
        marks.append(box.at((width - box.width) / 2, y))
        y, before = y + box.height, box
    return _Box(width, y, tuple(marks), boxes[-1].ends)


def _beside(lanes: Sequence[_Box]) -> _Box:
    """Put lanes beside each other, between a line that parts and one that joins."""
    width = sum(lane.width for lane in lanes) + _GAP * (len(lanes) - 1)
    tallest = max(lane.height for lane in lanes)
    bottom = _GAP + tallest + _GAP / 2
    marks, x = [_line(width / 2, 0, _GAP / 2)], 0.0
    middles: list[float] = []
    out: list[float] = []
    for lane in lanes:
        middle = x + lane.width / 2
        middles.append(middle)
        marks += [_line(middle, _GAP / 2, _GAP), lane.at(x, _GAP)]
        if not lane.ends:
            out.append(middle)
            marks.append(_line(middle, _GAP + lane.height, bottom))
        x += lane.width + _GAP
    marks.append(_across(middles, width / 2, _GAP / 2))
    if out:
        marks.append(_across(out, width / 2, bottom))
    return _Box(width, bottom, tuple(marks), not out)


def _line(x: float, top: float, bottom: float, *, tip: bool = False) -> str:
    return _edge(f"M{x:.1f} {top:.1f}V{bottom:.1f}", ' marker-end="url(#tip)"' if tip else "")


def _across(middles: Sequence[float], centre: float, y: float) -> str:
    left, right = min([*middles, centre]), max([*middles, centre])
    return _edge(f"M{left:.1f} {y:.1f}H{right:.1f}")


def _edge(path: str, more: str = "") -> str:
    return f'<path class="edge" d="{path}" stroke="{_FAINT}" fill="none"{more}/>'
