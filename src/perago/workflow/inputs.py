"""Names that do not fit: input of a workflow, input of a step, fields of params and results. Pure.

Conductor takes a name that nothing declares for null, so a misspelt one shows up as a wrong result.
Here it is refused before the first step. Only names are compared; values are the tasks' business.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from perago.errors import UsageError, WorkflowDefinitionError
from perago.workflow.nulls import warn_of_nulls
from perago.workflow.readings import expressions_of, readings
from perago.workflow.spelling import close_to
from perago.workflow.subworkflow import CHILD_ID, definition_in
from perago.workflow.tasks import WORK, TaskKind
from perago.workflow.tracing import Task, reference, walk

WORKSPACE = "workspace"
_OUTPUTS = ("result", WORKSPACE)


@dataclass(frozen=True, slots=True)
class TaskShape:
    """The names that a task takes and gives.

    ``required`` has, for each field without a default, the names by which it can be given.
    ``params`` or ``results`` is None where a model takes or gives names that it does not declare.
    """

    workspace: bool
    params: frozenset[str] | None
    required: tuple[frozenset[str], ...]
    unknown_params: Literal["refuse", "warn"]
    results: frozenset[str] | None
    human: bool = False

    @property
    def kind(self) -> TaskKind:
        """Return the type that a step of it has."""
        return TaskKind.HUMAN if self.human else TaskKind.SIMPLE

    @property
    def outputs(self) -> tuple[str, ...]:
        """Return the names in the output of a step."""
        return (*_OUTPUTS, "person") if self.human else _OUTPUTS


def check_names(
    definition: Mapping[str, Any],
    shapes: Mapping[str, TaskShape],
    source: str,
    given: Mapping[str, object] | None = None,
) -> list[str]:
    """Refuse names that do not fit; return warnings of params that are ignored, and of nulls.

    ``shapes`` are those of the tasks by name; ``given`` is the input of a run, None before there
    is one. The workspace of a run is always known.
    """
    names = _Names(definition, shapes, source, given)
    names.check_given()
    names.check_references()
    warnings = [text for task in names.steps() for text in names.step(task)]
    called = [text for task, child in names.calls() for text in names.call(task, child)]
    return [*warnings, *called, *warn_of_nulls(definition, source)]


@dataclass(frozen=True, slots=True)
class _Names:
    definition: Mapping[str, Any]
    shapes: Mapping[str, TaskShape]
    source: str
    given: Mapping[str, object] | None

    def steps(self) -> Iterator[Task]:
        """List the steps whose task is known here."""
        for task, _ in walk(self.definition.get("tasks")):
            name = task.get("name")
            known = isinstance(name, str) and name in self.shapes
            if known and (kind := task.get("type", TaskKind.SIMPLE)) in WORK:
                self._check_kind(task, str(kind))
                yield task

    def calls(self) -> Iterator[tuple[Task, Mapping[str, Any]]]:
        """List the steps that call a workflow which is known here, with its definition."""
        for task, _ in walk(self.definition.get("tasks")):
            if child := definition_in(task):
                yield task, child

    def call(self, task: Task, child: Mapping[str, Any]) -> list[str]:
        """Look at a workflow that is called with what the step gives to it."""
        given = _mapping(task.get("inputParameters"))
        source = f"{self.source}: step {reference(task)!r}: workflow {child.get('name')!r}"
        read = [path for _, path in expressions_of(child.get("tasks"))]
        template = _mapping(child.get("inputTemplate"))
        if ["workflow", "input", WORKSPACE] in [path[:3] for path in read] and WORKSPACE not in {
            *given,
            *template,
        }:
            raise WorkflowDefinitionError(
                f"{source} works on a workspace, and is given none",
                remedy=f'give the step "{WORKSPACE}": "${{workflow.input.{WORKSPACE}}}"',
            )
        return check_names(child, self.shapes, source, given)

    def _check_kind(self, task: Task, kind: str) -> None:
        """Refuse a step that nobody would ever do: workers take no HUMAN, people nothing else."""
        wanted = self.shapes[str(task["name"])].kind
        if kind != wanted:
            who = "a person" if wanted is TaskKind.HUMAN else "a worker"
            raise WorkflowDefinitionError(
                f"{self.source}: step {reference(task)!r} is of type {kind}, but the task"
                f" {task['name']!r} is done by {who}",
                remedy=f'write "type": "{wanted}"',
            )

    # --- the input of the workflow ---------------------------------------------------------------

    def declared(self) -> frozenset[str]:
        """Return the names that the workflow says its input has."""
        names = self.definition.get("inputParameters")
        template = self.definition.get("inputTemplate")
        listed = names if isinstance(names, list) else []
        return frozenset(map(str, [*listed, *_mapping(template)]))

    def check_given(self) -> None:
        """Refuse input that the workflow neither declares nor uses."""
        found = (path for _, path in expressions_of(self.definition))
        paths = [path for path in found if path[:1] == ["workflow"]]
        if self.given is None or ["workflow", "input"] in paths:
            return
        used = {path[2] for path in paths if path[1:2] == ["input"]}
        known = self.declared() | used | {WORKSPACE}
        for name in self.given:
            if name not in known:
                raise UsageError(
                    f"{self.source} has no input {name!r}",
                    remedy=close_to(name, known - {WORKSPACE}),
                )

    def check_references(self) -> None:
        """Refuse expressions that read input or results which do not exist."""
        declared = self.declared()
        known = declared | {WORKSPACE} | set(self.given or ())
        told = bool(declared) or self.given is not None
        for read in readings(self.definition):
            place, shown, path = read.place, read.shown, read.path
            if path[:2] == ["workflow", "input"] and len(path) > 2:  # noqa: PLR2004 - and a name
                if told and path[2] not in known:
                    lacks = "not declared" if self.given is None else "neither declared nor given"
                    raise self._refuse(
                        place,
                        f"{shown} reads input that is {lacks}",
                        path[2],
                        known,
                        f"add {path[2]!r} to inputParameters or inputTemplate",
                    )
            elif path[1:2] == ["output"]:
                self._output(place, shown, path)

    def _output(self, place: str, shown: str, path: list[str]) -> None:
        shape = next(
            (self.shapes[str(task["name"])] for task in self.steps() if reference(task) == path[0]),
            None,
        )
        if shape is None:
            self._output_of_call(place, shown, path)
            return
        rest = path[2:]
        if rest and rest[0] not in shape.outputs:
            raise self._refuse(
                place, f"{shown}: the output has no {rest[0]!r}", rest[0], shape.outputs
            )
        fields = shape.results
        if rest[:1] == ["result"] and rest[1:] and fields is not None and rest[1] not in fields:
            raise self._refuse(
                place, f"{shown}: the result has no field {rest[1]!r}", rest[1], fields
            )

    def _output_of_call(self, place: str, shown: str, path: list[str]) -> None:
        child = next((child for task, child in self.calls() if reference(task) == path[0]), {})
        outputs = _mapping(child.get("outputParameters"))
        ends = any(task.get("type") == "TERMINATE" for task, _ in walk(child.get("tasks")))
        if path[2:] and outputs and not ends and path[2] not in {*outputs, CHILD_ID}:
            raise self._refuse(
                place,
                f"{shown}: workflow {child.get('name')!r} gives no {path[2]!r}",
                path[2],
                outputs,
            )

    # --- the input of one step -------------------------------------------------------------------

    def step(self, task: Task) -> list[str]:
        """Refuse a step with missing or unknown keys; return warnings about its params."""
        shape, place = self.shapes[str(task["name"])], f"step {reference(task)!r}"
        given = _mapping(task.get("inputParameters"))
        wanted = {"params", WORKSPACE} if shape.workspace else {"params"}
        for name in map(str, given):
            if name not in wanted:
                raise self._refuse(
                    place, f"inputParameters has the unknown key {name!r}", name, wanted
                )
        if missing := sorted(wanted - set(given)):
            raise WorkflowDefinitionError(
                f"{self.source}: {place}: inputParameters lacks {missing[0]!r}",
                remedy=f"add it; the task {task['name']!r} takes {' and '.join(sorted(wanted))}",
            )
        params = self._known(given["params"])
        return [] if params is None or shape.params is None else self._params(task, shape, params)

    def _params(self, task: Task, shape: TaskShape, params: Mapping[str, object]) -> list[str]:
        place, known = f"step {reference(task)!r}", shape.params or frozenset()
        warnings = []
        for name in map(str, params):
            if name in known:
                continue
            problem = f"params of task {task['name']!r} have no field {name!r}"
            if shape.unknown_params == "refuse":
                raise self._refuse(place, problem, name, known)
            warnings.append(
                f"{self.source}: {place}: {problem}, it is ignored; {close_to(name, known)}"
            )
        for names in shape.required:
            if not names & set(params):
                field = min(names)
                near = f"; {warnings[0].rpartition('; ')[2]}" if warnings else ""
                raise WorkflowDefinitionError(
                    f"{self.source}: {place}: params of task {task['name']!r} lack {field!r}",
                    remedy=f"add it{near}",
                )
        return warnings

    def _known(self, value: object) -> Mapping[str, object] | None:
        """Return the params of a step where the definition or the given input has them."""
        if isinstance(value, str) and self.given is not None:
            path = next((path for _, path in expressions_of(value)), [])
            started = {**_mapping(self.definition.get("inputTemplate")), **self.given}
            if path[:2] == ["workflow", "input"] and len(path) == 3:  # noqa: PLR2004 - and a name
                value = started.get(path[2])
        return value if isinstance(value, Mapping) else None

    def _refuse(
        self, place: str, problem: str, name: str, known: Collection[str], otherwise: str = ""
    ) -> WorkflowDefinitionError:
        remedy = close_to(name, known)
        if otherwise:
            remedy = f"{remedy} {otherwise}" if remedy.endswith("?") else otherwise
        return WorkflowDefinitionError(f"{self.source}: {place}: {problem}", remedy=remedy)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
