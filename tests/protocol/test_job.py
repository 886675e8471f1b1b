"""From a raw input to a job that may run: I1, I2, I3, I4, I5."""

from __future__ import annotations

from typing import Any

import pytest

from perago.errors import TaskInputError
from perago.protocol.job import assert_full_commit_id, parse_workspace, split_input
from perago.protocol.values import WorkspaceInput

WORKSPACE = {"repository": "lake", "branch": "main", "ref_type": "commit", "ref": "abc"}
ALIAS = {"repository": "lake", "branch": "main", "refType": "commit", "ref": "abc"}
PARSED = WorkspaceInput("lake", "main", "commit", "abc")


def without(key: str) -> dict[str, object]:
    return {name: value for name, value in WORKSPACE.items() if name != key}


def test_i1_a_workspace_task_takes_exactly_workspace_and_params() -> None:
    workspace, params = split_input({"workspace": WORKSPACE, "params": {"n": 1}}, workspace=True)
    assert workspace == PARSED
    assert params == {"n": 1}


def test_i5_a_task_without_a_workspace_takes_exactly_params() -> None:
    assert split_input({"params": {}}, workspace=False) == (None, {})


@pytest.mark.parametrize(
    ("raw", "has_workspace", "named"),
    [
        pytest.param({}, True, "missing 'params', missing 'workspace'", id="I1 empty"),
        pytest.param({"params": {}}, True, "missing 'workspace'", id="I1 no workspace"),
        pytest.param({"workspace": WORKSPACE}, True, "missing 'params'", id="I1 no params"),
        pytest.param(
            {"workspace": WORKSPACE, "params": {}, "x": 1}, True, "unknown 'x'", id="I1 extra"
        ),
        pytest.param(
            {"workspace": WORKSPACE, "params": {}, "read_only": True},
            True,
            "unknown 'read_only'",
            id="I6 read_only is not input",
        ),
        pytest.param({"workspace": WORKSPACE, "param": {}}, True, "unknown 'param'", id="I1 typo"),
        pytest.param({"workspace": WORKSPACE, "params": None}, True, "null", id="I1 params null"),
        pytest.param({"workspace": WORKSPACE, "params": []}, True, "list", id="I1 params a list"),
        pytest.param({"workspace": WORKSPACE, "params": "{}"}, True, "str", id="I1 params a text"),
        pytest.param({}, False, "missing 'params'", id="I5 empty"),
        pytest.param(
            {"workspace": WORKSPACE, "params": {}}, False, "unknown 'workspace'", id="I5 workspace"
        ),
        pytest.param({"workspace": None, "params": {}}, True, "null", id="I2 workspace null"),
        pytest.param({"workspace": "main", "params": {}}, True, "str", id="I2 workspace a text"),
    ],
)
def test_i1_i5_any_other_keys_are_refused_by_name(
    raw: dict[str, Any], has_workspace: bool, named: str
) -> None:
    with pytest.raises(TaskInputError) as caught:
        split_input(raw, workspace=has_workspace)
    assert named in str(caught.value)
    assert caught.value.remedy
    assert not caught.value.terminal, "section 10: input is FAILED"


@pytest.mark.parametrize("raw", [WORKSPACE, ALIAS], ids=["ref_type", "refType"])
def test_i2_i3_the_output_uses_the_spelling_of_the_input_and_changes_only_the_ref(
    raw: dict[str, object],
) -> None:
    parsed = parse_workspace(raw)
    assert parsed == PARSED
    assert parsed.as_json() == raw
    assert parsed.at("def").as_json() == {**raw, "ref": "def"}


BLANKS = [None, "", "  ", "\n", 3, ["a"], True]


@pytest.mark.parametrize("field", ["repository", "branch", "ref"])
@pytest.mark.parametrize("value", BLANKS, ids=repr)
def test_i2_no_field_may_be_blank(field: str, value: object) -> None:
    with pytest.raises(TaskInputError, match=rf"workspace\.{field}"):
        parse_workspace({**WORKSPACE, field: value})


@pytest.mark.parametrize("field", ["repository", "branch", "ref"])
def test_i2_every_field_is_required(field: str) -> None:
    with pytest.raises(TaskInputError, match=rf"workspace\.{field}' is missing"):
        parse_workspace(without(field))


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(without("ref_type"), id="missing"),
        pytest.param({**WORKSPACE, "ref_type": "branch"}, id="branch"),
        pytest.param({**WORKSPACE, "ref_type": "COMMIT"}, id="wrong case"),
        pytest.param({**WORKSPACE, "ref_type": None}, id="null"),
        pytest.param({**ALIAS, "refType": "tag"}, id="alias, tag"),
        pytest.param({**WORKSPACE, "refType": "commit"}, id="both spellings"),
    ],
)
def test_i2_ref_type_is_commit_in_one_spelling(raw: dict[str, object]) -> None:
    with pytest.raises(TaskInputError, match=r"ref_type|refType"):
        parse_workspace(raw)


@pytest.mark.parametrize("extra", ["prefix", "endpoint", "access_key_id", "read_only", "reftype"])
def test_i2_i7_nothing_else_comes_from_the_input(extra: str) -> None:
    """Neither the specification of a workspace nor where it lives is a matter of the input."""
    with pytest.raises(TaskInputError, match=extra):
        parse_workspace({**WORKSPACE, extra: "x"})


def test_i4_a_full_commit_id_is_its_own_name() -> None:
    assert_full_commit_id(PARSED, "abc")


@pytest.mark.parametrize("resolved", ["abcdef", "ABC", "other"], ids=["short id", "case", "branch"])
def test_i4_a_branch_tag_or_short_id_is_refused_and_the_commit_named(resolved: str) -> None:
    with pytest.raises(TaskInputError, match="not a full commit id") as caught:
        assert_full_commit_id(PARSED, resolved)
    assert resolved in caught.value.remedy
