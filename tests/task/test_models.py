"""Params in, result out: what the models accept, and what becomes of it (T1, I3, section 10)."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, computed_field, field_validator

from perago import task
from perago.errors import ResultError, TaskParamsError
from perago.tasks.declaration import definition_of
from perago.tasks.definition import TaskDefinition


class Colour(Enum):
    """A choice."""

    RED = "red"


class Node(BaseModel):
    """A recursive model."""

    name: str
    children: list[Node] = []


class Params(BaseModel):
    """Many kinds of fields."""

    model_config = ConfigDict(extra="forbid")

    count: int = Field(default=1, alias="how many")
    ratio: float = 0.5
    when: datetime | None = None
    colour: Colour = Colour.RED
    tree: Node | None = None
    secret: str = ""
    where: Path = Path("here")

    @field_validator("secret")
    @classmethod
    def _long_enough(cls, value: str, info: ValidationInfo) -> str:
        if value and len(value) < 3:
            raise ValueError("at least three characters")
        return value


class Result(BaseModel):
    """Many kinds of fields."""

    count: int = Field(default=0, alias="how many")
    rows: int = Field(default=0, serialization_alias="rowCount")
    scratch: str = Field(default="", exclude=True)
    when: datetime = datetime(2024, 1, 2, tzinfo=UTC)
    ratio: float = 0.0
    colour: Colour = Colour.RED
    tree: Node | None = None

    @computed_field
    def double(self) -> int:
        """Twice the count."""
        return 2 * self.count


class Open(BaseModel):
    """Anything goes in."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    value: Any = None


@task(name="t", owner_email="a@b")
def lax(params: Params) -> Result:
    return Result()


@task(name="t", owner_email="a@b", strict_params=True)
def strict(params: Params) -> Result:
    return Result()


@task(name="t", owner_email="a@b")
def opened(params: Params) -> Open:
    return Open()


LAX, STRICT, OPEN = definition_of(lax), definition_of(strict), definition_of(opened)


# --- params ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "field", "value"),
    [
        ({}, "count", 1),
        ({"how many": 3}, "count", 3),
        ({"how many": "3"}, "count", 3),
        ({"ratio": 2}, "ratio", 2.0),
        ({"when": "2024-01-02T00:00:00Z"}, "when", datetime(2024, 1, 2, tzinfo=UTC)),
        ({"colour": "red"}, "colour", Colour.RED),
        ({"where": "a/b"}, "where", Path("a/b")),
        (
            {"tree": {"name": "a", "children": [{"name": "b"}]}},
            "tree",
            Node(name="a", children=[Node(name="b")]),
        ),
    ],
    ids=str,
)
def test_t1_params_are_read_as_json(raw: dict[str, object], field: str, value: object) -> None:
    assert getattr(LAX.parse_params(raw), field) == value


@pytest.mark.parametrize(
    ("raw", "accepted"),
    [
        ({"how many": 3}, True),
        ({"how many": "3"}, False),
        ({"when": "2024-01-02T00:00:00Z"}, True),
        ({"colour": "red"}, True),
        ({"ratio": "0.5"}, False),
    ],
    ids=str,
)
def test_strict_params_take_json_types_as_they_are(raw: dict[str, object], accepted: bool) -> None:
    """Dates and choices have no type of their own in JSON; texts stay allowed for them."""
    if accepted:
        assert isinstance(STRICT.parse_params(raw), Params)
    else:
        with pytest.raises(TaskParamsError):
            STRICT.parse_params(raw)


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        ({"how many": "x"}, "how many: input should be a valid integer"),
        ({"count": 3}, "count: extra inputs are not permitted"),
        ({"unknown": 1}, "unknown: extra inputs"),
        ({"tree": {"name": "a", "children": [{}]}}, "tree.children.0.name: field required"),
        ({"colour": "blue"}, "colour: input should be 'red'"),
        ({"secret": "hu"}, "secret: value error, at least three characters"),
        ({"how many": None, "ratio": None, "colour": 1, "secret": 2}, "and 1 more"),
    ],
    ids=str,
)
def test_params_that_never_fit_are_terminal_and_name_the_field(
    raw: dict[str, object], named: str
) -> None:
    with pytest.raises(TaskParamsError) as caught:
        LAX.parse_params(raw)
    assert caught.value.terminal
    assert named in caught.value.message
    assert "'t'" in caught.value.message
    assert "Params" in caught.value.message
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("field", ["how many", "ratio", "when", "colour"])
def test_v8_the_refusal_never_repeats_a_value(field: str) -> None:
    with pytest.raises(TaskParamsError) as caught:
        LAX.parse_params({field: "hunter2-secret"})
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_lone_surrogate_is_refused_not_crashed_on() -> None:
    with pytest.raises(TaskParamsError):
        LAX.parse_params({"secret": "\ud800"})


