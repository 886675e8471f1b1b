"""A publication is a success only when what is visible is what was staged (P5, V2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from perago.ports import Publication, Published
from perago.protocol.publication import Merge, Replace
from perago.protocol.values import Staging, Status
from perago.stores.embedded import EmbeddedStore
from perago.testing import FailAt, Lab
from perago.testing.arranged import ArrangedStore
from tests.lakefs_lab import ArrangedLakeFS, new_name
from tests.lifecycle import tasks
from tests.lifecycle.tasks import GIVEN


class Elsewhere:
    """Has a store publish something else than it is asked to, with all else as it should be."""

    def __init__(self, store: ArrangedStore) -> None:
        self.lands: Mapping[str, bytes | None] | None = None
        """What is changed on the way; None removes a file."""
        self._store = store
        self._apply = store.apply

    def apply(self, publication: Publication) -> Published:
        """Put another commit, made from C, in the place of C."""
        decision = publication.decision
        if self.lands is not None and isinstance(decision, Merge | Replace):
            other = self._other(publication.repository, decision.source, self.lands)
            decision = replace(decision, source=other)
        return self._apply(replace(publication, decision=decision))

    def _other(self, repository: str, source: str, lands: Mapping[str, bytes | None]) -> str:
        staging = Staging(repository, new_name())
        self._store.open_staging(staging, source)
        for key, content in lands.items():
            if content is None:
                self._store.remove(repository, staging.branch, key)
            else:
                self._store.put(repository, staging.branch, key, content)
        other = self._store.commit_branch(repository, staging.branch, "something else", {}).id
        self._store.drop(staging)
        return other


@pytest.fixture(params=["embedded", "lakefs"])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    store: ArrangedStore = EmbeddedStore(tmp_path / "store")
    if request.param == "lakefs":
        store = ArrangedLakeFS(request.getfixturevalue("lakefs_server"), tmp_path / "worker")
    lab = Lab(tmp_path / "lab", store=store, repository=new_name())
    lab.commit(GIVEN)
    yield lab
    lab.close()


@pytest.fixture
def elsewhere(lab: Lab) -> Elsewhere:
    found = Elsewhere(lab.store)
    lab.store.apply = found.apply  # type: ignore[method-assign]
    return found


OTHER: dict[str, Mapping[str, bytes | None]] = {
    "another content": {"ws/out.txt": b"n3w"},
    "a file more": {"ws/more.txt": b"x"},
    "a file less": {"ws/in.txt": None},
}


@pytest.mark.parametrize("lands", [pytest.param(each, id=name) for name, each in OTHER.items()])
@pytest.mark.parametrize("write", [tasks.write, tasks.write_lineage])
def test_p5_a_merge_that_shows_something_else_is_no_success(
    lab: Lab, elsewhere: Elsewhere, write: Callable[..., Any], lands: Mapping[str, bytes | None]
) -> None:
    """Parent, id and metadata are as they should be: only the content tells."""
    a = lab.head.id
    elsewhere.lands = lands
    run = lab.run(write)
    elsewhere.lands = None
    assert lab.head.parents == (a,)
    assert run.status is Status.FAILED
    assert "published content differs from what was staged" in run.reason
    assert "published" not in run.events
    # V5: the next attempt replaces it, or builds on it, and shows what it staged.
    again = run.retry()
    assert again.completed, again.reason
    assert again.files == {**{k: v.encode() for k, v in GIVEN.items()}, "ws/out.txt": b"new"}


def test_p5_a_replacement_that_shows_something_else_is_no_success(
    lab: Lab, elsewhere: Elsewhere
) -> None:
    crashed = lab.run(tasks.write, {"text": "first"}, faults=[FailAt("after publish")])
    elsewhere.lands = OTHER["another content"]
    run = crashed.retry()
    assert run.status is Status.FAILED
    assert "publication cannot be verified" in run.reason
    assert "published" not in run.events


def test_d3_the_next_attempt_reads_what_is_there_not_what_should_be(
    lab: Lab, elsewhere: Elsewhere
) -> None:
    """What this machine knows of C is not taken for the merge that shows something else."""
    elsewhere.lands = OTHER["another content"]
    assert not lab.run(tasks.write).completed
    elsewhere.lands = None
    seen = lab.run(tasks.keep)
    assert seen.completed, seen.reason
    assert seen.result == {"length": len("n3w")}
    assert seen.files["ws/copy.txt"] == b"n3w"
