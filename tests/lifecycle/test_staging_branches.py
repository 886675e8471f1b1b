"""Staging branches: one that somebody else has made, and one that is never needed (S4, F2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from perago.protocol.values import Status
from perago.stores.embedded import EmbeddedStore
from perago.testing import Lab, StaleAt
from perago.testing.faults import Scene
from tests.lifecycle import tasks
from tests.lifecycle.tasks import GIVEN


@dataclass
class TakeTheName:
    """Somebody has made a branch of the very name before the attempt does."""

    store: EmbeddedStore
    taken: str = ""

    def at(self, point: str, scene: Scene) -> None:
        """Only calls matter."""

    def around(self, call: str, action: Callable[[], object]) -> object:
        if call != "open_staging":
            return action()
        action()
        hidden = [one.name for one in self.store.branches("lab", hidden=True) if one.hidden]
        (self.taken,) = hidden
        return action()


def test_s4_a_branch_that_was_there_before_is_neither_used_nor_deleted(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / "store")
    lab = Lab(tmp_path, store=store)
    lab.commit(GIVEN)
    fault = TakeTheName(store)
    run = lab.run(tasks.write, faults=[fault])
    assert run.status is Status.FAILED
    assert "stage: AlreadyExistsError" in run.reason
    assert fault.taken in [branch.name for branch in store.branches("lab", hidden=True)]
    lab.close()


@pytest.mark.parametrize("task", [tasks.write, tasks.write_hard, tasks.write_lineage])
def test_f2_an_attempt_that_is_over_before_it_stages_makes_no_branch(
    tmp_path: Path, task: Callable[..., object]
) -> None:
    """The second fence would find out too; by then the branch and the bytes are there."""
    lab = Lab(tmp_path)
    lab.commit(GIVEN)
    run = lab.run(task, faults=[StaleAt("before first attempt fence")])
    assert run.status is Status.FAILED
    assert "StaleAttemptError" in run.reason
    assert "branch created" not in run.events
    lab.close()
