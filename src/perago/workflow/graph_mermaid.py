"""A workflow as a Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from perago.workflow.graph import Graph, Node

_SHAPES = {"FORK_JOIN": ("[[", "]]"), "JOIN": ("[[", "]]"), "SWITCH": ("{", "}")}
Open = tuple[str, str]
"""A node that the next one follows, and what the arrow says."""


def mermaid_of(graph: Graph) -> str:
    """Draw the workflow from top to bottom; steps that only read have a dashed border."""
    drawing = _Drawing()
    start = drawing.node(_quoted(graph.name), ("([", "])"))
    drawing.sequence(graph.nodes, [(start, "")])
    if drawing.read_only:
        drawing.lines.append("  classDef readonly stroke-dasharray: 5 4")
        drawing.lines.append(f"  class {','.join(drawing.read_only)} readonly")
    return "\n".join(["flowchart TD", *drawing.lines]) + "\n"


@dataclass(frozen=True, slots=True)
class _Drawing:
    lines: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    read_only: list[str] = field(default_factory=list)

    def node(self, label: str, shape: tuple[str, str] = ("[", "]")) -> str:
        """Add a node under a name of our own: those of steps may be words of Mermaid."""
        name = f"n{len(self.names)}"
        self.names.append(name)
        self.lines.append(f"  {name}{shape[0]}{label}{shape[1]}")
        return name

    def sequence(self, nodes: Sequence[Node], open_ends: list[Open]) -> list[Open]:
        """Add steps one after the other; return the ends that the next step follows."""
        for node in nodes:
            open_ends = self._step(node, open_ends)
        return open_ends

    def _step(self, node: Node, before: list[Open]) -> list[Open]:
        name = self.node(_quoted(node.reference, node.caption), _SHAPES.get(node.kind, ("[", "]")))
        if node.mark == "read-only":
            self.read_only.append(name)
        for end in before:
            self._arrow(end, name)
        if node.ends:
            return []
        if not node.lanes:
            return [(name, "")]
        ends = [
            end for lane in node.lanes for end in self.sequence(lane.nodes, [(name, lane.label)])
        ]
        if node.kind != "DO_WHILE":
            return ends
        for last, _ in ends:
            self._arrow((last, "again"), name)
        return [(name, "")]

    def _arrow(self, end: Open, name: str) -> None:
        label = f"|{_quoted(end[1])}|" if end[1] else ""
        self.lines.append(f"  {end[0]} -->{label} {name}")


def _quoted(*texts: str) -> str:
    """Write a label whose every sign is a code: Mermaid reads HTML, Markdown and its own words."""
    return f'"{"<br/>".join(map(_coded, filter(None, texts)))}"'


def _coded(text: str) -> str:
    return "".join(c if c.isalnum() or c in " _" else f"#{ord(c)};" for c in text)
