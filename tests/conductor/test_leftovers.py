"""Which staging branches go (W5, V7): every state a sweep can find."""

from __future__ import annotations

from itertools import product

import pytest

from perago.protocol.leftovers import FoundStaging, StagingName, judge_staging, staging_name
from perago.protocol.names import staging_branch
from perago.protocol.values import Attempt

DAY = 86400.0


@pytest.mark.parametrize("reference", ["step", "a-task-id-b-retry-1-exec-c", "ünï", "x" * 200])
@pytest.mark.parametrize("task_id", ["4f6c8a0e-1111-2222-3333-444455556666", "t"])
def test_s1_a_name_tells_whose_it_is(reference: str, task_id: str) -> None:
    attempt = Attempt("w-1", task_id, 2, reference, "count", 3, 4)
    found = staging_name(staging_branch(attempt, "0123abcd"))
    assert found == StagingName(task_id, "0123abcd")


@pytest.mark.parametrize("branch", ["main", "perago-staging-x", "perago-staging-task-id-a", ""])
def test_other_names_are_nobodys(branch: str) -> None:
    assert staging_name(branch) is None


@pytest.mark.parametrize(
    ("status", "over", "age", "limit"),
    [
        *product(
            (None, "COMPLETED", "IN_PROGRESS"), (True, False), (None, 0, DAY, 2 * DAY), (0, DAY)
        )
    ],
)
def test_v7_only_what_is_over_or_unknown_and_old_goes(
    status: str | None, over: bool, age: float | None, limit: float
) -> None:
    verdict = judge_staging(FoundStaging(status, over or status is None, age), limit)
    if status is not None:
        assert verdict.remove is over
    else:
        assert verdict.remove is (limit == 0 or (age is not None and age >= limit))
    assert verdict.why
