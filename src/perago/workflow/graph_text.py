"""A workflow as indented text, one step a line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from perago.workflow.graph import Graph, GraphBranch, Node, cells, cut
from perago.workflow.tasks import WORK

_WIDEST = 36


@dataclass(frozen=True, slots=True)
class Line:
    """A line in its parts, so that a terminal can tell them apart by colour."""

    frame: str
    name: str
    rest: str = ""
    mark: str = ""
    reads: str = ""

    def padded(self, width: int) -> Line:
        """Fill the name up, so that what follows stands in one column."""
        gap = " " * max(0, width - cells(self.frame) - cells(self.name))
        return Line(self.frame, self.name + gap, self.rest, self.mark, self.reads)

    def __str__(self) -> str:
        tail = filter(None, (self.rest, self.mark, self.reads))
        return "  ".join((self.frame + self.name, *tail)).rstrip()


def lines_of(graph: Graph) -> list[Line]:
    """Write the workflow, its name first."""
    found = list(_sequence(graph.nodes, "  "))
    width = min(max((cells(each.frame + each.name) for each in found), default=0), _WIDEST)
    return [Line("", graph.name), *(each.padded(width) for each in found)]


def _sequence(nodes: tuple[Node, ...], frame: str) -> Iterator[Line]:
    for node in nodes:
        # A loop comes back to its own beginning; everything else is read from top to bottom.
        task = node.task if node.kind in WORK and node.task != node.reference else ""
        reads = f"reads {cut(node.reads, _WIDEST)}" if node.reads else ""
        yield Line(frame, node.reference, task or node.says, node.mark, reads)
        for number, lane in enumerate(node.lanes, 1):
            yield from _lane(lane, number, frame, last=number == len(node.lanes))


def _lane(lane: GraphBranch, number: int, frame: str, *, last: bool) -> Iterator[Line]:
    yield Line(f"{frame}{'└' if last else '├'}─ ", lane.label or str(number))
    inside = f"{frame}{' ' if last else '│'}    "
    if lane.nodes:
        yield from _sequence(lane.nodes, inside)
    else:
        yield Line(inside, "nothing")
