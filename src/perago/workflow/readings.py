"""The expressions of a definition, and where they stand. Pure.

Definitions of any kind are read, and so loosely: what is wrong with one is said elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from perago.workflow.subworkflow import DEFINITION
from perago.workflow.tracing import reference, walk

_EXPRESSION = re.compile(r"(?<!\$)\$\{\s*([^{}]+?)\s*\}")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[['\"]?([^\]'\"]+)['\"]?\]")


@dataclass(frozen=True, slots=True)
class Reading:
    """One expression in what an engine fills in: a text elsewhere is only a text.

    ``step`` is the step that is given its value; None for the output of the workflow.
    """

    step: str | None
    shown: str
    path: list[str]

    @property
    def place(self) -> str:
        """Say where it stands."""
        return "outputParameters" if self.step is None else f"step {self.step!r}"


def readings(definition: Mapping[str, Any]) -> Iterator[Reading]:
    """List what the steps of a workflow read, and its output."""
    for task, _ in walk(definition.get("tasks")):
        for shown, path in expressions_of(task.get("inputParameters")):
            yield Reading(reference(task), shown, path)
    for shown, path in expressions_of(definition.get("outputParameters")):
        yield Reading(None, shown, path)


def expressions_of(value: object) -> Iterator[tuple[str, list[str]]]:
    """List the expressions in any part of a definition: the text and the path of each."""
    if isinstance(value, str):
        for found in _EXPRESSION.finditer(value):
            yield found[0], [name or key for name, key in _STEP.findall(found[1])]
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if key != DEFINITION:  # A workflow that is called has names of its own.
                yield from expressions_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from expressions_of(inner)
