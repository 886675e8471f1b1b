"""``@task``: what is taken, what is refused at import, and what the runtime then knows (T1-T6)."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import pytest
from pydantic import BaseModel, Field

import perago
from perago import (
    MetricRecorder,
    MetricSpec,
    PublishBudget,
    RetryPolicy,
    TaskControls,
    TaskDefinitionError,
    TaskFailed,
    TaskTerminalError,
    TimeoutPolicy,
    WorkspaceSpec,
    task,
)
from perago.protocol.budget import Budget
from perago.tasks.bodies import FunctionBody, Role
from perago.tasks.declaration import definition_of
from perago.tasks.definition import TaskDefinition
from perago.tasks.schemas import ModelSchema

T = TypeVar("T")
EMAIL = "team@example.com"


class Params(BaseModel):
    """What a task is asked."""

    n: int = 1


class Result(BaseModel):
    """What it answers."""

    n: int


class Boxed(BaseModel, Generic[T]):
    """A generic model."""

    value: T


BUDGET = PublishBudget(
    observed_merge_p99_seconds=2,
    safety_margin_seconds=3,
    lakefs_merge_timeout_seconds=5,
    conductor_completion_timeout_seconds=7,
    worker_shutdown_grace_seconds=11,
    heartbeat_interval_seconds=13,
)


@task(name="plain", owner_email=EMAIL)
def plain(params: Params) -> Result:
    """Add one."""
    return Result(n=params.n + 1)


@task(name="on files", owner_email=EMAIL, workspace=WorkspaceSpec(prefix="ws"))
def on_files(workspace: Path, params: Params) -> Result:
    return Result(n=len(list(workspace.iterdir())) + params.n)


@task(name="measured", owner_email=EMAIL, workspace=WorkspaceSpec(read_only=True))
def measured(params: Params, metrics: MetricRecorder, workspace: Path) -> Result:
    metrics.gauge("n", params.n)
    return Result(n=len(list(workspace.iterdir())))


def body_of(function: Callable[..., Any]) -> FunctionBody:
    found = getattr(function, "__perago_task__", None)
    body = (found if isinstance(found, TaskDefinition) else declare(function)).body
    assert isinstance(body, FunctionBody)
    return body


def declare(function: Callable[..., Any], **arguments: Any) -> TaskDefinition:
    given = {"name": "t", "owner_email": EMAIL, **arguments}
    return definition_of(task(**given)(function))


# --- what is taken -----------------------------------------------------------------------------


def test_t1_the_function_stays_an_ordinary_function(tmp_path: Path) -> None:
    assert plain(Params(n=2)) == Result(n=3)
    assert on_files(tmp_path, Params()) == Result(n=1)
    assert plain.__name__ == "plain"


def test_t1_roles_are_told_by_annotation_in_any_order() -> None:
    assert body_of(plain).roles == {"params": Role.PARAMS}
    assert body_of(on_files).roles == {"workspace": Role.WORKSPACE, "params": Role.PARAMS}
    assert dict(body_of(measured).roles) == {
        "params": Role.PARAMS,
        "metrics": Role.METRICS,
        "workspace": Role.WORKSPACE,
    }


def test_t1_the_body_is_called_with_what_its_signature_asks_for(tmp_path: Path) -> None:
    values: dict[Role, Callable[[], object]] = {
        Role.WORKSPACE: lambda: tmp_path,
        Role.PARAMS: lambda: Params(n=5),
    }
    assert body_of(on_files).call(values) == Result(n=5)
    assert body_of(plain).call(values) == Result(n=6)


def test_t6_the_defaults_of_a_declaration() -> None:
    found = definition_of(plain)
    assert (found.name, found.owner_email) == ("plain", EMAIL)
    assert found.description == "Add one."
    assert found.workspace is None
    assert found.metrics == MetricSpec()
    assert found.controls == TaskControls()
    assert found.params == ModelSchema(Params, strict=False)
    assert found.result == ModelSchema(Result)
    assert found.warnings() == []


def test_the_description_is_the_given_one_then_the_docstring_then_none() -> None:
    def bare(params: Params) -> Result:
        return Result(n=params.n)

    assert declare(plain, description="Mine").description == "Mine"
    assert declare(plain).description == "Add one."
    assert declare(bare).description is None


@pytest.mark.parametrize(
    ("function", "writable"),
    [(plain, False), (on_files, True), (measured, False)],
    ids=["plain", "files", "read-only"],
)
def test_only_a_task_with_a_writable_workspace_publishes(
    function: Callable[..., object], writable: bool
) -> None:
    assert definition_of(function).writable is writable


def test_annotated_quoted_and_generic_annotations_are_read() -> None:
    def quoted(workspace: Path, params: Params) -> Result:
        return Result(n=params.n)

    def annotated(params: Annotated[Params, "note"]) -> Annotated[Result, "note"]:
        return Result(n=params.n)

    def generic(params: Boxed[int]) -> Boxed[str]:
        return Boxed[str](value=str(params.value))

    assert declare(quoted, workspace=WorkspaceSpec()).params == ModelSchema(Params)
    assert declare(annotated).result == ModelSchema(Result)
    assert declare(generic).params == ModelSchema(Boxed[int])


def test_a_wrapped_function_keeps_the_signature_it_wraps() -> None:
    @functools.wraps(plain)
    def wrapper(*arguments: Any, **named: Any) -> Any:
        return plain(*arguments, **named)

    assert body_of(wrapper).roles == {"params": Role.PARAMS}


@pytest.mark.parametrize("name", ["a", "clean_audio", "clean-audio.v2", "clean audio", "清洗"])
def test_a_printable_name_is_a_name(name: str) -> None:
    assert declare(plain, name=name).name == name


# --- what is refused ---------------------------------------------------------------------------


def no_params(workspace: Path) -> Result:
    return Result(n=0)


def no_arguments() -> Result:
    return Result(n=0)


def no_annotation(params) -> Result:  # type: ignore[no-untyped-def]  # noqa: ANN001
    return Result(n=0)


def no_return(params: Params):  # type: ignore[no-untyped-def]  # noqa: ANN201
    return Result(n=0)


def returns_none(params: Params) -> None: ...


def returns_dict(params: Params) -> dict[str, int]:
    return {}


def returns_base_model(params: Params) -> BaseModel:
    return Result(n=0)


def takes_dict(params: dict[str, int]) -> Result:
    return Result(n=0)


def takes_text(workspace: str, params: Params) -> Result:
    return Result(n=0)


def takes_optional(workspace: Path | None, params: Params) -> Result:
    return Result(n=0)


def variadic(*params: Params) -> Result:
    return Result(n=0)


def variadic_named(params: Params, **more: int) -> Result:
    return Result(n=0)


def positional_only(params: Params, /) -> Result:
    return Result(n=0)


def with_default(params: Params = Params()) -> Result:  # noqa: B008 - what is refused
    return Result(n=0)


def params_twice(params: Params, more: Params) -> Result:
    return Result(n=0)


def workspace_twice(workspace: Path, other: Path, params: Params) -> Result:
    return Result(n=0)


def one_too_many(params: Params, other: int) -> Result:
    return Result(n=0)


def takes_files(workspace: Path, params: Params) -> Result:
    return Result(n=0)


def unknown_name(params: Parms) -> Result:  # type: ignore[name-defined]  # noqa: F821
    return Result(n=0)


def broken_quotes(params: Params) -> Result:
    return Result(n=0)


broken_quotes.__annotations__["params"] = "Params["


async def coroutine(params: Params) -> Result:
    return Result(n=0)


def generator(params: Params) -> Iterator[Result]:
    yield Result(n=0)


async def async_generator(params: Params) -> AsyncIterator[Result]:
    yield Result(n=0)


class ATask:
    """A class where a function belongs."""


FILES = {"workspace": WorkspaceSpec()}
REFUSED: list[tuple[str, Callable[..., Any], dict[str, Any], str, str]] = [
    ("no params", no_params, FILES, "'t'", "params: P"),
    ("no arguments", no_arguments, {}, "'t'", "params: P"),
    ("no annotation", no_annotation, {}, "'params'", "use one of"),
    ("no return annotation", no_return, {}, "return annotation is missing", "-> R"),
    ("returns None", returns_none, {}, "NoneType", "-> R"),
    ("returns a dict", returns_dict, {}, "dict", "-> R"),
    ("returns any model", returns_base_model, {}, "BaseModel", "-> R"),
    ("params a dict", takes_dict, {}, "'params'", "use one of"),
    ("workspace a text", takes_text, FILES, "'workspace'", "workspace: Path"),
    ("workspace optional", takes_optional, FILES, "'workspace'", "workspace: Path"),
    ("*args", variadic, {}, "'params'", "name each parameter"),
    ("**kwargs", variadic_named, {}, "'more'", "name each parameter"),
    ("positional-only", positional_only, {}, "'params'", "remove the '/'"),
    ("a default", with_default, {}, "'params'", "params model"),
    ("params twice", params_twice, {}, "'more'", "remove one"),
    ("workspace twice", workspace_twice, FILES, "'other'", "remove one"),
    ("an unknown argument", one_too_many, {}, "'other'", "use one of"),
    ("workspace not declared", takes_files, {}, "'t'", "workspace=WorkspaceSpec(...)"),
    ("workspace not taken", plain, FILES, "'t'", "workspace: Path"),
    ("an unknown type", unknown_name, {}, "Parms", "import the type"),
    ("a broken quoted type", broken_quotes, {}, "broken_quotes", "import the type"),
    ("async", coroutine, {}, "coroutine", "plain def"),
    ("a generator", generator, {}, "generator", "plain def"),
    ("an async generator", async_generator, {}, "async_generator", "plain def"),
    ("a class", ATask, {}, "type", "above a def"),
    ("a partial", functools.partial(plain), {}, "partial", "above a def"),
    ("a static method", staticmethod(plain), {}, "staticmethod", "above a def"),
    ("name empty", plain, {"name": ""}, "name=''", "printable name"),
    ("name blank", plain, {"name": " t"}, "name=' t'", "outer blanks"),
    ("name with newline", plain, {"name": "a\nb"}, "name='a\\nb'", "printable name"),
    ("name with colon", plain, {"name": "a:b"}, "name='a:b'", "without ':'"),
    ("name a number", plain, {"name": 3}, "name=3", "printable name"),
    ("no address", plain, {"owner_email": "nobody"}, "owner_email='nobody'", "team@example.com"),
    ("address empty", plain, {"owner_email": ""}, "owner_email=''", "team@example.com"),
    ("address half", plain, {"owner_email": "a@"}, "owner_email='a@'", "team@example.com"),
    ("address none", plain, {"owner_email": None}, "owner_email=None", "team@example.com"),
    ("description a number", plain, {"description": 3}, "description", "give a text"),
    ("workspace a path", takes_files, {"workspace": "ws"}, "workspace", "WorkspaceSpec(...)"),
    ("workspace the class", takes_files, {"workspace": WorkspaceSpec}, "workspace", "(...)"),
    ("controls a dict", plain, {"controls": {"retry": 1}}, "controls", "TaskControls(...)"),
    ("controls too deep", plain, {"controls": RetryPolicy()}, "controls", "TaskControls(...)"),
    ("metrics a flag", plain, {"metrics": True}, "metrics", "MetricSpec(...)"),
    (
        "budget without workspace",
        plain,
        {"controls": TaskControls(publish_budget=BUDGET)},
        "publish_budget",
        "workspace=WorkspaceSpec(...)",
    ),
]


@pytest.mark.parametrize(
    ("function", "arguments", "named", "fix"),
    [pytest.param(*row[1:], id=row[0]) for row in REFUSED],
)
def test_t1_a_wrong_task_is_refused_in_one_line_that_names_it_and_the_fix(
    function: Callable[..., Any], arguments: dict[str, Any], named: str, fix: str
) -> None:
    with pytest.raises(TaskDefinitionError) as caught:
        declare(function, **arguments)
    assert named in caught.value.message
    assert fix in caught.value.remedy
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None, "no chain of tracebacks for an author's mistake"


@pytest.mark.parametrize("missing", ["name", "owner_email"])
def test_t1_name_and_owner_are_required(missing: str) -> None:
    given: dict[str, Any] = {"name": "t", "owner_email": EMAIL}
    del given[missing]
    with pytest.raises(TypeError, match=missing):
        task(**given)


def test_t2_what_is_not_a_task_is_said_to_be_none() -> None:
    with pytest.raises(TaskDefinitionError, match="'no_params' is not a task") as caught:
        definition_of(no_params)
    assert "@task" in caught.value.remedy


# --- budget and warnings (T5) ------------------------------------------------------------------


def test_t5_without_a_budget_the_defaults_bound_every_call() -> None:
    assert definition_of(on_files).budget == Budget()


@pytest.mark.parametrize(
    ("response", "read_only", "warning"),
    [
        (36, False, None),
        (35, False, "responseTimeoutSeconds is 35"),
        (0, False, None),
        (600, True, "ignored"),
    ],
)
def test_t5_a_budget_that_cannot_help_is_warned_about(
    response: int, read_only: bool, warning: str | None
) -> None:
    found = declare(
        takes_files,
        workspace=WorkspaceSpec(read_only=read_only),
        controls=TaskControls(
            timeout=TimeoutPolicy(response_seconds=response), publish_budget=BUDGET
        ),
    )
    assert found.budget == BUDGET.budget
    if warning is None:
        assert found.warnings() == []
    else:
        assert len(found.warnings()) == 1
        assert warning in found.warnings()[0]
        assert "'t'" in found.warnings()[0]


# --- the author's errors (T4) ------------------------------------------------------------------


def test_t4_one_error_is_retried_and_the_other_is_not() -> None:
    assert not TaskFailed("x").terminal
    assert TaskTerminalError("x").terminal


@pytest.mark.parametrize("kind", [TaskFailed, TaskTerminalError, perago.GuardrailViolation])
def test_t4_an_authors_error_is_raised_with_or_without_a_text(
    kind: type[perago.PeragoError],
) -> None:
    assert str(kind("too short")) == "too short"
    assert str(kind()) == ""
    assert str(kind("bad", remedy="fix it")) == "bad; fix it"
    with pytest.raises(kind):
        raise kind


class Described(BaseModel):
    """Fields with texts."""

    n: Annotated[int, Field(description="how many", ge=0)]


def test_models_may_carry_constraints() -> None:
    def bounded(params: Described) -> Result:
        return Result(n=params.n)

    assert declare(bounded).params == ModelSchema(Described)
