from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perago.errors import WorkflowDefinitionError
from perago.workflow.expressions import (
    UNKNOWN,
    Expression,
    as_text,
    expressions_in,
    lookup,
    parse,
    parse_expression,
    refresh,
    resolve,
)

DOCUMENT: dict[str, Any] = {
    "workflow": {
        "input": {"a": {"b": 7}, "list": [1, {"x": 2}], "none": None, "text": "hi", "yes": True},
        "workflowId": "run-1",
    },
    "load": {
        "status": "COMPLETED",
        "output": {
            "workspace": {"repository": "r", "branch": "main", "ref": "c1"},
            "result": {"rows": [{"x": 1.5}, {"x": 2}], "odd key": 1, "a.b": 2, "}": 3},
        },
    },
    "CPEWF_TASK_ID": "task-9",
}


def read(expression: Expression) -> object:
    return lookup(DOCUMENT, expression.path)


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("${workflow.input.a.b}", 7),
        ("${workflow.input.a}", {"b": 7}),
        ("${workflow.input.list[0]}", 1),
        ("${workflow.input.list[1].x}", 2),
        ("${workflow.input.list[-1].x}", 2),
        ("${workflow.input.list[9].x}", None),
        ("${workflow.input.none}", None),
        ("${workflow.input.missing}", None),
        ("${workflow.input.text.deeper}", None),
        ("${workflow.input.list.name}", None),
        ("${workflow.input.a[0]}", None),
        ("${workflow.workflowId}", "run-1"),
        ("${load.output.workspace}", {"repository": "r", "branch": "main", "ref": "c1"}),
        ("${load.output.result.rows[0].x}", 1.5),
        ("${load.output.result['odd key']}", 1),
        ('${load.output.result["a.b"]}', 2),
        ("${load.output.result['}']}", 3),
        ("${['load'].status}", "COMPLETED"),
        ("${ load.status }", "COMPLETED"),
        ("${CPEWF_TASK_ID}", "task-9"),
        # inside longer text the value is written out
        ("x-${workflow.input.a.b}", "x-7"),
        ("${workflow.input.text}${load.status}", "hiCOMPLETED"),
        ("is ${workflow.input.none}", "is null"),
        ("is ${workflow.input.yes}", "is true"),
        ("is ${workflow.input.a}", 'is {"b": 7}'),
        ("is ${load.output.result.rows[0].x}", "is 1.5"),
        # a `$` before `${` takes its meaning away, and goes
        ("$${workflow.input.a}", "${workflow.input.a}"),
        ("$$${x}", "$${x}"),
        ("$${x} ${load.status}", "${x} COMPLETED"),
        ("cost: 5$ {x} $x", "cost: 5$ {x} $x"),
        ("", ""),
    ],
)
def test_one_string(template: str, value: object) -> None:
    assert resolve(template, read) == value


def test_structures_keep_their_shape_and_keys_are_not_templates() -> None:
    template = {"k": ["${load.status}", {"n": "${workflow.input.a.b}"}, 1, None], "${x.y}": True}
    assert resolve(template, read) == {"k": ["COMPLETED", {"n": 7}, 1, None], "${x.y}": True}


def test_values_are_never_templates() -> None:
    assert resolve("${v}", lambda _: "${load.status}") == "${load.status}"
    assert resolve("a ${v}", lambda _: "${load.status}") == "a ${load.status}"


@pytest.mark.parametrize(
    "template",
    [
        "${}",
        "${ }",
        "${a",
        "${a.b",
        "${a..b}",
        "${.a}",
        "${a.}",
        "${a.*}",
        "${a[*]}",
        "${a[0:2]}",
        "${a[?(@.x==1)]}",
        "${a.length()}",
        "${a.['b']}",
        "${a[b]}",
        "${a b}",
        "${a.${b}}",
        "${$.a}",
        "${a['b}",
    ],
)
def test_other_syntax_is_refused_in_a_sentence(template: str) -> None:
    with pytest.raises(WorkflowDefinitionError) as caught:
        parse(template)
    assert caught.value.remedy
    assert "expression" in caught.value.message