def test_params_may_come_as_any_mapping() -> None:
    raw = MappingProxyType({"how many": 3})
    assert LAX.parse_params(raw) == Params.model_validate({"how many": 3})


# --- result ------------------------------------------------------------------------------------


def test_i3_a_result_is_json_with_aliases_and_computed_fields_without_excluded_ones() -> None:
    given = {"how many": 2, "rows": 7, "scratch": "x", "tree": {"name": "a"}}
    dumped = LAX.dump_result(Result.model_validate(given))
    assert dumped == {
        "how many": 2,
        "rowCount": 7,
        "when": "2024-01-02T00:00:00Z",
        "ratio": 0.0,
        "colour": "red",
        "tree": {"name": "a", "children": []},
        "double": 4,
    }
    assert json.loads(json.dumps(dumped)) == dumped


def test_a_dictionary_that_fits_the_model_is_a_result() -> None:
    assert LAX.dump_result({"how many": "2"})["how many"] == 2
    assert LAX.dump_result({})["double"] == 0


def test_a_subclass_of_the_model_is_a_result() -> None:
    class More(Result):
        extra: int = 5

    assert LAX.dump_result(More.model_validate({"how many": 1}))["how many"] == 1


def test_a_deep_recursive_result_is_dumped() -> None:
    tree = Node(name="leaf")
    for level in range(50):
        tree = Node(name=str(level), children=[tree])
    found = LAX.dump_result(Result(tree=tree))["tree"]
    for _ in range(50):
        (found,) = found["children"]
    assert found == {"name": "leaf", "children": []}


@pytest.mark.parametrize(
    "value",
    [None, 3, "text", [], {"how many": "many"}, {"how many": [1]}, Node(name="a"), object()],
    ids=lambda value: type(value).__name__,
)
def test_section_10_anything_else_is_refused_with_what_was_returned(value: object) -> None:
    with pytest.raises(ResultError) as caught:
        LAX.dump_result(value)
    assert f"returned {type(value).__name__}, not Result" in caught.value.message
    assert caught.value.remedy == "return Result(...)"
    assert not caught.value.terminal


def _circle() -> Node:
    node = Node(name="a")
    node.children.append(node)
    return node


@pytest.mark.parametrize(
    ("definition", "value"),
    [
        pytest.param(LAX, Result(ratio=math.nan), id="NaN"),
        pytest.param(LAX, Result(ratio=math.inf), id="infinity"),
        pytest.param(OPEN, Open(value=object()), id="no JSON at all"),
        pytest.param(LAX, Result(tree=_circle()), id="a circle"),
        pytest.param(LAX, Result.model_construct(ratio="x"), id="a field of another type"),  # type: ignore[arg-type]
    ],
)
def test_section_10_what_no_engine_could_read_is_refused(
    definition: TaskDefinition, value: object
) -> None:
    with pytest.raises(ResultError, match="not JSON") as caught:
        definition.dump_result(value)
    assert "NaN" in caught.value.remedy
