"""A workflow that runs tasks one after the other, written from their declarations. Pure.

Each task reads what the last writer before it published, so the result passes W9a as it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

Workspace = Literal["none", "reads", "writes"]
WORKSPACE_INPUT: Final = "workspace"
_RESERVED: Final = ("workflow", "CPEWF_TASK_ID")
_NOT_IN_A_NAME = re.compile(r"\W+")
_NO_STEP = re.compile(r"""[\s.\[\]'"*?@$(){},:]""")


@dataclass(frozen=True, slots=True)
class Param:
    """One key of a task's params: how it is declared, and its default where it has one."""

    key: str
    declared: str
    """Params of several tasks that are equal in all of this are fed by one workflow input."""
    required: bool
    default: Any = None


@dataclass(frozen=True, slots=True)
class ScaffoldTask:
    """A task as far as a workflow has to know it."""

    task: str
    workspace: Workspace
    params: tuple[Param, ...] = ()


@dataclass(frozen=True, slots=True)
class Scaffold:
    """The definition, and the inputs that a run has to be given."""

    definition: dict[str, Any]
    required: tuple[str, ...]


def scaffold(name: str, owner_email: str, parts: Sequence[ScaffoldTask]) -> Scaffold:
    """Chain tasks in the given order; their params become inputs of the workflow."""
    references = _references(parts)
    inputs = _inputs(parts, references)
    last = "${workflow.input.workspace}"
    steps: list[dict[str, Any]] = []
    outputs: dict[str, Any] = {}
    for index, part in enumerate(parts):
        reference = references[index]
        given: dict[str, Any] = {} if part.workspace == "none" else {"workspace": last}
        given["params"] = {
            param.key: f"${{workflow.input.{inputs[index, param.key]}}}" for param in part.params
        }
        if part.workspace == "writes":
            last = f"${{{reference}.output.workspace}}"
            outputs["workspace"] = last
        steps.append(_step(part.task, reference, given))
    outputs |= {reference: f"${{{reference}.output.result}}" for reference in references}
    used = {
        inputs[index, param.key]: param for index, part in enumerate(parts) for param in part.params
    }
    files = any(part.workspace != "none" for part in parts)
    definition = {
        "name": name,
        "version": 1,
        "schemaVersion": 2,
        "ownerEmail": owner_email,
        "inputParameters": [*([WORKSPACE_INPUT] if files else []), *used],
        "inputTemplate": {key: param.default for key, param in used.items() if not param.required},
        "tasks": steps,
        "outputParameters": outputs,
    }
    return Scaffold(definition, tuple(key for key, param in used.items() if param.required))


def _step(task: str, reference: str, given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": task,
        "taskReferenceName": reference,
        "type": "SIMPLE",
        "inputParameters": given,
    }


def reference_name(task: str) -> str:
    """Name a step after its task; a name that no expression can hold is written in one that can."""
    if task not in _RESERVED and not _NO_STEP.search(task):
        return task
    return _free(_word(task, "step"), _RESERVED)


def _references(parts: Iterable[ScaffoldTask]) -> list[str]:
    """Name the steps after their tasks, in characters that an expression can hold.

    The output of the workflow has its workspace beside the results, so no step is called that.
    """
    found: list[str] = []
    for part in parts:
        found.append(_free(_word(part.task, "step"), {*found, *_RESERVED, WORKSPACE_INPUT}))
    return found


def _inputs(parts: Sequence[ScaffoldTask], references: Sequence[str]) -> dict[tuple[int, str], str]:
    """Name the input behind each param: by its key alone where all tasks declare it alike."""
    declared: dict[str, list[Param]] = {}
    for param in (param for part in parts for param in part.params):
        ways = declared.setdefault(_word(param.key, "param"), [])
        if param not in ways:
            ways.append(param)
    shared = {key for key, ways in declared.items() if len(ways) == 1} - {WORKSPACE_INPUT}
    taken = {*shared, WORKSPACE_INPUT}
    found: dict[tuple[int, str], str] = {}
    for index, part in enumerate(parts):
        for param in part.params:
            key = _word(param.key, "param")
            if key not in shared:
                key = _free(f"{references[index]}_{key}", taken)
                taken.add(key)
            found[index, param.key] = key
    return found


def _word(text: str, otherwise: str) -> str:
    return _NOT_IN_A_NAME.sub("_", text).strip("_") or otherwise


def _free(wanted: str, taken: Collection[str]) -> str:
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name
