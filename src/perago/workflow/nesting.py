"""A definition with its sub workflows unfolded into it, so that writers inside are seen (W9). Pure.

A step inside is called after the steps that lead to it: ``ingest/clean``. What it reads of its own
workflow's input is written as what the step that calls gives, and what others read of that step's
output as what the workflow inside gives. Whatever cannot be followed stays an expression that
nothing explains, so that the checks say that they cannot tell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from perago.workflow.subworkflow import KIND, Definition, definition_in
from perago.workflow.tracing import WITHIN, Task, changed, inner, reference, walk

_EXPRESSION = re.compile(r"\$\{\s*([^{}]+?)\s*\}")
_PLAIN = re.compile(r"[^\s.\[\]'\"{}]+(\.[^\s.\[\]'\"{}]+)*")
_WORK: Final = frozenset({"SIMPLE", "HUMAN"})


def unfolded(definition: Definition) -> Definition:
    """Put the tasks of sub workflows below the steps that call them, as far as they are known."""
    tasks = definition.get("tasks")
    if not isinstance(tasks, list) or all(task.get("type") != KIND for task, _ in walk(tasks)):
        return definition
    found = changed(tasks, _unfolded)
    outputs = _Outputs(
        {reference(task): _outputs(task) for task, _ in walk(found) if WITHIN in task},
        frozenset(reference(task) for task, _ in walk(found) if task.get("type") == "JOIN"),
    )
    return {
        **definition,
        "tasks": _rewritten(found, outputs.read),
        "outputParameters": _rewritten(definition.get("outputParameters"), outputs.read),
    }


def unknown_calls(definition: Definition) -> list[str]:
    """Name the steps that call a workflow which is not here, those inside of others too."""
    found = []
    for task, _ in walk(definition.get("tasks")):
        if task.get("type") != KIND:
            continue
        child = definition_in(task)
        if child is not None:
            found += [f"{reference(task)}/{name}" for name in unknown_calls(child)]
        else:
            found.append(reference(task))
    return found


def _unfolded(task: Task) -> Task:
    child = definition_in(task)
    if task.get("type") != KIND:
        return task
    # Its own name is not that of a task that writes.
    bare = {key: value for key, value in task.items() if key != "subWorkflowParam"} | {"name": ""}
    if child is None:
        return bare
    name, given = reference(task), task.get("inputParameters")
    deep = unfolded(child)
    template = child.get("inputTemplate")
    known = {**(template if isinstance(template, Mapping) else {})}
    known |= given if isinstance(given, Mapping) else {}

    def inside(path: str) -> object:
        return _from_outside(path, name, known)

    tasks = _rewritten(deep.get("tasks"), inside)
    return {
        **bare,
        WITHIN: _renamed(tasks, name),
        "gives": _rewritten(_given_by(deep), inside),
    }


def _given_by(child: Definition) -> Mapping[str, Any] | None:
    """Return what a workflow gives, as a template; None where its steps decide that."""
    tasks = [task for task, _ in walk(child.get("tasks"))]
    if any(task.get("type") == "TERMINATE" for task in tasks):
        return None
    outputs = child.get("outputParameters")
    if isinstance(outputs, Mapping) and outputs:
        return outputs
    last = tasks[-1] if tasks else {}
    if len(tasks) == len(inner(child, "tasks")) and last.get("type", "SIMPLE") in _WORK:
        return {key: f"${{{reference(last)}.output.{key}}}" for key in ("workspace", "result")}
    return None


def _outputs(task: Task) -> Mapping[str, Any]:
    gives = task.get("gives")
    return gives if isinstance(gives, Mapping) else {}


def _renamed(tasks: list[Any], prefix: str) -> list[Any]:
    """Name tasks, and those inside of them, after the step that calls their workflow."""

    def named(each: Task) -> Task:
        joined = {"joinOn": [f"{prefix}/{ref}" for ref in inner(each, "joinOn")]}
        below = {WITHIN: changed(inner(each, WITHIN), named)} if WITHIN in each else {}
        own = {"taskReferenceName": f"{prefix}/{reference(each)}"}
        return {**each, **own, **(joined if "joinOn" in each else {}), **below}

    return changed(tasks, named)


def _from_outside(path: str, prefix: str, given: Mapping[str, Any]) -> object:
    """Write an expression of a workflow inside as one of the workflow that calls it."""
    if path.startswith("workflow.input.") and _PLAIN.fullmatch(path):
        key, *rest = path.removeprefix("workflow.input.").split(".")
        if (found := _below(given.get(key), rest)) is not None:
            return found
    return f"${{{prefix}/{path}}}"


@dataclass(frozen=True, slots=True)
class _Outputs:
    """What the steps that call workflows give, by reference name."""

    outputs: Mapping[str, Mapping[str, Any]]
    joins: frozenset[str]

    def read(self, path: str) -> object:
        """Write what is read of a step that calls a workflow as what that workflow gives."""
        for _ in range(len(self.outputs) + 1):
            root, *rest = path.split(".")
            if (
                root in self.joins
                and rest[:1] == ["output"]
                and rest[1:2]
                and rest[1] in self.outputs
            ):
                root, rest = rest[1], ["output", *rest[2:]]
            if root not in self.outputs or rest[:1] != ["output"] or not rest[1:]:
                break
            found = _below(self.outputs[root].get(rest[1]), rest[2:])
            if found is None:
                break
            whole = _EXPRESSION.fullmatch(found.strip()) if isinstance(found, str) else None
            if whole is None:
                return found
            path = whole[1]  # It may hand on what another one gives.
        return f"${{{path}}}"


def _below(value: object, rest: list[str]) -> object:
    """Follow a path into a template; None where it leads nowhere that is written down."""
    for index, key in enumerate(rest):
        if isinstance(value, str) and (whole := _EXPRESSION.fullmatch(value.strip())):
            return f"${{{'.'.join([whole[1], *rest[index:]])}}}"
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _rewritten(value: Any, change: Callable[[str], object]) -> Any:
    """Replace the expressions in what an engine fills in."""
    if isinstance(value, str):
        if whole := _EXPRESSION.fullmatch(value.strip()):
            return change(whole[1])
        return _EXPRESSION.sub(lambda found: _as_text(change(found[1]), found[0]), value)
    if isinstance(value, Mapping):
        return {key: _rewritten(each, change) for key, each in value.items()}
    return [_rewritten(each, change) for each in value] if isinstance(value, list) else value


def _as_text(found: object, otherwise: str) -> str:
    return found if isinstance(found, str) else otherwise