def test_expressions_are_found_with_their_place() -> None:
    template = {"a": ["x", "${load.status} ${CPEWF_TASK_ID}"], "b": {"c": "${workflow.input.a}"}}
    assert [(where, found.text) for where, found in expressions_in(template, "in")] == [
        ("in.a[1]", "load.status"),
        ("in.a[1]", "CPEWF_TASK_ID"),
        ("in.b.c", "workflow.input.a"),
    ]


def test_unknown_spreads() -> None:
    document = {"a": UNKNOWN, "b": 1}

    def foresee(expression: Expression) -> object:
        return lookup(document, expression.path)

    assert resolve("${a.b.c}", foresee) is UNKNOWN
    assert resolve("x ${a}", foresee) is UNKNOWN
    assert resolve({"k": "${a}", "n": "${b}"}, foresee) == {"k": UNKNOWN, "n": 1}


def test_a_retry_keeps_its_input_and_gets_its_own_task_id() -> None:
    template = {"w": "${load.output}", "id": "${CPEWF_TASK_ID}", "l": ["n-${CPEWF_TASK_ID}", 1]}
    previous = {"w": "old", "id": "task-1", "l": ["n-task-1", 1]}
    assert refresh(template, previous, read) == {"w": "old", "id": "task-9", "l": ["n-task-9", 1]}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
keys = st.text(st.characters(blacklist_characters="'"), max_size=8)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parts = parse(text)
    except WorkflowDefinitionError:
        assert "${" in text
    else:
        assert "".join(str(part) for part in parts) == text.replace("$${", "${")


@given(st.text())
def test_escaping_gives_back_any_text(text: str) -> None:
    assert resolve(text.replace("${", "$${"), read) == text


@given(st.lists(keys | st.integers(0, 2), min_size=1, max_size=5), json_values)
def test_a_path_finds_what_was_put_there(path: list[str | int], value: object) -> None:
    document = value
    for step in reversed(path):
        document = {step: document} if isinstance(step, str) else [None] * step + [document]
    text = "".join(f"['{step}']" if isinstance(step, str) else f"[{step}]" for step in path)
    assert parse_expression(text).path == tuple(path)
    assert resolve("${" + text + "}", lambda found: lookup(document, found.path)) == value


@given(json_values)
def test_text_of_a_value_is_itself_or_json(value: object) -> None:
    text = as_text(value)
    assert text == value if isinstance(value, str) else json.loads(text) == value


@given(json_values)
def test_a_template_without_expressions_is_itself(value: object) -> None:
    if "${" not in json.dumps(value):
        assert resolve(value, read) == value


class Counted(str):
    """Text that counts how many of its characters are looked at."""

    __slots__ = ()
    looked = 0

    def find(self, *given: Any) -> int:
        start = given[1] if len(given) > 1 else 0
        found = super().find(*given)
        Counted.looked += (found if found >= 0 else len(self)) - start
        return found

    def __getitem__(self, key: Any) -> str:
        part = super().__getitem__(key)
        Counted.looked += len(part)
        return part


@pytest.mark.parametrize(
    "pattern", ["$", "$${", "${a}", "${a}$", "$${a}", "x$", "{$ ", "$$${b}", "${a['}']}"]
)
def test_a_text_is_looked_at_once_however_many_dollars_it_has(pattern: str) -> None:
    """Counted, not timed: 300 kB of dollars used to take minutes."""
    Counted.looked = 0
    text = Counted(pattern * (60_000 // len(pattern)))
    parse(text)
    assert len(text) // 2 <= Counted.looked <= 4 * len(text)


@pytest.mark.parametrize("text", ["${" + "a" * 100_000, "${a." + "?" * 100_000 + "}"])
def test_a_message_shows_the_beginning_of_what_is_wrong(text: str) -> None:
    with pytest.raises(WorkflowDefinitionError) as caught:
        parse(text)
    assert len(str(caught.value)) < 1000
