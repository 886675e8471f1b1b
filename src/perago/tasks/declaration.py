"""``@task``: a plain typed function becomes a task, or is refused at import (T1, T2)."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from pydantic import BaseModel

from perago.errors import TaskDefinitionError
from perago.protocol.data import DataGuard
from perago.protocol.guard import FileGuard
from perago.tasks.bodies import FunctionBody, Role
from perago.tasks.definition import TaskDefinition, check_texts
from perago.tasks.metrics import MetricRecorder
from perago.tasks.schemas import ModelSchema
from perago.tasks.spec import MetricSpec, SparkSpec, TaskControls, WorkspaceSpec, declared

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")
ATTRIBUTE = "__perago_task__"


def _with_arguments(declare: Callable[P, R]) -> Callable[P, R]:
    """Refuse what Python would answer with a word about positional arguments: a bare ``@task``."""

    @functools.wraps(declare)
    def checked(*misplaced: P.args, **given: P.kwargs) -> R:
        for value in misplaced:
            written = f"name={value!r}" if isinstance(value, str) else 'name="..."'
            raise TaskDefinitionError(
                f"@task above {getattr(value, '__name__', type(value).__name__)!r} has no arguments"
                if callable(value)
                else f"@task({value!r}) takes keyword arguments only",
                remedy=f'write @task({written}, owner_email="you@example.com")',
            )
        return declare(*misplaced, **given)

    return checked


@_with_arguments
def task(  # noqa: PLR0913 - the names are the author's interface
    *,
    name: str,
    owner_email: str,
    description: str | None = None,
    workspace: WorkspaceSpec | None = None,
    metrics: MetricSpec | None = None,
    controls: TaskControls | None = None,
    spark: SparkSpec | None = None,
    strict_params: bool = False,
) -> Callable[[F], F]:
    """Declare a task; the function stays an ordinary function."""
    check_texts(name, owner_email, description)
    declared(workspace, WorkspaceSpec, "workspace", name)
    declared(metrics, MetricSpec, "metrics", name)
    declared(controls, TaskControls, "controls", name)
    declared(spark, SparkSpec, "spark", name)
    if workspace is None and controls is not None and controls.publish_budget is not None:
        raise TaskDefinitionError(
            f"task {name!r}: publish_budget needs a workspace",
            remedy="add workspace=WorkspaceSpec(...) or drop the budget",
        )

    def declare(function: F) -> F:
        roles, params_model, result_model = _read_signature(
            name, function, has_workspace=workspace is not None
        )
        on_spark = _check_spark(name, roles, workspace, declared=spark is not None)
        if spark is not None and spark.need.direct:
            _check_direct(name, roles, workspace)
        definition = TaskDefinition(
            name=name,
            owner_email=owner_email,
            description=description or inspect.getdoc(function),
            workspace=workspace,
            metrics=metrics or MetricSpec(),
            controls=controls or TaskControls(),
            body=FunctionBody(function, roles),
            params=ModelSchema(params_model, strict=strict_params),
            result=ModelSchema(result_model),
            spark=(spark or SparkSpec()) if on_spark else None,
        )
        setattr(function, ATTRIBUTE, definition)
        return function

    return declare


def definition_of(function: object) -> TaskDefinition:
    """Return the declaration behind a decorated function."""
    found = getattr(function, ATTRIBUTE, None)
    if not isinstance(found, TaskDefinition):
        raise TaskDefinitionError(
            f"{getattr(function, '__name__', function)!r} is not a task",
            remedy="decorate it with @task(name=..., owner_email=...)",
        )
    return found


def _read_signature(
    name: str, function: Callable[..., Any], *, has_workspace: bool
) -> tuple[dict[str, Role], type[BaseModel], type[BaseModel]]:
    """Find the role of each parameter by its annotation, and the two models."""
    if not inspect.isfunction(function):
        raise TaskDefinitionError(
            f"task {name!r}: @task decorates a function, not {type(function).__name__}",
            remedy="put it directly above a def",
        )
    if (
        inspect.iscoroutinefunction(function)
        or inspect.isgeneratorfunction(function)
        or inspect.isasyncgenfunction(function)
    ):
        raise TaskDefinitionError(
            f"task {name!r}: {function.__name__} is async or a generator",
            remedy="write a plain def that returns its result",
        )
    hints = _hints(name, function)
    roles: dict[str, Role] = {}
    for parameter in inspect.signature(function).parameters.values():
        role = _role(name, parameter, hints.get(parameter.name))
        if role in roles.values():
            raise TaskDefinitionError(
                f"task {name!r}: parameter {parameter.name!r} is a second {role.value!r}",
                remedy="remove one of them",
            )
        roles[parameter.name] = role
    _check_roles(name, roles, has_workspace=has_workspace)
    params = next(hints[parameter] for parameter, role in roles.items() if role is Role.PARAMS)
    result = hints.get("return")
    if not _is_model(result):
        raise TaskDefinitionError(
            f"task {name!r}: the return annotation is {_show(result)}",
            remedy="annotate '-> R' with a pydantic model R",
        )
    return roles, params, result


def _hints(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    # An author may import Spark's names for type checkers only: PySpark is slow to import.
    spark = {key: kind for key, kind in _SPARK_NAMES.items() if key not in function.__globals__}
    try:
        return typing.get_type_hints(function, localns=spark)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise TaskDefinitionError(
            f"task {name!r}: an annotation of {function.__name__} cannot be read: {error}",
            remedy="define or import the type at module level, not under TYPE_CHECKING",
        ) from None


def _role(name: str, parameter: inspect.Parameter, hint: object) -> Role:
    where = f"task {name!r}: parameter {parameter.name!r}"
    if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
        raise TaskDefinitionError(f"{where} is variadic", remedy="name each parameter")
    if parameter.kind is parameter.POSITIONAL_ONLY:
        raise TaskDefinitionError(f"{where} is positional-only", remedy="remove the '/'")
    if parameter.default is not parameter.empty:
        raise TaskDefinitionError(
            f"{where} has a default", remedy="put defaults on the fields of the params model"
        )
    if hint is Path:
        return Role.WORKSPACE
    if hint is MetricRecorder:
        return Role.METRICS
    if (role := _spark_role(hint)) is not None:
        return role
    if _is_model(hint):
        return Role.PARAMS
    known = ", ".join(role.value for role in Role)
    raise TaskDefinitionError(f"{where} is annotated {_show(hint)}", remedy=f"use one of {known}")


def _check_roles(name: str, roles: Mapping[str, Role], *, has_workspace: bool) -> None:
    if Role.PARAMS not in roles.values():
        raise TaskDefinitionError(
            f"task {name!r} has no params",
            remedy="add 'params: P' with a pydantic model P, an empty one if need be",
        )
    takes = {Role.WORKSPACE, Role.SPARK_WORKSPACE} & {*roles.values()}
    if len(takes) > 1:
        raise TaskDefinitionError(
            f"task {name!r} takes the workspace twice",
            remedy="take it as a Path or as a SparkWorkspace",
        )
    if has_workspace and not takes:
        raise TaskDefinitionError(
            f"task {name!r} declares a workspace but does not take it",
            remedy="add 'workspace: Path' to the function",
        )
    if not has_workspace and takes:
        raise TaskDefinitionError(
            f"task {name!r} takes a workspace but does not declare it",
            remedy="add workspace=WorkspaceSpec(...) to @task",
        )


class _Session:
    """Stands for ``SparkSession`` where its name is for type checkers only."""


class _Workspace:
    """Stands for ``SparkWorkspace`` in the same way."""


_SPARK_NAMES = {"SparkSession": _Session, "SparkWorkspace": _Workspace}


def _spark_role(hint: object) -> Role | None:
    """Know Spark's types by their names: they are not imported to be compared with."""
    if not isinstance(hint, type):
        return None
    name, module = hint.__name__, hint.__module__
    if hint is _Session or (name == "SparkSession" and module.startswith("pyspark.sql")):
        return Role.SPARK
    if hint is _Workspace or (name == "SparkWorkspace" and module == "perago.spark.workspace"):
        return Role.SPARK_WORKSPACE
    return None


