"""Names that do not fit are refused before anything starts, with the nearest one that does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
    computed_field,
    model_validator,
)

from perago import WorkspaceSpec, task
from perago.errors import UsageError, WorkflowDefinitionError
from perago.tasks.declaration import definition_of
from perago.workflow.inputs import TaskShape, check_names
from perago.workflow.shapes import shape_of

SHAPE = TaskShape(
    workspace=True,
    params=frozenset({"currency", "top"}),
    required=(frozenset({"currency"}),),
    unknown_params="warn",
    results=frozenset({"rows"}),
)
STRICT = TaskShape(
    workspace=True,
    params=SHAPE.params,
    required=(),
    unknown_params="refuse",
    results=None,
)
SHAPES = {"clean": SHAPE, "strict": STRICT}
PARAMS = {"currency": "${workflow.input.currency}"}


def flow(change: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    step: dict[str, Any] = {
        "name": "clean",
        "taskReferenceName": "one",
        "type": "SIMPLE",
        "inputParameters": {"workspace": "${workflow.input.workspace}", "params": PARAMS},
    }
    declared: dict[str, Any] = {"name": "flow", "inputParameters": ["workspace", "currency"]}
    return declared | {"tasks": [{**step, **(change or {})}]} | more


def inputs(**change: Any) -> dict[str, Any]:
    whole = {"workspace": "${workflow.input.workspace}", "params": PARAMS} | change
    return {"inputParameters": {key: value for key, value in whole.items() if value is not None}}


def test_names_that_fit_are_fine() -> None:
    assert check_names(flow(), SHAPES, "flow.json") == []
    assert check_names(flow(), SHAPES, "flow.json", {"currency": "SEK"}) == []
    whole = flow(inputs(params={"currency": "SEK"}), outputParameters={"all": "${workflow.input}"})
    assert check_names(whole, SHAPES, "flow.json", {"anything": 1}) == []
    undeclared = flow(inputParameters=[])
    assert check_names(undeclared, SHAPES, "flow.json") == []  # its input may have anything
    assert check_names(undeclared, SHAPES, "flow.json", {"currency": "SEK"}) == []
    unknown = flow({"name": "elsewhere", "inputParameters": {"x": 1}})
    assert check_names(unknown, SHAPES, "flow.json") == []
    said = flow(description="reads ${workflow.input.nothing}")
    assert check_names(said, SHAPES, "flow.json") == []
    odd = flow({"name": ["clean"]}, outputParameters=[1, None])
    assert check_names(odd, SHAPES, "flow.json") == []
    http = flow({"type": "HTTP", "inputParameters": {"http_request": {}}})
    assert check_names(http, SHAPES, "flow.json") == []


@pytest.mark.parametrize(
    ("definition", "given", "words"),
    [
        (flow(), {"curency": "SEK"}, ["flow.json has no input 'curency'", "'currency'?"]),
        (
            flow(inputs(params={"currency": "${workflow.input.curency}"})),
            None,
            ["step 'one'", "${workflow.input.curency}", "did you mean 'currency'?"],
        ),
        (
            flow(inputs(params={"currency": "${workflow.input.curency}"}), inputParameters=[]),
            {"currency": "SEK"},
            ["flow.json has no input 'currency'", "did you mean 'curency'?"],
        ),
        (
            flow(inputs(params={"currency": "${workflow.input.curency}"}), inputParameters=[]),
            {},
            [
                "${workflow.input.curency}",
                "neither declared nor given",
                "add 'curency' to inputParameters",
            ],
        ),
        (
            flow(outputParameters={"x": "${workflow.input['curency']}"}),
            None,
            ["outputParameters", "did you mean 'currency'?"],
        ),
        (flow(inputs(params=None)), None, ["step 'one'", "lacks 'params'"]),
        (flow(inputs(workspace=None)), None, ["step 'one'", "lacks 'workspace'"]),
        (
            flow(inputs(workspace=None, workspce="${workflow.input.workspace}")),
            None,
            ["unknown key 'workspce'", "did you mean 'workspace'?"],
        ),
        (flow(inputs(extra=1)), None, ["unknown key 'extra'", "params, workspace"]),
        (flow(inputs(params={"top": 1})), None, ["lack 'currency'", "add it"]),
        (
            flow(inputs(params={"curency": "SEK"})),
            None,
            ["lack 'currency'", "did you mean 'currency'?"],
        ),
        (
            flow({"name": "strict"} | inputs(params={"tpo": 1})),
            None,
            ["have no field 'tpo'", "did you mean 'top'?"],
        ),
        (
            flow(
                {"name": "strict"} | inputs(params="${workflow.input.params}"),
                inputParameters=["params"],
            ),
            {"params": {"tpo": 1}},
            ["have no field 'tpo'"],
        ),
        (
            flow(outputParameters={"x": "${one.output.result.row}"}),
            None,
            ["the result has no field 'row'", "did you mean 'rows'?"],
        ),
        (
            flow(outputParameters={"x": "${one.output.wrkspace}"}),
            None,
            ["the output has no 'wrkspace'", "did you mean 'workspace'?"],
        ),
    ],
)
def test_names_that_do_not_fit_are_refused(
    definition: dict[str, Any], given: dict[str, object] | None, words: list[str]
) -> None:
    with pytest.raises((UsageError, WorkflowDefinitionError)) as told:
        check_names(definition, SHAPES, "flow.json", given)
    for word in words:
        assert word in str(told.value)


def test_params_that_a_task_ignores_are_warned_of() -> None:
    (text,) = check_names(flow(inputs(params=PARAMS | {"tpo": 1})), SHAPES, "flow.json")
    assert "flow.json: step 'one'" in text
    assert "no field 'tpo', it is ignored; did you mean 'top'?" in text


def test_steps_inside_of_others_are_checked() -> None:
    fork = flow()
    fork["tasks"] = [{"type": "FORK_JOIN", "forkTasks": [flow(inputs(params=None))["tasks"]]}]
    with pytest.raises(WorkflowDefinitionError, match="lacks 'params'"):
        check_names(fork, SHAPES, "flow.json")


# --- shapes -----------------------------------------------------------------------------------


class Params(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    currency: str = Field(alias="Currency")
    top: int = Field(default=1, validation_alias=AliasChoices("TOP", "Top"))


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")
    n: int = 1


class Free(BaseModel):
    model_config = ConfigDict(extra="allow")


class Before(BaseModel):
    n: int

    @model_validator(mode="before")
    @classmethod
    def _any(cls, value: object) -> object:
        return {"n": 1} if value else value


class Rows(BaseModel):
    rows: int = Field(serialization_alias="rowCount")

    @computed_field
    def doubled(self) -> int:
        return 2 * self.rows


class Root(RootModel[dict[str, int]]):
    pass


def shape(params: type[BaseModel], result: type[BaseModel] = Rows) -> TaskShape:
    def body(params: Any) -> Any: ...

    body.__annotations__ = {"params": params, "return": result}
    return shape_of(definition_of(task(name="t", owner_email="a@example.com")(body)))


def test_shapes_are_those_of_the_models() -> None:
    taken = shape(Params)
    assert taken.params == frozenset({"Currency", "currency", "TOP", "Top", "top"})
    assert taken.required == (frozenset({"Currency", "currency"}),)
    assert (taken.workspace, taken.unknown_params) == (False, "warn")
    assert taken.results == frozenset({"rowCount", "doubled"})
    assert shape(Strict).unknown_params == "refuse"
    for free in (Free, Before, Root):
        assert shape(free).params is None
        assert shape(free).required == ()
    assert shape(Strict, Free).results is None
    assert shape(Strict, Root).results is None


def test_a_workspace_belongs_to_the_shape() -> None:
    def body(workspace: Path, params: Strict) -> Rows:
        raise NotImplementedError(workspace, params)

    body.__annotations__ = {"workspace": Path, "params": Strict, "return": Rows}
    made = task(name="t", owner_email="a@example.com", workspace=WorkspaceSpec())(body)
    assert shape_of(definition_of(made)).workspace
