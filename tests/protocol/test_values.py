"""The nouns of section 1."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest

from perago.protocol.values import ChangeSet, Commit, Phase, StagedWorkspace
from tests.protocol.identities import ME, MY_KEY


def test_the_logical_task_key_is_workflow_reference_and_iteration() -> None:
    assert ME.logical_task_key == MY_KEY


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"task_id": "t"}, True),
        ({"retry_count": 9}, True),
        ({"seq": 9}, True),
        ({"task_def_name": "d"}, True),
        ({"workflow_instance_id": "w"}, False),
        ({"reference_task_name": "r"}, False),
        ({"iteration": 1}, False),
    ],
    ids=str,
)
def test_a_retry_keeps_the_logical_task_key_and_another_step_has_another(
    change: dict[str, object], same: bool
) -> None:
    other = replace(ME, **change)  # type: ignore[arg-type]
    assert (other.logical_task_key == ME.logical_task_key) is same


@pytest.mark.parametrize(
    ("parents", "parent"), [((), None), (("A",), "A"), (("A", "B"), "A")], ids=str
)
def test_parent_is_the_direct_first_parent(parents: tuple[str, ...], parent: str | None) -> None:
    assert Commit("X", parents).parent == parent


@pytest.mark.parametrize(
    ("steps", "something"),
    [
        (ChangeSet(), False),
        (ChangeSet(added=("a",)), True),
        (ChangeSet(changed=("a",)), True),
        (ChangeSet(removed=("a",)), True),
    ],
    ids=str,
)
def test_a_change_set_is_true_when_there_is_something_to_do(
    steps: ChangeSet, something: bool
) -> None:
    assert bool(steps) is something


def test_s4_a_staged_workspace_is_a_value() -> None:
    staged = StagedWorkspace(repository="lake", branch="b", commit="C")
    with pytest.raises(FrozenInstanceError):
        staged.commit = "D"  # type: ignore[misc]
    assert staged == StagedWorkspace("lake", "b", "C")


def test_section_4_the_phases_stand_in_the_order_of_an_attempt() -> None:
    order = list(Phase)
    assert order.index(Phase.PRE) < order.index(Phase.BODY) < order.index(Phase.RESULT)
    assert order.index(Phase.RESULT) < order.index(Phase.POST) < order.index(Phase.DIFF)
    assert order.index(Phase.FENCE_ONE) < order.index(Phase.STAGE) < order.index(Phase.FENCE_TWO)
    assert order[-4:] == [Phase.PUBLISH, Phase.CLEAN_STAGING, Phase.CLEAN_ATTEMPT_DIR, Phase.REPORT]
