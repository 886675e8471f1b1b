"""A workflow as a picture shows it: steps in order, lanes inside of steps. Pure.

Everything a picture writes comes from here and is printable, on one line; each format escapes it
for itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final
from unicodedata import east_asian_width

from perago.protocol.printable import printable
from perago.workflow.subworkflow import KIND, called_by, definition_in
from perago.workflow.tasks import WORK, TaskKind
from perago.workflow.tracing import Task, inner, reference, whole

ENDS: Final = "TERMINATE"
_TOGETHER, _ONE_OF, _AGAIN = "side by side", "one of", "again and again"
_LANES: Final = {"FORK_JOIN": _TOGETHER, "SWITCH": _ONE_OF, "DO_WHILE": _AGAIN}
_MORE: Final = "…"


@dataclass(frozen=True, slots=True)
class GraphBranch:
    """Steps inside of a step: a branch of a fork, a case of a switch, the body of a loop."""

    label: str
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """One step."""

    reference: str
    task: str
    kind: str
    mark: str
    """What it does to its workspace, where the task is known: ``publishes`` or ``read-only``."""
    reads: str
    """The step whose workspace it is given, or ``input`` or ``variables``; empty without one."""
    says: str
    lanes: tuple[GraphBranch, ...] = ()

    @property
    def caption(self) -> str:
        """Return what the step is, beside its name."""
        task = self.task if self.kind in WORK and self.task != self.reference else ""
        return "  ".join(filter(None, (task, self.says, self.mark)))

    @property
    def ends(self) -> bool:
        """Return whether the workflow goes no further behind it."""
        return self.kind == ENDS


@dataclass(frozen=True, slots=True)
class Graph:
    """A whole workflow."""

    name: str
    nodes: tuple[Node, ...]


def graph_of(
    definition: Mapping[str, Any], writers: Collection[str] = (), readers: Collection[str] = ()
) -> Graph:
    """Read a WorkflowDef, those kinds of step too that only a server runs."""
    marks = {**dict.fromkeys(writers, "publishes"), **dict.fromkeys(readers, "read-only")}
    return Graph(printable(definition.get("name")), _nodes(definition.get("tasks"), marks))


def cells(text: str) -> int:
    """Count the columns that a text takes on a terminal."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def cut(text: str, limit: int) -> str:
    """Shorten a text to a number of columns."""
    if cells(text) <= limit:
        return text
    while cells(text) >= limit:
        text = text[:-1]
    return text + _MORE


def _nodes(tasks: object, marks: Mapping[str, str]) -> tuple[Node, ...]:
    found = tasks if isinstance(tasks, list) else []
    return tuple(_node(task, marks) for task in found if isinstance(task, Mapping))


def _node(task: Task, marks: Mapping[str, str]) -> Node:
    kind = str(task.get("type") or "SIMPLE")
    work = kind in WORK
    return Node(
        reference=printable(reference(task)),
        task=printable(task.get("name")),
        kind=printable(kind),
        mark=marks.get(str(task.get("name")), "") if work else "",
        reads=_reads(task) if work else "",
        says=printable(_says(task, kind)),
        lanes=_lanes(task, marks),
    )


def _says(task: Task, kind: str) -> str:
    if kind == TaskKind.SIMPLE:
        return ""
    if kind == TaskKind.HUMAN:
        return "done by a person"
    if kind == "JOIN":
        return f"JOIN  waits for {', '.join(map(str, inner(task, 'joinOn'))) or 'nothing'}"
    if kind == KIND and (called := called_by(task)):
        version = f" version {called[1]}" if called[1] else ""
        return f"{KIND}  runs {called[0]}{version}"
    if kind == "SWITCH":
        return f"SWITCH  one of, by {task.get('expression')}"
    return f"{kind}  {_LANES[kind]}" if kind in _LANES else kind


def _lanes(task: Task, marks: Mapping[str, str]) -> tuple[GraphBranch, ...]:
    if branches := inner(task, "forkTasks"):
        return tuple(GraphBranch("", _nodes(branch, marks)) for branch in branches)
    cases = task.get("decisionCases")
    chosen = cases if isinstance(cases, Mapping) else {}
    if chosen or inner(task, "defaultCase"):
        named = tuple(
            GraphBranch(printable(key), _nodes(steps, marks)) for key, steps in chosen.items()
        )
        return (*named, GraphBranch("otherwise", _nodes(task.get("defaultCase"), marks)))
    if child := definition_in(task):
        return (GraphBranch(printable(child.get("name")), _nodes(child.get("tasks"), marks)),)
    body = inner(task, "loopOver")
    return (GraphBranch("", _nodes(body, marks)),) if body else ()


def _reads(task: Task) -> str:
    given = task.get("inputParameters")
    workspace = given.get("workspace") if isinstance(given, Mapping) else None
    if isinstance(workspace, Mapping):
        workspace = workspace.get("ref")
    if not workspace:
        return ""
    root, *rest = (whole(workspace) or str(workspace)).split(".")
    return printable(rest[0] if root == "workflow" and rest else root)
