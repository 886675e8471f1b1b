"""What commits say about the attempt that made them: S5, K2, K4, V8."""

from __future__ import annotations

import pytest

from perago.protocol.audit import confirm_metadata, message, staged_metadata
from perago.protocol.lineage import plan
from perago.protocol.values import Claim, StagedWorkspace, Staging, WorkspaceInput
from tests.protocol.identities import EARLIER, ME, MY_KEY

CLAIM = Claim(ME, {"params": {"password": "hunter2"}}, "execution-mine")
WORKSPACE = WorkspaceInput("lake", "main", "commit", "A")
STAGING = Staging("lake", "perago-staging-x")
STAGED = staged_metadata(CLAIM, WORKSPACE, "/ws", STAGING)
# K2 lists these for the confirming commit.
CONFIRM = {
    "perago.phase": "confirm",
    "perago.logical_task_key": MY_KEY,
    "perago.task_id": "task-2",
    "perago.retry_count": "1",
    "perago.input_ref": "A",
    "perago.target_branch": "main",
    "perago.prefix": "/ws",
    "perago.staging_branch": "perago-staging-x",
    "perago.staging_commit": "C",
}


@pytest.mark.parametrize(
    ("head", "supersedes"), [("A", ""), ("H", "H")], ids=["first publication", "on an own head"]
)
def test_k2_k4_the_published_commit_carries_the_whole_audit(head: str, supersedes: str) -> None:
    commit = StagedWorkspace("lake", "perago-staging-x", "C")
    said = confirm_metadata(STAGED, commit, plan(WORKSPACE, ME, head))
    wanted = CONFIRM | {"perago.expected_head": head, "perago.supersedes": supersedes}
    assert {key: said[key] for key in wanted} == wanted
    assert said["perago.execution_id"] == "execution-mine"


def test_s5_the_staged_commit_says_what_is_known_then() -> None:
    assert STAGED["perago.phase"] == "try"
    assert STAGED["perago.execution_id"] == "execution-mine"
    later = {"perago.staging_commit", "perago.expected_head", "perago.supersedes"}
    assert later.isdisjoint(STAGED)


def test_v8_i7_nothing_of_the_input_but_its_ref_is_in_the_metadata() -> None:
    assert "hunter2" not in str(STAGED)
    assert all(isinstance(value, str) for value in STAGED.values())
    assert all(key.startswith("perago.") for key in STAGED)


def test_the_message_names_step_task_and_retry() -> None:
    assert message(CLAIM) == "clean_ref: clean (retry 1)"
    assert message(Claim(EARLIER, {}, "e")) == "clean_ref: clean"