def _check_spark(
    name: str, roles: Mapping[str, Role], workspace: WorkspaceSpec | None, *, declared: bool
) -> bool:
    """Return whether a task is one for Spark; refuse half of a declaration."""
    on_spark = bool({Role.SPARK, Role.SPARK_WORKSPACE} & {*roles.values()})
    if declared and not on_spark:
        raise TaskDefinitionError(
            f"task {name!r} declares spark but does not take it",
            remedy="add 'spark: SparkSession' to the function, or drop spark=SparkSpec(...)",
        )
    for guard in workspace.data_guards if workspace else ():
        if guard.needs_spark and not on_spark:
            raise TaskDefinitionError(
                f"task {name!r}: {guard} needs Spark",
                remedy="add 'spark: SparkSession' to the function, or use another guardrail",
            )
    return on_spark


def _check_direct(name: str, roles: Mapping[str, Role], workspace: WorkspaceSpec | None) -> None:
    """Refuse what needs files: a direct workspace has none on this machine (X2)."""
    problem = None
    if workspace is None or Role.SPARK_WORKSPACE not in roles.values():
        problem = "has no directory", "take it as 'workspace: SparkWorkspace'"
    elif not all(isinstance(guard, FileGuard | DataGuard) for guard in workspace.guards):
        problem = "has no files for a guard of your own to open", "use the guards of perago"
    elif workspace.include or workspace.exclude:
        problem = "cannot leave files out", "drop include and exclude, or choose a narrower prefix"
    elif workspace.fence == "lineage":
        problem = "is staged before the head is known, which fence 'lineage' needs", "use 'head'"
    if problem:
        raise TaskDefinitionError(
            f"task {name!r}: a direct workspace {problem[0]}",
            remedy=f"{problem[1]}, or drop workspace='direct'",
        )


def _is_model(hint: object) -> typing.TypeGuard[type[BaseModel]]:
    return isinstance(hint, type) and issubclass(hint, BaseModel) and hint is not BaseModel


def _show(hint: object) -> str:
    return "missing" if hint is None else getattr(hint, "__name__", str(hint))
