"""What is not ours is neither believed nor removed (P5, S4, F2): stores that err on purpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from perago.ports import Publication, Published
from perago.protocol.publication import Merge
from perago.protocol.values import Staging, Status
from perago.stores.embedded import EmbeddedStore
from perago.testing import Lab, StaleAt
from perago.testing.faults import Scene
from tests.lifecycle import tasks
from tests.lifecycle.tasks import GIVEN


class Mistaken(EmbeddedStore):
    """Publishes other content than it was told to, on the right parent."""

    def apply(self, publication: Publication) -> Published:
        decision = publication.decision
        assert isinstance(decision, Merge)
        other = Staging(publication.repository, "perago-staging-other")
        self.open_staging(other, decision.head)
        self.put(other.repository, other.branch, "ws/other.txt", b"nobody wrote this")
        wrong = self.seal(other, "other", {}).commit
        return super().apply(replace(publication, decision=replace(decision, source=wrong)))


def test_p5_a_publication_of_other_content_is_not_a_success(tmp_path: Path) -> None:
    lab = Lab(tmp_path, store=Mistaken(tmp_path / "store"))
    lab.commit(GIVEN)
    run = lab.run(tasks.write)
    assert run.status is Status.FAILED
    assert "publish: PublishFenceError: publication cannot be verified" in run.reason
    assert "content differs from what was staged" in run.reason
    lab.close()


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
