"""A task as the runtime knows it, whatever it was declared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from perago.errors import ResultError, TaskDefinitionError, TaskParamsError
from perago.protocol import plain
from perago.protocol.budget import Budget, response_warning
from perago.tasks.bodies import Body, ProgramBody
from perago.tasks.schemas import Schema, SchemaError
from perago.tasks.spec import MetricSpec, SparkSpec, TaskControls, WorkspaceSpec


@dataclass(frozen=True, slots=True)
class TaskDefinition:
    """All the runtime knows of a task; the workspace comes from here, never from input (T2)."""

    name: str
    owner_email: str
    description: str | None
    workspace: WorkspaceSpec | None
    metrics: MetricSpec
    controls: TaskControls
    body: Body
    params: Schema
    result: Schema
    spark: SparkSpec | None = None

    @property
    def writable(self) -> bool:
        """Return whether the task may publish."""
        return self.workspace is not None and not self.workspace.read_only

    @property
    def direct(self) -> bool:
        """Return whether the task wants its workspace where it is stored (X2)."""
        return self.spark is not None and self.spark.need.direct

    @property
    def budget(self) -> Budget:
        """Return the author's publish budget, or the defaults that bound every call."""
        given = self.controls.publish_budget
        return given.budget if given else Budget()

    def warnings(self) -> list[str]:
        """List what is allowed but probably not meant."""
        found: list[str] = []
        if isinstance(self.body, ProgramBody) and (program := self.body.missing):
            found.append(f"task {self.name!r}: the program {program!r} is not on this machine")
        if self.controls.publish_budget:
            if not self.writable:
                found.append(f"task {self.name!r}: publish_budget is ignored, it is read-only")
            elif text := response_warning(self.budget, self.controls.timeout.response_seconds):
                found.append(f"task {self.name!r}: {text}")
        return found

    def parse_params(self, raw: Mapping[str, object]) -> Any:
        """Make the params; the values themselves never enter the error text (V8)."""
        try:
            return self.params.parse(raw)
        except SchemaError as error:
            raise TaskParamsError(
                f"params of task {self.name!r} do not fit {self.params.name}: {error}",
                remedy="correct them in the workflow input",
            ) from None

    def dump_result(self, value: object) -> dict[str, Any]:
        """Check the returned value and turn it into JSON."""
        try:
            accepted = self.result.accept(value)
        except SchemaError as error:
            raise ResultError(
                f"task {self.name!r} returned {type(value).__name__}, "
                f"not {self.result.name}: {error}",
                remedy=self.result.remedy,
            ) from None
        dumped: dict[str, Any] = {}
        try:
            dumped = self.result.dump(accepted)
            # What no engine can read would never complete.
            problem = plain.refuse(dumped, sent=True)
        except (ValueError, RecursionError):
            problem = "is not as it declares"
        if problem:
            raise ResultError(
                f"task {self.name!r} returned a result that is not JSON: it {problem}",
                remedy="assign to each field what its type says, and neither NaN nor infinity",
            ) from None
        return dumped


def check_texts(name: object, owner_email: object, description: object) -> None:
    """Refuse texts that no engine or no person could use."""
    if (
        not isinstance(name, str)
        or not name
        or name != name.strip()
        or not name.isprintable()
        or ":" in name
    ):
        remedy = "use a printable name without ':' or outer blanks"
        raise _wrong("name", f"@task(name={name!r})", f"{name!r} cannot be a name", remedy)
    where = f"task {name!r}: "
    if not isinstance(owner_email, str) or "@" not in owner_email.strip("@ "):
        problem = f"owner_email={owner_email!r} is not an address"
        raise _wrong("owner_email", where + problem, problem, "give one such as 'team@example.com'")
    if description is not None and not isinstance(description, str):
        problem = f"description is of type {type(description).__name__}"
        remedy = "give a text, or leave it out and write a docstring"
        raise _wrong("description", where + problem, "it is not a text", remedy)


def _wrong(argument: str, message: str, problem: str, remedy: str) -> TaskDefinitionError:
    found = TaskDefinitionError(message, remedy=remedy)
    found.argument, found.problem = argument, problem
    return found
